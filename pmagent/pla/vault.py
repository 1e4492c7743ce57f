"""The plain text of proposals whose secrets are masked in the log: in this process's memory, and nowhere else
(docs/design.md §16.5).

An entry was asked for by an operator and may be typed once, if it is approved; it goes when its proposal is closed,
when its time is over, and with the process. Python cannot wipe memory: what was dropped may be found in a dump of the
process for a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from pmagent.actors.core.actor import Performers, Resources
from pmagent.actors.pla.effects import pla_performers
from pmagent.actors.pla.line.holding import Line
from pmagent.contracts.pla import APPROVAL_SECONDS, Action
from pmagent.contracts.pla_events import PlaProposalClosed
from pmagent.events.errors import PmagentError
from pmagent.events.event import Event

HELD_MAX: Final = 64
"""So many actions at most; one proposal is open at a time, so there are never many."""

GRACE_SECONDS: Final = APPROVAL_SECONDS + 240.0
"""An action is held so much longer than its proposal stands open: for the approval, and for typing it."""


class VaultFull(PmagentError, exit_code=1):
    """Too many masked proposals are under way at once; nothing was recorded."""


class _Held:
    """An action, how many requests hold it, and until when."""

    __slots__ = ("action", "holders", "until")

    def __init__(self, action: Action, until: float) -> None:
        self.action = action
        self.until = until
        self.holders = 1


class Vault:
    """Plain actions by their digests (hex). ``clock``: seconds, monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: dict[str, _Held] = {}

    def put(self, digest: str, action: Action, seconds: float) -> None:
        """Hold ``action`` while a proposal that stands open for ``seconds`` may need it. An entry put twice has to be
        dropped twice. Raises VaultFull."""
        self._forget()
        until = self._clock() + seconds + GRACE_SECONDS
        held = self._held.get(digest)
        if held is not None:
            held.holders += 1
            held.until = max(held.until, until)
            return
        if len(self._held) >= HELD_MAX:
            what = f"{HELD_MAX} proposals with credentials are under way"
            raise VaultFull(what, "reject what is open, or wait until it has expired: pmagent pla list")
        self._held[digest] = _Held(action, until)

    def get(self, digest: str) -> Action | None:
        """The action with this digest, in plain; None: it is not held (any more)."""
        self._forget()
        held = self._held.get(digest)
        return None if held is None else held.action

    def drop(self, digest: str) -> None:
        """One of those who hold it needs it no more; harmless for what is not held."""
        held = self._held.get(digest)
        if held is None:
            return
        held.holders -= 1
        if held.holders <= 0:
            del self._held[digest]

    def hear(self, events: Sequence[Event], _sums: Sequence[str]) -> None:
        """Listener: what is closed is dropped."""
        for event in events:
            if isinstance(event.data, PlaProposalClosed):
                self.drop(event.data.digest)

    def _forget(self) -> None:
        now = self._clock()
        for digest in [digest for digest, held in self._held.items() if held.until <= now]:
            del self._held[digest]


def resources(_: Mapping[str, str]) -> Iterable[object]:
    """The vault, and the line to the device, which is held where ``link_device`` runs."""
    return Vault(), Line()


def performers(resources: Resources) -> Performers:
    """Conversations over the host's line; what is typed comes from its vault where it is masked."""
    return pla_performers(resources[Line], resources[Vault].get)
