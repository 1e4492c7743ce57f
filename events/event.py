"""Events, in the three forms in which they live.

``Draft``        what somebody wants to append: no position yet
``Event``        in its place in the log: position and time are given, ``data`` is typed; what actors see
``StoredEvent``  as it stands on disk: with batch and sum, ``data`` still the stored bytes

Actors never see batch and sum: they are known only when the batch is written, so a decision that depended on
them could not be made before the write and reproduced after it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Literal

import msgspec

Kind = Literal["fact", "decision"]

LINE_BYTES_MAX = 1024 * 1024
"""Upper bound of one line, newline included (docs/design.md §2.1)."""

DATA_BYTES_MAX = LINE_BYTES_MAX - 8 * 1024
"""Upper bound of an event's encoded ``data``; larger facts go to the blob store."""

TEXT_BYTES_MAX = 512
"""Upper bound of ``id``, ``actor``, ``type`` and ``correlation``, each, in bytes of their JSON encoding."""

ZERO_SUM = "0" * 64
"""The sum that precedes the first line."""


class Draft(msgspec.Struct, frozen=True, gc=False):
    """An event to be appended.

    ``data`` is the payload, ``raw`` its JSON encoding (what will stand in the line; for a payload beyond
    ``DATA_BYTES_MAX`` the reference to a blob). ``id`` makes appending a fact twice harmless.
    """

    type: str
    data: Any
    raw: bytes
    id: str
    actor: str
    correlation: str = ""
    causation: int = 0
    kind: Kind = "fact"


class Event(msgspec.Struct, frozen=True, gc=False):
    """An event in its place. Field meanings: docs/log-format.md. ``time`` is RFC 3339 UTC with microseconds."""

    position: int
    time: str
    id: str
    kind: Kind
    actor: str
    type: str
    correlation: str
    causation: int
    data: Any
    raw: bytes


class StoredEvent(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A line of the log, decoded. ``data`` is the stored bytes; ``pmagent.contracts.payload.typed`` gives the
    payload."""

    position: int
    batch: int
    time: str
    id: str
    kind: Kind
    actor: str
    type: str
    correlation: str
    causation: int
    data: msgspec.Raw
    sum: str


class Tail(msgspec.Struct, frozen=True):
    """The end of a log: its last event's position, batch, time and sum. All zero (and time "") before the first."""

    position: int = 0
    batch: int = 0
    time: str = ""
    sum: str = ZERO_SUM


class LogCreated(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """First event of every log. ``log_id``: 32 random hex digits, so no line of another log fits the chain."""

    log_id: str
    format: int = 1


class LogRecovered(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A torn tail was cut at opening. ``cut_bytes`` were moved to ``kept_as``, a file beside the segment."""

    segment: str
    offset: int
    cut_bytes: int
    kept_as: str
    reason: str


class LogTakenOver(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Another holder has the log from here on: ``holder``, under ``epoch``, after ``previous``, each in its own words;
    ``timeline`` is the database's. ``why``: the log was released, its lease expired without a sign of its holder, or
    that one was lost: its session had ended, or its process."""

    epoch: int
    holder: str
    previous: str
    why: Literal["released", "expired", "lost"]
    timeline: int


_MARKS = "--T::."
"""Each third character of a time, from the fifth on: what stands between its numbers."""


def format_time(moment: datetime) -> str:
    """``moment`` (aware) as RFC 3339 UTC with microseconds and ``Z``: 27 characters that sort as time does."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds")[: -len("+00:00")] + "Z"


@lru_cache(maxsize=512)  # actors compute with the times of a few events again and again
def parse_time(text: str) -> datetime:
    """The moment that ``format_time`` wrote. Raises ValueError for any other text."""
    if len(text) == 27 and text.isascii() and text[4::3][:6] == _MARKS and text[26] == "Z":
        return datetime.fromisoformat(text)  # ten times as fast, and lenient in what the marks rule out
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


@lru_cache(maxsize=512)
def time_after(text: str, seconds: float) -> str:
    """The log time ``seconds`` later than ``text``, or the last there is; pure, for expiries that actors compute from
    event times."""
    try:
        return format_time(parse_time(text) + timedelta(seconds=seconds))
    except OverflowError:
        if seconds < 0:
            raise
        return format_time(datetime.max.replace(tzinfo=UTC))
