"""The results of Python's own functions and operators for values that are known; pure.

Only what programs use to spell the names and the edges of their graphs. Sizes are bounded: what would get larger is
unknown.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, cast

from pmagent.actors.audit.graphs.values import (
    UNKNOWN,
    Builder,
    Class,
    Const,
    Func,
    Inst,
    Map,
    Member,
    OneOf,
    Seq,
    Value,
    constant,
    key,
    one_of,
    text_of,
)

SIZE_MAX: Final = 5_000
"""Longest string or collection that is worked out."""
NUMBER_MAX: Final = 1_000_000_000

_OPERATORS: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: lambda one, other: one + other,
    ast.Sub: lambda one, other: one - other,
    ast.Mult: lambda one, other: one * other,
    ast.FloorDiv: lambda one, other: one // other,
    ast.Mod: lambda one, other: one % other,
}
_COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: lambda one, other: one == other,
    ast.NotEq: lambda one, other: one != other,
    ast.Lt: lambda one, other: one < other,
    ast.LtE: lambda one, other: one <= other,
    ast.Gt: lambda one, other: one > other,
    ast.GtE: lambda one, other: one >= other,
    ast.Is: lambda one, other: one is other,
    ast.IsNot: lambda one, other: one is not other,
}


def items_of(value: Value) -> Seq | None:
    """The items met when a value is iterated over; None: unknown."""
    if isinstance(value, Seq):
        return value
    if isinstance(value, Map):
        return Seq([name for name, _ in value.entries.values()], open=value.open, bounded=value.bounded)
    if isinstance(value, Class):
        members = distinct([member for member in value.members.values() if isinstance(member, Member)])
        return Seq(members) if members else None
    if (text := text_of(value)) is not None and len(text) <= SIZE_MAX:
        return Seq([Const(character) for character in text])
    return None


def added(operator: ast.operator, one: Value, other: Value) -> Value:
    """The result of an arithmetic operator."""
    if isinstance(one, Seq) and isinstance(other, Seq) and isinstance(operator, ast.Add):
        return sequence([*one.items, *other.items], one.kind, is_open=one.open or other.open)
    if isinstance(one, Seq) and isinstance(operator, ast.Mult) and (times := constant(other)) is not None:
        count = times.value
        if isinstance(count, int) and count * len(one.items) <= SIZE_MAX:
            return Seq(one.items * count, one.kind, one.open)
    if isinstance(one, Map) and isinstance(other, Map) and isinstance(operator, ast.BitOr):
        whole = Map(dict(one.entries), one.open)
        merge(whole, other)
        return whole
    if isinstance(one, Seq) and isinstance(other, Seq) and isinstance(operator, ast.BitOr):
        return sequence(distinct([*one.items, *other.items]), one.kind, is_open=one.open or other.open)
    if isinstance(one, OneOf) and not isinstance(other, OneOf) and len(one.options) <= 8:
        return one_of(added(operator, option, other) for option in one.options)
    if isinstance(other, OneOf) and not isinstance(one, OneOf) and len(other.options) <= 8:
        return one_of(added(operator, one, option) for option in other.options)
    return _arithmetic(operator, _plain(one), _plain(other))


def _plain(value: Value) -> str | int | None:
    """A string or a number that arithmetic is done with."""
    if (text := text_of(value)) is not None:
        return text
    if isinstance(value, Const) and isinstance(value.value, int):
        return value.value
    return None


def _arithmetic(operator: ast.operator, one: str | int | None, other: str | int | None) -> Value:
    work = _OPERATORS.get(type(operator))
    if one is None or other is None or work is None or (isinstance(one, str) and isinstance(operator, ast.Mod)):
        return UNKNOWN
    if (
        isinstance(operator, ast.Mult)
        and isinstance(one, str) is not isinstance(other, str)
        and _size(one) * _size(other) > SIZE_MAX
    ):
        return UNKNOWN
    try:
        result = work(one, other)
    except (TypeError, ValueError, ArithmeticError, LookupError):
        return UNKNOWN
    return Const(result) if isinstance(result, str | int) and _bounded(result) else UNKNOWN


def _size(value: str | int) -> int:
    return abs(value) if isinstance(value, int) else len(value)


def _bounded(value: str | int) -> bool:
    return _size(value) <= (NUMBER_MAX if isinstance(value, int) else SIZE_MAX)


def sequence(items: list[Value], kind: Literal["list", "tuple", "set"] = "list", *, is_open: bool = False) -> Seq:
    """A sequence that is not too long; of a longer one, the beginning."""
    return Seq(items[:SIZE_MAX], kind, is_open or len(items) > SIZE_MAX)


def extend(owner: Seq, more: Value) -> None:
    """Add to a list all that is in another value."""
    found = items_of(more)
    room = max(SIZE_MAX - len(owner.items), 0)
    owner.bounded = (
        (owner.bounded or not owner.open) and found is not None and not found.more and len(found.items) <= room
    )
    owner.open = owner.open or found is None or found.open or len(found.items) > room
    owner.items.extend(found.items[:room] if found is not None else [])


def merge(owner: Map, more: Value) -> None:
    """Add to a dict all that is in another value."""
    owner.bounded = (owner.bounded or not owner.open) and isinstance(more, Map) and (more.bounded or not more.open)
    owner.open = owner.open or not isinstance(more, Map) or more.open
    if isinstance(more, Map) and len(owner.entries) + len(more.entries) <= SIZE_MAX:
        owner.entries.update(more.entries)
    else:
        owner.open, owner.bounded = True, False


def compared(operator: ast.cmpop, one: Value, other: Value) -> bool | None:
    """The result of a comparison; None: not known."""
    if isinstance(operator, ast.In | ast.NotIn):
        found = items_of(other)
        if found is None or found.open or not all(map(_known, [one, *found.items])):
            return None
        return (_settled(one) in map(_settled, found.items)) == isinstance(operator, ast.In)
    if not (_known(one) and _known(other)):
        if isinstance(operator, ast.Is | ast.IsNot) and isinstance(one, Func | Inst | Map | Seq | Builder):
            both = constant(other)
            return isinstance(operator, ast.IsNot) if both is not None and both.value is None else None
        return None
    try:
        return _COMPARISONS[type(operator)](_settled(one), _settled(other))
    except TypeError:
        return None


def _known(value: Value) -> bool:
    return isinstance(value, Const | Member) or text_of(value) is not None


def _settled(value: Value) -> object:
    """The key that a known value is compared by: a member of an enumeration of strings is equal to its string."""
    text = text_of(value)
    if text is not None:
        return text
    return value.value if isinstance(value, Const) else key(value)


def truth(value: Value) -> bool | None:
    """Whether a value counts as true; None: not known."""
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, Seq | Map):
        full = bool(value.items if isinstance(value, Seq) else value.entries)
        return full if not value.open else None
    return True if isinstance(value, Func | Builder | Class | Member) else None


def distinct(items: Sequence[Value]) -> list[Value]:
    """Each of equal values once."""
    return list({key(item): item for item in items}.values())


def called(name: str, args: Sequence[Value], named: Mapping[str, Value]) -> Value | None:
    """The result of a function of Python's own; None: not one of those that are worked out."""
    work = _FUNCTIONS.get(name)
    if work is None:
        return None
    if name == "enumerate" and "start" in named:
        args = [*args, named["start"]]
    return work(args) if args else UNKNOWN


def _range(args: Sequence[Value]) -> Value:
    numbers = [arg.value for arg in args if isinstance(arg, Const) and isinstance(arg.value, int)]
    if len(numbers) != len(args) or (len(numbers) == 3 and numbers[2] == 0) or len(numbers) > 3:
        return UNKNOWN
    whole = range(*numbers)
    return Seq([Const(number) for number in whole]) if whole[: SIZE_MAX + 1] == whole else UNKNOWN


def _enumerate(args: Sequence[Value]) -> Value:
    found = items_of(args[0])
    start = constant(args[1] if len(args) > 1 else Const(0))
    if found is None or start is None or not isinstance(start.value, int):
        return UNKNOWN
    first = start.value
    return Seq([Seq([Const(first + at), item], "tuple") for at, item in enumerate(found.items)], open=found.open)


def _zip(args: Sequence[Value]) -> Value:
    found = [items_of(arg) for arg in args]
    columns = [one for one in found if one is not None]
    if len(columns) != len(found) or any(one.open for one in columns):
        return UNKNOWN
    return Seq([Seq(list(row), "tuple") for row in zip(*(one.items for one in columns), strict=False)])


def _copy(args: Sequence[Value]) -> Value:
    found = items_of(args[0])
    return UNKNOWN if found is None else Seq(list(found.items), open=found.open, bounded=found.bounded)


def _set(args: Sequence[Value]) -> Value:
    found = items_of(args[0])
    return UNKNOWN if found is None else Seq(distinct(found.items), "set", found.open, found.bounded)


def _reversed(args: Sequence[Value]) -> Value:
    found = items_of(args[0])
    return UNKNOWN if found is None else Seq(found.items[::-1], open=found.open, bounded=found.bounded)


def _sorted(args: Sequence[Value]) -> Value:
    return ordered(args[0], items_of(args[0]))


def ordered(whole: Value, keys: Seq | None, *, backwards: bool = False) -> Value:
    """The items of a value, sorted by keys that are all texts or all numbers; else in an order that is not known."""
    found = items_of(whole)
    if found is None or keys is None:
        return UNKNOWN
    known = [_plain(one) for one in keys.items]
    if found.open or len({type(one) for one in known} - {bool}) > 1 or None in known:
        return Seq(list(found.items), open=True, bounded=not found.more)
    places = sorted(range(len(known)), key=lambda place: cast("Any", known[place]), reverse=backwards)
    return Seq([found.items[place] for place in places])


def _dict(args: Sequence[Value]) -> Value:
    first = args[0]
    if isinstance(first, Map):
        return Map(dict(first.entries), first.open, first.bounded)
    found = items_of(first)
    if found is None or not all(isinstance(item, Seq) and len(item.items) == 2 for item in found.items):
        return UNKNOWN
    pairs = [item.items for item in found.items if isinstance(item, Seq)]
    return Map({key(one): (one, other) for one, other in pairs}, found.open)


def _fromkeys(args: Sequence[Value]) -> Value:
    found = items_of(args[0])
    value = args[1] if len(args) > 1 else Const(None)
    return UNKNOWN if found is None else Map({key(item): (item, value) for item in found.items}, found.open)


def _len(args: Sequence[Value]) -> Value:
    found = items_of(args[0])
    return UNKNOWN if found is None or found.open else Const(len(found.items))


def _str(args: Sequence[Value]) -> Value:
    return shown(args[0])


def _pairwise(args: Sequence[Value]) -> Value:
    found = items_of(args[0])
    if found is None or found.open:
        return UNKNOWN
    return Seq([Seq(list(pair), "tuple") for pair in itertools.pairwise(found.items)])


def _chain(args: Sequence[Value]) -> Value:
    found = [items_of(arg) for arg in args]
    known = [one for one in found if one is not None]
    return Seq(
        [item for one in known for item in one.items], open=len(known) < len(found) or any(s.open for s in known)
    )


def _bool(args: Sequence[Value]) -> Value:
    decided = truth(args[0])
    return UNKNOWN if decided is None else Const(decided)


_FUNCTIONS: Final[Mapping[str, Callable[[Sequence[Value]], Value]]] = {
    "range": _range,
    "enumerate": _enumerate,
    "zip": _zip,
    "list": _copy,
    "tuple": _copy,
    "iter": _copy,
    "set": _set,
    "frozenset": _set,
    "reversed": _reversed,
    "sorted": _sorted,
    "dict": _dict,
    "fromkeys": _fromkeys,
    "len": _len,
    "str": _str,
    "pairwise": _pairwise,
    "chain": _chain,
    "bool": _bool,
}


def shown(value: Value, *, formatted: bool = False) -> Value:
    """``str(value)``, or ``format(value)``. Of members of an enumeration: its value where the enumeration is a
    ``StrEnum``, else class and name; but how a string that is a member is formatted hangs on Python's version."""
    if isinstance(value, OneOf):
        return one_of(shown(option, formatted=formatted) for option in value.options)
    if isinstance(value, Member) and not value.owner.named_by_value:
        own = {"__str__", "__format__"}.isdisjoint(value.owner.members)
        text = text_of(value)
        return Const(f"{value.owner.name}.{value.name}") if own and not (formatted and text is not None) else UNKNOWN
    plain = _plain(value)
    return UNKNOWN if plain is None else Const(str(plain))
