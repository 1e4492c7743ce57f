"""A replay that finds nothing must be one that looks: it is given each run's log with one decision altered."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec

from actors.actor import AnyActor
from contracts.effect import EffectRefused
from contracts.payload import BlobSource
from events.event import Event, Tail
from events.line import seal
from events.memory import MemoryStorage
from replay.replayer import replay_log
from replay.simulation.world import Violation


def altered_is_found(
    history: Sequence[Event], actors: Sequence[AnyActor], blobs: BlobSource, random: Random
) -> bool:
    """Alter a decision, as often as not a verdict of the gate, and compute the chain anew. False when there is none.

    Raises Violation when a replay does not name the one that was altered.
    """
    decisions = [event for event in history if event.kind == "decision" and altered(event.raw) != event.raw]
    verdicts = [event for event in decisions if isinstance(event.data, EffectRefused)]
    if verdicts and random.random() < 0.5:
        decisions = verdicts
    if not decisions:
        return False
    victim = random.choice(decisions)
    # It stops at the first difference: nothing behind the next fact would be read.
    facts = (event.position for event in history[victim.position :] if event.kind == "fact")
    events = list(history[: next(facts, len(history))])
    events[victim.position - 1] = msgspec.structs.replace(victim, raw=altered(victim.raw))
    lines, sums = seal(events, 1, Tail())
    storage = MemoryStorage()
    storage.append_batch(Tail(), lines, Tail(len(events), 1, events[-1].time, sums[-1]))
    replayed = replay_log(storage, actors, blobs=blobs)
    found = [divergence.position for divergence in replayed.divergences]
    if found != [victim.position]:
        raise Violation(f"{victim.type} at {victim.position} was altered; a replay finds {found} {replayed.stopped}")
    return True


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
