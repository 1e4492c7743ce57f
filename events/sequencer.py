"""Giving events their place: positions without a gap, times that never decrease, each fact once
(docs/design.md §2.1)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from operator import itemgetter
from typing import Final

from pmagent.events.event import Draft, Event, Tail
from pmagent.events.line import check_data, check_texts

RECENT_FACTS_MAX: Final = 65_536
"""How many of the latest facts a resent one is recognised among. A source must not resend a fact after so many
others have come; commands resend within seconds, effects' outcomes are matched by request instead."""


class Sequencer:
    """Hands out positions and times after ``tail``. Pure: the time comes in with each draft."""

    def __init__(self, tail: Tail, recent: Iterable[tuple[str, int]] = ()) -> None:
        self.position = tail.position
        self.time = tail.time
        self._recent: OrderedDict[str, int] = OrderedDict(recent)

    def admit(self, draft: Draft, now: str) -> Event:
        """``draft`` in its place. Raises BadEvent for texts or data that the log refuses; no place is taken then."""
        check_texts(draft.id, draft.actor, draft.type, draft.correlation)
        check_data(draft.raw)
        self.position += 1
        if now > self.time:
            self.time = now
        event = Event(
            self.position, self.time, draft.id, draft.kind, draft.actor, draft.type,
            draft.correlation, draft.causation, draft.data, draft.raw,
        )
        if draft.kind == "fact":
            self.remember(draft.id, self.position)
        return event

    def seen(self, id: str) -> int | None:
        """The position of the recent fact with this id, None when there is none: then it may be appended."""
        return self._recent.get(id)

    def remember(self, id: str, position: int) -> None:
        """Note a fact that stands in the log already (recovery)."""
        recent = self._recent
        recent[id] = position
        if len(recent) > RECENT_FACTS_MAX:
            recent.popitem(last=False)

    def remember_all(self, facts: Iterable[tuple[str, int]]) -> None:
        """Note facts that stand in the log already, in the order of their positions among those noted before."""
        noted, together = self._recent, sorted(facts, key=itemgetter(1))
        if together and noted and next(reversed(noted.values())) > together[0][1]:
            together = [*noted.items(), *together]
            noted.clear()
            together.sort(key=itemgetter(1))
        noted.update(together)
        while len(noted) > RECENT_FACTS_MAX:
            noted.popitem(last=False)

    def pass_over(self, position: int, time: str) -> None:
        """Note an event that has its place already: one that was read back, or a decision."""
        self.position = position
        self.time = time

    def recent(self) -> list[tuple[str, int]]:
        """The recent facts' ids and positions, oldest first, for the snapshot cache."""
        return list(self._recent.items())
