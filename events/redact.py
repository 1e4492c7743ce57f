"""The redactor: no secret enters the log or a blob (docs/design.md §2.7).

Everything from outside passes it, on values and before encoding. Two ways of knowing a secret: its shape
(``pmagent.events.secret_shapes``), and exact match with the secrets that this process was told, also encoded and
escaped (``pmagent.events.secret_forms``). The exact match is the near-certain one; the shapes catch the rest's bulk. In
content of blobs, which nobody waits for, more is found (``pmagent.events.redact_content``).

Masking what is masked changes nothing. Keys of a mapping that become equal are told apart by a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache, lru_cache
from typing import Any, Final
from urllib.parse import unquote
from uuid import UUID

import msgspec

from pmagent.events import secret_forms
from pmagent.events.redact_content import PASSES, ContentMasker, shape_spans
from pmagent.events.redact_stream import RedactionStream
from pmagent.events.redact_views import has_unseen
from pmagent.events.secret_forms import SECRET_CHARS_MIN, text_forms, usable
from pmagent.events.secret_shapes import JWK_PRIVATE, SECRET_VARIABLE, TELLING_NAME, URL_PASSWORD, Shape, shapes_in

MASK: Final = secret_forms.MASK
"""The replacement for a secret."""

DEPTH_MAX: Final = 150
"""How deeply a value may nest."""

_NO_TEXT: Final = (date, time, timedelta, Decimal, Enum, UUID, msgspec.UnsetType)
"""Types that can be encoded and cannot hold a secret, besides numbers."""

_PLAIN: Final = frozenset((int, float, bool, type(None)))
"""Types whose values need no look."""

_NOTHING: Final = object()

_CLEAN_MAX: Final = 4096
_CLEAN_CHARS_MAX: Final = 100

_PART_BYTES_MAX: Final = 2000
_encode: Final = msgspec.json.Encoder().encode

_SHAPELESS: Final[set[str]] = set()
"""Short texts in which no shape can stand, whatever a redactor was told: most come again with every process."""

_LONG: Final = 4096
"""In longer text, searching form by form is the faster way to find that there is none."""


@lru_cache(maxsize=1024)
def _is_telling(name: str) -> bool:
    """Whether a key says that it holds a secret. The same ones come again and again."""
    return TELLING_NAME.search(name) is not None


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[tuple[str, bool], ...]:
    """The fields of a type, and whether the field's name says that it holds a secret. There are as many types as
    payloads are made of."""
    return tuple((field, TELLING_NAME.search(field) is not None) for field in struct.__struct_fields__)


def secrets_in(environment: Mapping[str, str]) -> list[str]:
    """The secrets in environment variables: values of those whose names say so (``*_KEY``, ``*_TOKEN``, …), and
    passwords in URLs."""
    named = [value for name, value in environment.items() if SECRET_VARIABLE.search(name)]
    in_urls = [password for value in environment.values() for password in URL_PASSWORD.findall(value)]
    found = [*named, *in_urls, *map(unquote, in_urls)]
    return list(dict.fromkeys(secret.strip() for secret in found if secret.strip()))


class Redactor:
    """Masks secrets in values. ``known``: exact secrets of this process, beside the shapes."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        secrets = [secret for secret in known if len(secret) >= SECRET_CHARS_MIN]
        self._forms = usable(form for secret in secrets for form in text_forms(secret))
        self._known = re.compile("|".join(map(re.escape, self._forms))) if self._forms else None
        self._content = ContentMasker(secrets)
        self._clean: set[str] = set()
        """Short texts that were found to hold no secret: ids and names come again with every event."""
        self._clean_parts: set[tuple[type, int, bytes]] = set()
        """Small structs within others, as they are encoded, that were found to hold none."""

    def text(self, text: str) -> str:
        """``text`` with each secret replaced by ``MASK``; the same object when there is none."""
        if len(text) < SECRET_CHARS_MIN or text in self._clean:
            return text
        if has_unseen(text):  # terminal output, mostly
            masked = self._content.mask(text).text
            return text if masked == text else masked
        before = text
        for _ in range(PASSES):
            masked = self._masked(before)
            if masked == before:
                break
            before = masked
        if before != text:
            return before
        if len(text) <= _CLEAN_CHARS_MAX:
            if len(self._clean) >= _CLEAN_MAX:
                self._clean.clear()
            self._clean.add(text)
        return text

    def content(self, content: bytes) -> bytes:
        """``content`` of a blob, with each secret replaced; bytes that are not text pass unchanged around them."""
        stream = self.stream()
        masked = stream.feed(content) + stream.finish()
        return content if masked == content else masked

    def stream(self) -> RedactionStream:
        """``content`` for input that comes in pieces."""
        return RedactionStream(self._content)

    def value(self, value: Any) -> Any:
        """``value`` with each secret in each string at any depth replaced, keys included; the same object when there
        is none. Structs stay of their type. A secret under a telling name (``{"password": …}``) is masked too.

        Raises TypeError for a value that nests deeper than ``DEPTH_MAX``, or is of a type that is not looked into.
        """
        return self._value(value, DEPTH_MAX)

    def _masked(self, text: str) -> str:
        if self._known is not None and (len(text) < _LONG or any(form in text for form in self._forms)):
            text = self._known.sub(MASK, text)
        if text in _SHAPELESS:
            return text
        shapes = shapes_in(text)
        for shape in shapes:
            text = _mask_shape(shape, text)
        if not shapes and len(text) <= _CLEAN_CHARS_MAX:
            if len(_SHAPELESS) >= _CLEAN_MAX:
                _SHAPELESS.clear()
            _SHAPELESS.add(text)
        return text

    def _value(self, value: Any, depth: int) -> Any:
        cls = type(value)  # nearly every value is of one of five types; others take the way through all questions
        if cls is str or isinstance(value, str):
            return self.text(value)
        if cls in _PLAIN or isinstance(value, (int, float)):
            return value
        if depth == 0:
            raise TypeError(f"the value nests deeper than {DEPTH_MAX}")
        if cls is dict or isinstance(value, dict):
            return self._mapping(value, depth - 1)
        if cls is list or isinstance(value, (list, tuple)):
            return self._sequence(value, depth - 1)
        if isinstance(value, msgspec.Struct):
            return self._struct(value, depth - 1)
        if isinstance(value, (set, frozenset)):
            return type(value)(self._sequence(list(value), depth - 1))
        if isinstance(value, msgspec.Raw):
            return self._raw(value, depth - 1)
        if isinstance(value, (bytes, bytearray)):
            masked = self.content(bytes(value))
            return value if masked == value else type(value)(masked)
        if isinstance(value, _NO_TEXT):
            return value
        raise TypeError(f"a {type(value).__name__} cannot be searched for secrets")

    def _sequence(self, value: list[Any] | tuple[Any, ...], depth: int) -> Any:
        changed = []
        same = True
        new = before = _NOTHING
        for item in value:
            if item is not before:  # a program may have said one line ten thousand times
                new, before = self._value(item, depth), item
            changed.append(new)
            same = same and new is item
        if same:
            return value
        make = getattr(value, "_make", type(value))  # a named tuple takes its items one by one
        return make(changed)

    def _mapping(self, value: dict[Any, Any], depth: int) -> dict[Any, Any]:
        changed: dict[Any, Any] = {}
        same = True
        is_jwk = "kty" in value
        for key, item in value.items():
            new_key = self._value(key, depth)
            secret = is_jwk and key in JWK_PRIVATE and isinstance(item, str) and item
            new = MASK if secret and item != MASK else self._named(key, item, depth)
            same = same and new_key is key and new is item
            changed[new_key if new_key is key else _free(new_key, changed, value)] = new
        return value if same else changed

    def _named(self, key: Any, item: Any, depth: int) -> Any:
        if isinstance(key, str) and (_is_telling(key) if len(key) <= _CLEAN_CHARS_MAX else TELLING_NAME.search(key)):
            if isinstance(item, str):
                return MASK if item and item != MASK else item
            if isinstance(item, (list, tuple)) and all(isinstance(inner, str) for inner in item):
                return item if all(inner == MASK for inner in item) else [MASK] * len(item)
        return self._value(item, depth)

    def _struct(self, value: msgspec.Struct, depth: int) -> msgspec.Struct:
        changes, clean = {}, self._clean
        for (name, telling), old in zip(_fields(type(value)), msgspec.structs.astuple(value), strict=True):
            cls = type(old)
            if cls in _PLAIN or (cls is str and (not old or old in clean) and not telling) or (cls is list and not old):
                continue
            if telling:
                new = self._named(name, old, depth)
            elif cls is str:
                new = self.text(old)
            elif cls is list and depth:
                new = self._sequence(old, depth - 1)
            elif isinstance(old, msgspec.Struct) and depth:
                new = self._part(old, depth - 1)
            else:
                new = self._value(old, depth)
            if new is not old:
                changes[name] = new
        return msgspec.structs.replace(value, **changes) if changes else value

    def _part(self, value: msgspec.Struct, depth: int) -> msgspec.Struct:
        """``_struct``, but for what the log has in these bytes already: it is as clean as it was."""
        try:
            key = type(value), depth, _encode(value)
        except (TypeError, ValueError, RecursionError):  # the intake tells of it
            return self._struct(value, depth)
        if key in self._clean_parts:
            return value
        masked = self._struct(value, depth)
        if masked is value and len(key[2]) <= _PART_BYTES_MAX:
            if len(self._clean_parts) >= _CLEAN_MAX:
                self._clean_parts.clear()
            self._clean_parts.add(key)
        return masked

    def _raw(self, value: msgspec.Raw, depth: int) -> msgspec.Raw:
        try:
            inner = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return msgspec.Raw(self.content(bytes(value)))
        changed = self._value(inner, depth)
        return value if changed is inner else msgspec.Raw(msgspec.json.encode(changed))


def _mask_shape(shape: Shape, text: str) -> str:
    parts: list[str] = []
    at = 0
    for start, end in shape_spans(shape, text):
        parts += text[at:start], MASK
        at = end
    return "".join((*parts, text[at:])) if parts else text


def _free(key: Any, taken: Mapping[Any, Any], original: Mapping[Any, Any]) -> Any:
    """``key``, or, when it is taken, with a number."""
    number, free = 1, key
    while free in taken or free in original:
        number += 1
        free = f"{key} {number}"
    return free
