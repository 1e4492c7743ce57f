"""A replay that finds nothing must be one that looks: it is given each run's log with one decision altered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from pmagent.actors.core.actor import AnyActor
from pmagent.contracts.effect import EffectRefused
from pmagent.contracts.payload import BlobSource
from pmagent.events.event import Event, StoredEvent
from pmagent.events.storage import StorageReader
from pmagent.replay.replayer import Replayer
from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.world import Violation


class Alteration:
    """A decision of ``history``, as often as not a verdict of the gate, with its payload altered. ``victim``: None when
    there is none. ``events``: it, and what stands beside it, from behind the fact that it follows from to the next."""

    def __init__(self, history: Sequence[Event], chance: Chance) -> None:
        random = chance.stream("alteration")
        decisions = [event for event in history if event.kind == "decision" and alterable(event.raw)]
        verdicts = [event for event in decisions if isinstance(event.data, EffectRefused)]
        if verdicts and random.random() < 0.5:
            decisions = verdicts
        self.victim = random.choice(decisions) if decisions else None
        self.events: list[Event] = []
        if self.victim is not None:
            facts = [event.position for event in history if event.kind == "fact" and not event.type.startswith("log.")]
            before = max(at for at in facts if at < self.victim.position)
            after = min((at for at in facts if at > self.victim.position), default=len(history))
            self.events = list(history[before:after])


class AlteredReplay(Replayer):
    """A replay that is given ``alteration`` as well, in a copy of itself that has come to where it stands."""

    def __init__(
        self, storage: StorageReader, actors: Sequence[AnyActor], blobs: BlobSource, alteration: Alteration
    ) -> None:
        super().__init__(storage, actors, blobs=blobs)
        self._alteration = alteration
        self._other: Replayer | None = None

    def typed(self, stored: StoredEvent) -> Event:
        """See Replayer."""
        events = self._alteration.events
        if events and stored.position == events[0].position:
            self._other = Replayer(self._storage, ())
            self._other.engine = self.engine.copy(self.engine.actors[1:], self._other)
        return super().typed(stored)

    def check_found(self) -> None:
        """The decision that was altered is named, and no other. Raises Violation."""
        victim = self._alteration.victim
        if victim is None or self._other is None:
            return
        replayed = self._other.follow(map(self._as_altered, self._alteration.events), whole=False)
        found = [divergence.position for divergence in replayed.divergences]
        if found != [victim.position]:
            what = f"{victim.type} at {victim.position}"
            raise Violation(f"{what} was altered; a replay finds {found} {replayed.stopped}")

    def _as_altered(self, event: Event) -> Event:
        victim = self._alteration.victim
        if victim is None or event.position != victim.position:
            return event
        return super().typed(
            StoredEvent(
                event.position, 1, event.time, event.id, event.kind, event.actor, event.type, event.correlation,
                event.causation, msgspec.Raw(altered(event.raw)), "",
            )
        )


def alterable(raw: bytes) -> bool:
    """Whether ``altered`` changes a payload's bytes."""
    return any(_other(value) != value for value in msgspec.json.decode(raw).values())


def altered(raw: bytes) -> bytes:
    """A payload's bytes with its first text, number or truth changed; the same when it has none."""
    data: dict[str, Any] = msgspec.json.decode(raw)
    for name, value in data.items():
        other = _other(value)
        if other != value:
            return msgspec.json.encode({**data, name: other})
    return raw


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value + "~"
    if isinstance(value, (int, float)):
        return value + 1
    return value
