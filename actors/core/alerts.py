"""Alerts: what operators have to know of, or to decide on. Each area judges its own events; pure.

An area's table maps event types to judges. A judge says of an event that it opens an ``Alert``, that something is
``Over``, or that an operator ``Asked``: what is decided on a request at once is its answer, and alerts nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal

import msgspec

from pmagent.events.event import Event

DETAIL_CHARS_MAX: Final = 300


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert. ``severity``: ``urgent`` (nobody knows what happened, or nothing works), ``bad``, ``warn``, or
    ``request``: it waits for a decision, and is over with it. A newer alert of the same ``kind`` and ``subject`` takes
    the place of an open one. ``title`` holds nothing of what events say; ``detail`` may. ``page``: the console's
    address of the thing, "" for the event's own."""

    kind: str
    severity: Literal["urgent", "bad", "warn", "request"]
    title: str
    subject: str = ""
    detail: str = ""
    page: str = ""


class Over(msgspec.Struct, frozen=True):
    """The condition or request of this ``kind`` and ``subject`` is over; without ``subject``, each of the kind."""

    kind: str
    subject: str = ""


class Asked(msgspec.Struct, frozen=True):
    """An operator's request. Its answer is told to the asker."""


Judged = Alert | Over | Asked
Judge = Callable[[Event], Iterable[Judged]]
Judges = Mapping[str, Judge]
"""Event type -> judge."""


def reasons(texts: Iterable[object]) -> str:
    """Reasons as an alert's detail; of reasons that are objects, their texts."""
    return "; ".join(str(getattr(one, "text", one)) for one in texts)[:DETAIL_CHARS_MAX]
