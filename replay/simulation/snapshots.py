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


class Stranger:
    """An engine of ``actors`` to which other things happened. Later snapshots show it at later positions."""

    def __init__(self, actors: Callable[[], Sequence[AnyActor]]) -> None:
        self._actors = actors
        self._engine = Engine(actors(), Sequencer(Tail()))

    def at(self, position: int, time: str) -> EngineState:
        """Its state at ``position``."""
        if self._engine.sequencer.position >= position:
            self._engine = Engine(self._actors(), Sequencer(Tail()))
        while (n := self._engine.sequencer.position) < position - 1:
            self._accept(self._engine, QuestionAsked(n=n), n, time)
        engine = self._engine.copy(self._actors())
        if n < position:
            self._accept(engine, Done(n=n), n, time)
        return export_engine(engine)

    def _accept(self, engine: Engine, fact: QuestionAsked | Done, n: int, time: str) -> None:
        engine.accept(Draft(type_of(fact), fact, encode(fact), f"stranger-{n}", "operator", "", 0), time)


def spoiled(world: World, raw: bytes, saved: Sequence[bytes], stranger: Stranger) -> bytes:
    """``raw``, or what a fault has put in its place. ``saved`` are all snapshots of this log so far."""
    faults, random = world.faults, world.chance.stream("snapshot")
    if faults.strike("snapshot: stale"):
        raw = random.choice(saved)
    elsewhere = f"{random.getrandbits(256):064x}"
    if faults.strike("snapshot: of another log"):
        raw = encode_snapshot(_of_another(raw, f"{random.getrandbits(128):032x}", elsewhere, stranger))
    elif faults.strike("snapshot: of another history"):  # a copy of this log that went another way
        raw = encode_snapshot(_of_another(raw, "", elsewhere, stranger))
    elif faults.strike("snapshot: of other code"):
        raw = encode_snapshot(msgspec.structs.replace(_of_another(raw, "", "", stranger), code="b"))
    if faults.strike("snapshot: damaged"):
        at = int(world.chance.uniform("snapshot: damaged where") * len(raw))
        raw = raw[:at] + bytes([raw[at] ^ (1 << random.randrange(8))]) + raw[at + 1 :]
    return raw


def _of_another(raw: bytes, log_id: str, sum_: str, stranger: Stranger) -> Snapshot:
    """A real snapshot at the position of ``raw``'s, of an engine to which other things happened. ``log_id`` and
    ``sum_``: "" for its own."""
    kept = msgspec.msgpack.decode(raw[32:], type=Snapshot)
    state = stranger.at(kept.tail.position, kept.tail.time)
    tail = msgspec.structs.replace(kept.tail, sum=sum_ or kept.tail.sum)
    return Snapshot(kept.format, log_id or kept.log_id, tail, kept.code, state, kept.extra)
