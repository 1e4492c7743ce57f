"""Contents of the snapshot cache besides the right snapshot: an old one, a stranger's, a damaged one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.engine import Engine
from pmagent.actors.core.snapshot import FORMAT, EngineState, Snapshot, encode_snapshot, export_engine
from pmagent.contracts.payload import encode, type_of
from pmagent.events.event import Draft, Tail
from pmagent.events.sequencer import Sequencer
from pmagent.replay.simulation.invariants import Documents
from pmagent.replay.simulation.workload import Done, QuestionAsked
from pmagent.replay.simulation.world import World

CODE: Final = "simulated"
"""The code digest in the machine's own snapshots."""


def saved(log_id: str, tail: Tail, engine: Engine, documents: Documents | None) -> bytes | None:
    """The snapshot of what has been folded up to ``tail``; None where none may be taken."""
    if not engine.quiescent or engine.sequencer.position != tail.position:
        return None
    if documents is not None and (documents.owing or documents.halted):
        return None
    extra = documents.export() if documents is not None else {}
    return encode_snapshot(Snapshot(FORMAT, log_id, tail, CODE, export_engine(engine), extra))


def _stranger(actors: Sequence[AnyActor], position: int, time: str) -> EngineState:
    """An engine of ``actors`` at ``position`` to which other things happened."""
    engine = Engine(actors, Sequencer(Tail(max(0, position - 2))))
    fact = QuestionAsked(n=position) if position > 1 else Done(n=position)  # the one is answered
    engine.accept(Draft(type_of(fact), fact, encode(fact), "stranger", "operator", "", 0), time)
    return export_engine(engine)


def spoiled(world: World, raw: bytes, saved: Sequence[bytes], actors: Callable[[], Sequence[AnyActor]]) -> bytes:
    """``raw``, or what a fault has put in its place. ``saved`` are all snapshots of this log so far."""
    faults, random = world.faults, world.chance.stream("snapshot")
    if faults.strike("snapshot: stale"):
        raw = random.choice(saved)
    elsewhere = f"{random.getrandbits(256):064x}"
    if faults.strike("snapshot: of another log"):
        raw = encode_snapshot(_of_another(raw, f"{random.getrandbits(128):032x}", elsewhere, actors))
    elif faults.strike("snapshot: of another history"):  # a copy of this log that went another way
        raw = encode_snapshot(_of_another(raw, "", elsewhere, actors))
    elif faults.strike("snapshot: of other code"):
        raw = encode_snapshot(msgspec.structs.replace(_of_another(raw, "", "", actors), code="b"))
    if faults.strike("snapshot: damaged"):
        at = int(world.chance.uniform("snapshot: damaged where") * len(raw))
        raw = raw[:at] + bytes([raw[at] ^ (1 << random.randrange(8))]) + raw[at + 1 :]
    return raw


def _of_another(raw: bytes, log_id: str, sum_: str, actors: Callable[[], Sequence[AnyActor]]) -> Snapshot:
    """A real snapshot at the position of ``raw``'s, of an engine to which other things happened. ``log_id`` and
    ``sum_``: "" for its own."""
    kept = msgspec.msgpack.decode(raw[32:], type=Snapshot)
    state = _stranger(actors(), kept.tail.position, kept.tail.time)
    tail = msgspec.structs.replace(kept.tail, sum=sum_ or kept.tail.sum)
    return Snapshot(kept.format, log_id or kept.log_id, tail, kept.code, state, kept.extra)
