"""Which blobs an event names: a field of a payload that holds a blob's SHA-256 says so in its type
(docs/design.md §2.6).

    class Picture(...):
        sha256: Annotated[str, blob()]

``blobs_named`` finds those fields in any payload, however deep, by its type alone. A payload that lies in a blob as a
whole names that blob and those in it. Of a type that this release does not know, a value counts that has exactly the
shape in which an event refers to a blob: ``{sha256, size, media_type}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import inspect

from pmagent.contracts.control import Pruned
from pmagent.contracts.payload import in_blob, typed, types
from pmagent.events.errors import CorruptLog, PmagentError
from pmagent.events.event import StoredEvent
from pmagent.events.named_blobs import Dropped, NamedBlob
from pmagent.events.storage import BLOB_PREFIX, Blobs

NEEDLES: Final = (b'sha256":"', b'"checksum":"', b'"type":"control.pruned"')
"""One of them stands in every line that names a blob, in a marked field, or gives one up."""

_REFERENCE: Final = frozenset(("sha256", "size", "media_type"))
_Finder = Callable[[Any], Iterator[NamedBlob]]


def blobs_named(event: StoredEvent, store: Blobs) -> Iterator[NamedBlob]:
    """The blobs that ``event`` names. ``store`` is read where the whole payload lies in a blob; where that one is bad,
    nobody knows what it names."""
    raw = bytes(event.data)
    if raw.startswith(BLOB_PREFIX):
        try:
            named = in_blob(raw)
        except msgspec.DecodeError:
            start = len(BLOB_PREFIX)
            yield NamedBlob(raw[start : start + 64].decode("ascii", "replace"), None)
            return
        yield NamedBlob(*named)
        if event.type in types() and _finder_of(event.type) is None:
            return
        try:
            raw = store.get(named[0])
        except (PmagentError, OSError):
            return
    find = _finder_of(event.type) if event.type in types() else _references
    if find is not None:
        try:
            yield from find(msgspec.json.decode(raw))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # it is not of its type's shape, which whoever reads it is told


def blobs_dropped(event: StoredEvent, store: Blobs) -> Dropped | None:
    """The blobs that ``event`` gives up; None for an event that gives up none, or whose payload cannot be read."""
    if event.type != "control.pruned" or event.kind != "fact":
        return None
    try:
        data = typed(event, store).data
    except CorruptLog:  # whoever reads it is told
        return None
    return Dropped(data.until, data.blobs) if isinstance(data, Pruned) else None


def payload_blob(event: StoredEvent) -> str:
    """The SHA-256 of the blob in which the payload of ``event`` lies; "": it lies in the line, or is none."""
    raw = bytes(event.data)
    try:
        return in_blob(raw)[0] if raw.startswith(BLOB_PREFIX) else ""
    except msgspec.DecodeError:
        return ""


@cache
def _finder_of(name: str) -> _Finder | None:
    """Finds the blobs in a decoded payload of the event type ``name``; None where its type has no such field."""
    return _finder(inspect.type_info(types()[name]), ())


def _finder(of: inspect.Type, above: tuple[type, ...]) -> _Finder | None:
    """The same for a part of a payload; ``above``: the structs that it is a part of."""
    match of:
        case inspect.Metadata(type=inner):
            return _finder(inner, above)
        case inspect.StructType(cls=cls, fields=fields) if cls not in above:
            parts = {field.encode_name: _finder(field.type, (*above, cls)) for field in fields}
            inside = {name: find for name, find in parts.items() if find is not None}
            marks = {field.encode_name: mark for field in fields if (mark := mark_of(field.type)) is not None}
            return _in_struct(inside, marks) if inside or marks else None
        case inspect.CollectionType(item_type=item) | inspect.VarTupleType(item_type=item):
            return _each(_finder(item, above), lambda value: value if isinstance(value, list) else ())
        case inspect.DictType(value_type=item):
            return _each(_finder(item, above), lambda value: value.values() if isinstance(value, dict) else ())
        case inspect.UnionType(types=members):
            finders = [find for member in members if (find := _finder(member, above)) is not None]
            return (lambda value: (blob for find in finders for blob in find(value))) if finders else None
    return None


def mark_of(of: inspect.Type) -> tuple[str, str] | None:
    """The annotation that ``pmagent.contracts.payload.blob`` gave a field of this type; None: it names no blob."""
    if isinstance(of, inspect.Metadata):
        return (of.extra or {}).get("blob") or mark_of(of.type)
    return None


def _in_struct(inside: dict[str, _Finder], marks: dict[str, tuple[str, str]]) -> _Finder:
    def find(value: Any) -> Iterator[NamedBlob]:
        if not isinstance(value, dict):
            return
        for name, (size, kept) in marks.items():
            if value.get(name) and (not kept or value.get(kept, True)):
                stated_size = value.get(size)
                yield NamedBlob(str(value[name]), stated_size if isinstance(stated_size, int) else None)
        for name, part in inside.items():
            yield from part(value.get(name))

    return find


def _each(find: _Finder | None, items: Callable[[Any], Any]) -> _Finder | None:
    if find is None:
        return None
    return lambda value: (blob for item in items(value) for blob in find(item))


def _references(value: Any) -> Iterator[NamedBlob]:
    """References in a payload of a type that is not known."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if isinstance(value, dict) and value.keys() == _REFERENCE:
        sha256, size = value["sha256"], value["size"]
        if isinstance(sha256, str) and isinstance(size, int) and isinstance(value["media_type"], str):
            yield NamedBlob(sha256, size)
    for item in items:
        yield from _references(item)
