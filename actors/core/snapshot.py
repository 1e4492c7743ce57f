"""The engine's state as a discardable cache, so that starting on a long log is fast (docs/design.md §3.5).

Never truth: a snapshot counts only when log, position, sum and code are exactly the ones at hand; else it is ignored
and everything is folded from the log. It is taken only when every event has been reacted to.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import msgspec

from pmagent.actors.core.engine import Engine
from pmagent.contracts.payload import decode, effect_of, encode, type_of
from pmagent.events.errors import PmagentError
from pmagent.events.event import Event, Kind, Tail
from pmagent.events.reader import event_at
from pmagent.events.storage import BLOB_PREFIX, StorageReader

FORMAT = 2


class OpenEffect(msgspec.Struct, frozen=True):
    """A request without a terminal event yet."""

    position: int
    time: str
    id: str
    actor: str
    type: str
    correlation: str
    causation: int
    raw: bytes


class EngineState(msgspec.Struct, frozen=True):
    """Everything the engine knows: ``states`` are the actors' states, JSON-encoded, by name."""

    states: dict[str, bytes]
    halted: dict[str, int]
    open: list[OpenEffect]
    cancelled: dict[int, str]
    paused: bool
    held: list[int]
    recent: list[tuple[str, int]]


class Snapshot(msgspec.Struct, frozen=True):
    """The cached folds of the log up to ``tail``. ``code`` identifies the code that made it; ``extra`` are other
    folds of the same prefix (the projections'), by name; ``status``: the status as of ``tail``, where it was noted."""

    format: int
    log_id: str
    tail: Tail
    code: str
    engine: EngineState
    extra: dict[str, bytes]
    status: bytes = b""


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Snapshot)
_encode_json = msgspec.json.Encoder().encode


EXPORTED_BYTES_MAX: Final = 64 * 1024
"""A state of at most so many bytes is not encoded again at the next snapshot when it is the same then."""


def export_engine(engine: Engine) -> EngineState:
    """The engine's state. Raises ValueError while a reaction is going on."""
    if not engine.quiescent:
        raise ValueError("a snapshot is taken between reactions")
    return EngineState(
        {name: _exported(engine, name, state) for name, state in engine.states.items()}, dict(engine.halted),
        [
            OpenEffect(e.position, e.time, e.id, e.actor, e.type, e.correlation, e.causation, _whole(e))
            for e in engine.effects.open.values()
        ],
        dict(engine.effects.cancelled), engine.effects.paused, list(engine.effects.held), engine.sequencer.recent(),
    )


def _whole(event: Event) -> bytes:
    """The payload's bytes, also of one that lies in a blob."""
    return encode(event.data) if event.raw.startswith(BLOB_PREFIX) else event.raw


def _exported(engine: Engine, name: str, state: Any) -> bytes:
    known, raw = engine.exported.get(name, (None, b""))
    if known is not state:
        raw = _encode_json(state)
        if len(raw) <= EXPORTED_BYTES_MAX:
            engine.exported[name] = state, raw
    return raw


def restore_engine(engine: Engine, state: EngineState, tail: Tail) -> None:
    """Put ``state`` into a fresh engine, which then stands at ``tail``. Raises msgspec.ValidationError, KeyError when
    it does not fit the actors; the engine is then as it was."""
    if state.states.keys() != engine.states.keys():
        raise KeyError("other actors")
    states: dict[str, Any] = {
        name: msgspec.json.decode(raw, type=type(engine.states[name])) for name, raw in state.states.items()
    }
    open_effects = {e.position: _reopened(e) for e in state.open}
    if any(type_of(event.data) != event.type for event in open_effects.values()):
        raise KeyError("an open effect of another type")
    if not open_effects.keys() >= set(state.held):
        raise KeyError("an effect is held that is not open")
    engine.states.update(states)
    engine.exported.update(
        {name: (states[name], raw) for name, raw in state.states.items() if len(raw) <= EXPORTED_BYTES_MAX}
    )
    engine.halted.update(state.halted)
    engine.effects.open.update(open_effects)
    engine.effects.cancelled.update(state.cancelled)
    engine.effects.paused = state.paused
    engine.effects.held.update({position: open_effects[position] for position in state.held})
    for id, position in state.recent:
        engine.sequencer.remember(id, position)
    engine.sequencer.pass_over(tail.position, tail.time)


def _reopened(e: OpenEffect) -> Event:
    data = decode(e.type, e.raw)
    effect = effect_of(data)
    kind: Kind = "fact" if effect is not None and effect.answers else "decision"
    return Event(e.position, e.time, e.id, kind, e.actor, e.type, e.correlation, e.causation, data, e.raw)


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """SHA-256 of what follows, then the snapshot."""
    body = _encode(snapshot)
    return sha256(body).digest() + body


def decode_snapshot(raw: bytes) -> Snapshot | None:
    """The snapshot; None for anything damaged or of another format."""
    if sha256(raw[32:]).digest() != raw[:32]:
        return None
    try:
        snapshot = _decoder.decode(raw[32:])
    except msgspec.DecodeError:
        return None
    return snapshot if snapshot.format == FORMAT else None


def usable(raw: bytes, log_id: str, code: str, storage: StorageReader) -> Snapshot | None:
    """The snapshot, if it is of exactly this log and this code; None when it is stale, foreign or damaged."""
    snapshot = decode_snapshot(raw)
    if snapshot is None or snapshot.log_id != log_id or snapshot.code != code:
        return None
    position = snapshot.tail.position
    if not 0 < position <= storage.tail().position:
        return None
    try:
        return snapshot if event_at(storage, position).sum == snapshot.tail.sum else None
    except PmagentError:
        return None
