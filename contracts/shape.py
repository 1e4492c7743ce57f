"""Values as contract types; what does not fit is told as the path, what was found, and what may stand there.

The words come from the types' own descriptions, so they are the same with every version of every library.
"""

from __future__ import annotations

import functools
import json
import types
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

S = TypeVar("S", bound=msgspec.Struct)

SHOWN_CHARS: Final = 60
NAMES_SHOWN: Final = 12


class Misfit(ValueError):
    """A value that does not fit. ``message`` says where and what (as ``policies.x is -1``), ``hint`` what may stand
    there."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def fit(value: Any, cls: type[S], root: str = "") -> S:
    """The value as a ``cls``. ``root`` is the path of the value itself. Raises Misfit for the first part, in the order
    of the type's fields, that does not fit."""
    try:
        return msgspec.convert(value, cls)
    except msgspec.ValidationError:
        _check(value, cls, root)
        raise  # not reached while ``_check`` looks at all that the type says


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint: the known name that ``name`` is closest to, if fewer than half of its characters are other ones; else all
    of them. It may stand in a decision, so it is computed here, where no version of a library changes it."""
    names = list(known)
    far = [(_slips(name[:SHOWN_CHARS], one), place) for place, one in enumerate(names)]
    slips, place = min(far, default=(0, 0))
    if names and 2 * slips <= max(len(name[:SHOWN_CHARS]), len(names[place])):
        return f"did you mean {names[place]}?"
    return f"there are: {', '.join(names[:NAMES_SHOWN])}{', …' if len(names) > NAMES_SHOWN else ''}"


def _slips(one: str, other: str) -> int:
    """How many characters were left out, added, taken for another or swapped with the next, at least, between the two
    (Damerau's distance, in which no place is changed twice)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, char in enumerate(one, 1):
        above, row = row, [i]
        for j, its in enumerate(other, 1):
            slips = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (char != its))
            if i > 1 and j > 1 and char == other[j - 2] and its == one[i - 2]:
                slips = min(slips, before[j - 2] + 1)
            row.append(slips)
        before = above
    return row[-1]


def shown(value: Any) -> str:
    """A value as a message shows it: a scalar itself, in ASCII and cut, else what kind of thing it is."""
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    if value is None:
        return "nothing (null)"
    text = json.dumps(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def _check(value: Any, kind: Any, path: str, inherited: str = "") -> None:
    bare, description = _stripped(kind)
    inherited = description or inherited
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        _check_struct(value, bare, path)
        return
    origin, inner = get_origin(bare), get_args(bare)
    if origin in (Union, types.UnionType) and type(None) in inner:
        if value is not None:
            _check(value, Union[tuple(one for one in inner if one is not type(None))], path, inherited)  # noqa: UP007
        return
    if origin is list and isinstance(value, list):
        for number, item in enumerate(value):
            _check(item, inner[0], f"{path}[{number}]")
    elif origin is dict and isinstance(value, dict):
        for key, item in value.items():
            _leaf(key, inner[0], f"{path}: a name", "")
            _check(item, inner[1], f"{path}.{_cut(key)}")
    _leaf(value, kind, path, inherited)


def _check_struct(value: Any, cls: type[msgspec.Struct], path: str) -> None:
    if not isinstance(value, dict):
        raise Misfit(f"{path or 'the whole'} is {shown(value)}", f"it must be a mapping: {_names(cls)}")
    fields = _fields(cls)
    for name in value:
        if name not in fields:
            raise Misfit(f"there is no {_joined(path, _cut(name))}", nearest(name, fields))
    for name, (kind, required) in fields.items():
        place = _joined(path, name)
        if name in value:
            _check(value[name], kind, place)
        elif required:
            raise Misfit(f"{place} is missing", f"it must be {_wanted(kind, '')}")


@functools.cache
def _fields(cls: type[msgspec.Struct]) -> dict[str, tuple[Any, bool]]:
    """A struct's encoded names, each with its type and whether it is required. Kept: a plan has 10,000 tasks."""
    hints = get_type_hints(cls, include_extras=True)
    return {one.encode_name: (hints[one.name], one.required) for one in msgspec.structs.fields(cls)}


def _leaf(value: Any, kind: Any, path: str, inherited: str) -> None:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        raise Misfit(f"{path} is {shown(value)}", f"it must be {_wanted(kind, inherited)}") from None


def _stripped(kind: Any) -> tuple[Any, str]:
    """The type without its annotations, and their outermost description."""
    description = ""
    while get_origin(kind) is Annotated:
        kind, *metas = get_args(kind)
        description = description or next((meta.description for meta in metas if meta.description), "")
    return kind, description


_PLAIN: Final[dict[Any, str]] = {bool: "true or false", str: "a text", int: "a whole number", dict: "a mapping"}


def _wanted(kind: Any, inherited: str) -> str:
    bare, description = _stripped(kind)
    if description or inherited:
        return description or inherited
    if get_origin(bare) is Literal:
        return " or ".join(value if str(value)[0].isalpha() else json.dumps(value) for value in get_args(bare))
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        return f"a mapping: {_names(bare)}"
    return _PLAIN.get(get_origin(bare) or bare, "of another kind")


def _names(cls: type[msgspec.Struct]) -> str:
    return ", ".join(_fields(cls))


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _cut(name: str) -> str:
    """A key as it is shown in a path; quoted where it is no plain word."""
    short = name if len(name) <= SHOWN_CHARS else name[:SHOWN_CHARS] + "…"
    return short if short.replace("_", "a").isascii() and short.replace("_", "a").isalnum() else json.dumps(short)
