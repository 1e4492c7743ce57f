"""Payload types: how an event's ``type`` and its ``data`` belong together.

A payload type never changes its meaning or shape; a new shape is a new type with an upcaster from the old one
(docs/design.md §3.4). A type that this code does not know is carried as ``Unknown``, never dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, Protocol, TypeGuard, TypeVar

import msgspec

from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.event import Event, LogCreated, LogRecovered, LogTakenOver, StoredEvent
from pmagent.events.storage import BLOB_PREFIX

END: Final = r"(?![\s\S])"
"""The end of a text in a pattern: ``$`` would let a newline pass behind it."""


class Payload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every payload: immutable, strict, encoded field by field in the order of definition."""


class Scope(msgspec.Struct, frozen=True):
    """The scope of a permit: an action class (``feature_work``, docs/design.md §12.2) and the subject it acts on."""

    action: str
    subject: str


class OutwardRequest(Payload, frozen=True, kw_only=True):
    """Base of requests for outward effects. ``permit`` is the position of the ``oa.permit_granted`` it uses."""

    waits: ClassVar[bool] = True
    """Whether it may wait, permitted, while effects are paused, and start when they are resumed; else it is refused."""

    permit: int

    def scope(self) -> Scope:
        """The scope that the permit must have. Pure; every outward request type defines it."""
        raise TypeError(f"{type(self).__name__} does not define its scope")


class Correlated(msgspec.Struct, frozen=True):
    """A decision that belongs to another run, audit or session than the event that led to it: what an actor yields
    instead of the bare ``payload`` when it answers a request of ``correlation`` because of something else."""

    payload: Payload
    correlation: str


class Effect(msgspec.Struct, frozen=True):
    """How a request for an effect is treated by engine and runtime; one table, declared with the type.

    ``repeatable``: may be performed again after a crash; otherwise it ends as ``effect.interrupted``.
    ``limit_s``: seconds after which the performer is stopped (None: none). ``concurrency``: at most so many at once.
    ``bulky``: the outcome may be large, so it is redacted and encoded in a thread. ``attended``: it goes on only while
    the actor that asked for it does; with that one's halt it is cancelled. ``outcomes``: the event types of its own
    outcomes; besides these only the ``effect.*`` types of ``pmagent.contracts.effect`` end it.

    ``answers``: the effect belongs to a request that is a fact, and goes on until an actor answers that: a decision of
    one of these types, whose ``request`` names it, is its end. ``unless_unset``: the field without which a payload of
    the type requests no effect.
    """

    repeatable: bool
    limit_s: float | None = 60.0
    concurrency: int = 64
    bulky: bool = False
    attended: bool = False
    outcomes: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    unless_unset: str = ""


class Unknown(msgspec.Struct, frozen=True):
    """The payload of a type that this code does not know: its stored bytes, as they are."""

    type: str
    raw: bytes


P = TypeVar("P", bound=type[msgspec.Struct])

_TYPES: dict[str, type[msgspec.Struct]] = {}
_NAMES: dict[type, str] = {}
_EFFECTS: dict[type, Effect] = {}
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {}
_ANSWERING: set[str] = set()
_UPCASTS: dict[str, Callable[[Any], Any]] = {}
_ANSWERABLE: set[type] = set()
_OUTWARD: dict[type, bool] = {}
_encoder = msgspec.json.Encoder(order="deterministic")


def event_type(name: str, *, effect: Effect | None = None, request: bool = False) -> Callable[[P], P]:
    """Class decorator: ``name`` is the ``type`` of events that carry this payload.

    ``effect`` marks a request for an effect; ``request`` marks what somebody waits for an answer to, so that a
    halted actor's refusal is recorded. Raises ValueError for a name that is taken.
    """

    def register(cls: P) -> P:
        if name in _TYPES:
            raise ValueError(f"event type {name!r} is taken by {_TYPES[name].__name__}")
        _TYPES[name] = cls
        _NAMES[cls] = name
        _DECODERS[name] = msgspec.json.Decoder(cls)
        if effect is not None:
            _EFFECTS[cls] = effect
            _ANSWERING.update(effect.answers)
        if request:
            _ANSWERABLE.add(cls)
        return cls

    return register


def blob(size: str = "", kept: str = "") -> msgspec.Meta:
    """Part of a field's ``Annotated`` type that marks it as the SHA-256 of a blob that the event names. ``size``: the
    field beside it with the blob's size; ``kept``: the field beside it that says whether there is a blob at all."""
    return msgspec.Meta(extra={"blob": (size, kept)})


def upcast(old: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Function decorator: turns a payload of the retired type ``old`` into one of a current type. Pure."""

    def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        if old not in _TYPES:
            raise ValueError(f"no event type {old!r} to upcast from")
        if old in _UPCASTS:
            raise ValueError(f"event type {old!r} has an upcaster already")
        _UPCASTS[old] = function
        return function

    return register


def type_of(payload: object) -> str:
    """The event type of a payload. Raises TypeError for an object of no registered type."""
    if (name := _NAMES.get(type(payload))) is not None:
        return name
    if isinstance(payload, Unknown):
        return payload.type
    raise TypeError(f"{type(payload).__name__} is not a registered payload type")


def effect_of(payload: object) -> Effect | None:
    """How the effect that ``payload`` requests is treated; None if it requests none."""
    effect = _EFFECTS.get(type(payload))
    if effect is not None and effect.unless_unset and getattr(payload, effect.unless_unset) is msgspec.UNSET:
        return None
    return effect


def is_repeatable(payload: object) -> bool:
    """Whether ``payload`` requests an effect that may be performed again after a crash."""
    effect = effect_of(payload)
    return effect is not None and effect.repeatable


def requests_effect(cls: type) -> bool:
    """Whether payloads of this type request an effect."""
    return cls in _EFFECTS


def is_outward(payload: object) -> TypeGuard[OutwardRequest]:
    """Whether this is a request for an outward effect. Each type is looked up once: to ask a struct's type for its
    subclasses takes ten times as long."""
    cls = type(payload)
    found = _OUTWARD.get(cls)
    return found if found is not None else _OUTWARD.setdefault(cls, issubclass(cls, OutwardRequest))


def may_answer(cls: type) -> bool:
    """Whether decisions of this type may end an effect that goes on until its request is answered."""
    return _NAMES.get(cls) in _ANSWERING


def is_request(payload: object) -> bool:
    """Whether somebody waits for an answer to this payload."""
    return type(payload) in _ANSWERABLE


def type_count() -> int:
    """How many event types are registered; it only grows."""
    return len(_TYPES)


def types() -> dict[str, type[msgspec.Struct]]:
    """Every registered event type, by name (a copy)."""
    return dict(_TYPES)


def encode(payload: object) -> bytes:
    """The payload's bytes in the log: JSON, fields in the order of definition, foreign mappings sorted by key."""
    return payload.raw if isinstance(payload, Unknown) else _encoder.encode(payload)


def decode(name: str, raw: bytes | msgspec.Raw) -> Any:
    """The payload that ``raw`` encodes, upcast to a current type; ``Unknown`` for a type that is not registered.

    Raises msgspec.ValidationError when the bytes do not have the type's shape.
    """
    decoder = _DECODERS.get(name)
    if decoder is None:
        return Unknown(name, bytes(raw))
    payload = decoder.decode(raw)
    if _UPCASTS:
        while (step := _UPCASTS.get(_NAMES[type(payload)])) is not None:
            payload = step(payload)
    return payload


class BlobSource(Protocol):
    """Where the content of large facts lies."""

    def get(self, sha256: str) -> bytes:
        """The content with this hash, checked against it. Raises NotFound, CorruptLog."""


class _BlobRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sha256: str
    size: int
    media_type: str


class _InBlob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    blob: _BlobRef


_in_blob = msgspec.json.Decoder(_InBlob)


def in_blob(raw: bytes) -> tuple[str, int]:
    """SHA-256 and size of the blob in which a payload lies as a whole. Raises msgspec.DecodeError."""
    try:
        named = _in_blob.decode(raw).blob
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("a text is not UTF-8") from error
    return named.sha256, named.size


def typed(stored: StoredEvent, blobs: BlobSource | None = None) -> Event:
    """The event as actors see it: payload decoded, fetched from the blob store if it lies there.

    Raises CorruptLog when the stored bytes do not have the shape of their type (a release never changes one), or the
    blob that they name is gone or damaged.
    """
    content = raw = bytes(stored.data)
    decoder = _DECODERS.get(stored.type)
    try:
        if raw.startswith(BLOB_PREFIX):
            content = _fetched(_in_blob.decode(raw).blob.sha256, stored.position, blobs)
        # The same as decode(), without the call: this is where replay spends its time.
        data = decode(stored.type, content) if decoder is None or _UPCASTS else decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CorruptLog("", 0, stored.position, f"not a {stored.type}: {error}") from error
    return Event(
        stored.position, stored.time, stored.id, stored.kind, stored.actor, stored.type,
        stored.correlation, stored.causation, data, raw,
    )


def _fetched(digest: str, position: int, blobs: BlobSource | None) -> bytes:
    """The content of the blob that the event at ``position`` names. Raises CorruptLog, which says where it is named."""
    if blobs is None:
        raise CorruptLog("", 0, position, "the payload lies in a blob, and no blob store is at hand")
    try:
        return blobs.get(digest)
    except NotFound as error:
        raise CorruptLog("", 0, position, error.message) from error
    except CorruptLog as error:
        raise CorruptLog(error.file, error.offset, position, error.reason) from error


event_type("log.created")(LogCreated)
event_type("log.recovered")(LogRecovered)
event_type("log.taken_over")(LogTakenOver)
