"""Values of any payload or document, as JSON has them, made from its type."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

from hypothesis import find
from hypothesis import strategies as st
from msgspec import inspect

from pmagent.contracts.payload import END

USUAL = (
    "0" * 64, "0" * 16, "12345678", "1.0.0", "2026-03-02T09:15:00Z", "2026-03-02T09:15:00.000000Z",
    "5b0c7a52-3f7e-4c1d-9a55-000000000001", "NAME", "name_1", "/x",
)  # fmt: skip
"""Texts that many patterns ask for; the search for others takes longer."""


class Made:
    """Makes values of types. ``turn``: of a choice, the ``turn``-th is taken. ``full``: nothing is left out.
    ``texts``: every text is the next of them, whether it keeps its type's bounds or not."""

    def __init__(self, turn: int = 0, *, full: bool = True, texts: Iterator[str] | None = None) -> None:
        self._turn = turn
        self._full = full
        self._given = texts
        self.texts = 0

    def of(self, shape: inspect.Type) -> Any:
        """A value of this shape."""
        match shape:
            case inspect.Metadata(type=inner):
                return self.of(inner)
            case inspect.StrType() | inspect.AnyType() | inspect.RawType():
                return self._text(shape)
            case inspect.LiteralType(values=values):
                return values[self._turn % len(values)]
            case inspect.StructType():
                return self._struct(shape)
            case inspect.CollectionType(item_type=item, min_length=least):
                return [self.of(item) for _ in range(max(least or 0, int(self._full)))]
            case inspect.TupleType(item_types=items):
                return [self.of(item) for item in items]
            case inspect.DictType(key_type=key, value_type=value):
                return {str(self.of(key)): self.of(value) for _ in range(max(shape.min_length or 0, int(self._full)))}
            case inspect.UnionType(types=types):
                return self._member(types)
            case inspect.IntType(ge=least) | inspect.FloatType(ge=least):
                return self._number(shape, least)
        return {inspect.BoolType: self._turn % 2 == 0, inspect.NoneType: None}[type(shape)]

    def _struct(self, shape: inspect.StructType) -> dict[str, Any]:
        tag = {} if shape.tag_field is None else {shape.tag_field: shape.tag}
        wanted = [field for field in shape.fields if self._full or field.required]
        return tag | {field.encode_name: self.of(field.type) for field in wanted}

    def _member(self, types: tuple[inspect.Type, ...]) -> Any:
        """Of a choice of types; None where it may be left out."""
        there = [one for one in types if not isinstance(one, inspect.NoneType)]
        return None if len(there) < len(types) and not self._full else self.of(there[self._turn % len(there)])

    def _number(self, shape: inspect.IntType | inspect.FloatType, least: float | None) -> float:
        below = shape.gt if shape.gt is not None else None if least is None else least - 1
        number = 1 if below is None else below + 1
        most = shape.le if shape.le is not None else number
        return number if isinstance(shape, inspect.IntType) else min(number + 0.5, most)

    def _text(self, shape: inspect.Type) -> str:
        self.texts += 1
        if self._given is not None:
            return next(self._given)
        if isinstance(shape, inspect.StrType):
            return _fitting(shape.pattern or "", shape.min_length or 0, shape.max_length or 10_000)
        return "x"


@functools.cache
def _fitting(pattern: str, shortest: int, longest: int) -> str:
    """A text that keeps the bounds."""

    def fits(text: str) -> bool:
        return shortest <= len(text) <= longest and re.search(pattern, text) is not None

    plain = next(filter(fits, ("x" * max(shortest, 1), *USUAL)), None)
    return plain if plain is not None else find(st.from_regex(pattern.replace(END, r"\Z")), fits)


def made(cls: type[Any]) -> Iterator[Any]:
    """Different values of a type: the least, and two that lack nothing."""
    shape = inspect.type_info(cls)
    yield Made(full=False).of(shape)
    yield from (Made(turn).of(shape) for turn in (0, 1))
