"""How far a job is, as people are shown it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from events.event import Event


class Change(msgspec.Struct, frozen=True):
    """Something to tell: at log time ``time``, of the part called ``name`` ("": the job). ``word`` says what: a part's
    state, ``retry``, or what the job does. ``since``: the log time from which it took ("": not said)."""

    time: str
    name: str
    word: str
    text: str = ""
    since: str = ""


class Folded(Protocol):
    """A job as it is known so far, folded from its events: no clock, no screen."""

    @property
    def over(self) -> bool:
        """Whether it has ended, or never began."""
        ...

    def fold(self, event: Event) -> Sequence[Change]:
        """Take the next event of its correlation; what is to be told of it."""
        ...
