"""Attributes, items, classes and instances of the audited program; pure."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from pmagent.actors.audit.graphs.pure import SIZE_MAX, items_of
from pmagent.actors.audit.graphs.scope import Scope
from pmagent.actors.audit.graphs.values import (
    UNKNOWN,
    Builder,
    Class,
    Compiled,
    Const,
    External,
    Func,
    Inst,
    Map,
    Member,
    Method,
    OneOf,
    Seq,
    Super,
    Thing,
    Value,
    alternatives,
    constant,
    key,
    one_of,
    text_of,
)

_ENUMS: Final = frozenset(("Enum", "StrEnum", "IntEnum", "Flag", "IntFlag", "ReprEnum"))
_BASES_MAX: Final = 32

Sure = Callable[[Seq | Map | Inst], bool]
"""Whether what is done to a value is done for certain."""


def bind_class(node: ast.ClassDef, scope: Scope, members: dict[str, Value], bases: list[Value]) -> Class:
    """A class; the constants of an enumeration become its members, equal ones the same member."""
    owner = Class(node, scope, members, bases)
    if is_enum(owner):
        strings = any(isinstance(base, External) and base.name.endswith("StrEnum") for base in bases)
        same: dict[object, Member] = {}
        for name, value in members.items():
            if isinstance(value, Thing) and value.maker.rpartition(".")[2] == "auto":
                members[name] = Member(owner, name, Const(name.lower()) if strings else UNKNOWN)
            elif isinstance(value, Const | Seq) and not name.startswith("_"):
                members[name] = same.setdefault(key(value), Member(owner, name, value))
    return owner


def ancestry(owner: Class) -> Iterator[Class | External]:
    """A class and what it inherits from, nearest first."""
    waiting: list[Value] = [owner]
    seen = 0
    while waiting and seen < _BASES_MAX:
        one = waiting.pop(0)
        seen += 1
        for option in alternatives(one):
            if isinstance(option, Class):
                yield option
                waiting.extend(option.bases)
            elif isinstance(option, External):
                yield option
            elif isinstance(option, Thing):
                yield External(option.maker)


def is_enum(owner: Class) -> bool:
    """Whether a class is an enumeration."""
    return any(isinstance(one, External) and one.name.rpartition(".")[2] in _ENUMS for one in ancestry(owner))


def class_attribute(owner: Class, name: str, instance: Value | None, *, above: bool = False) -> Value | None:
    """The value that a class has or inherits under a name, bound to an instance if there is one; None: nothing.
    ``above``: the class itself is left out."""
    for number, one in enumerate(ancestry(owner)):
        if isinstance(one, Class) and not (above and number == 0) and (value := one.members.get(name)) is not None:
            return _bound(value, instance, owner)
    return None


def _bound(value: Value, instance: Value | None, owner: Class) -> Value:
    if not isinstance(value, Func) or value.owner is not None or value.kind == "static":
        return value
    if value.kind == "class":
        return msgspec.structs.replace(value, owner=owner)
    return value if instance is None else msgspec.structs.replace(value, owner=instance)


def attribute(value: Value, name: str) -> Value:
    """The attribute of a value. A property is given as the function that it is (see ``evaluate``)."""
    if isinstance(value, OneOf):
        return one_of(attribute(option, name) for option in value.options)
    if isinstance(value, External):
        return External(f"{value.name}.{name}")
    if isinstance(value, Inst):
        if (held := value.attributes.get(name)) is not None:
            return held
        return class_attribute(value.owner, name, value) or UNKNOWN
    if isinstance(value, Class):
        return Const(value.name) if name == "__name__" else class_attribute(value, name, None) or UNKNOWN
    if isinstance(value, Super):
        return class_attribute(value.owner, name, value.instance, above=True) or _inherited(value.instance, name)
    if isinstance(value, Member):
        return value.value if name == "value" else Const(value.name) if name == "name" else Method(value.value, name)
    return _of_made(value, name)


def _inherited(instance: Value, name: str) -> Value:
    return Method(instance, name) if isinstance(instance, Builder) else UNKNOWN


def _of_made(value: Value, name: str) -> Value:
    if isinstance(value, Func):
        return Const(value.name) if name in ("__name__", "__qualname__") else UNKNOWN
    if isinstance(value, Builder):
        if name == "nodes":
            return Map({key(Const(node)): (Const(node), seen.action) for node, seen in value.nodes.items()})
        own = class_attribute(value.owner, name, value) if value.owner is not None else None
        return value.attributes.get(name) or own or Method(value, name)
    if isinstance(value, Compiled):
        return {"builder": value.builder, "name": Const(value.name)}.get(name) or Method(value, name)
    if isinstance(value, Thing):
        if name == "name" and (named := value.named.get("name")) is not None:
            return named
        return Method(value, name)
    return Method(value, name) if isinstance(value, Const | Seq | Map) else UNKNOWN


def store_attribute(owner: Value, name: str, value: Value, sure: Sure) -> None:
    """Set an attribute; where that is not sure, it may be what it was as well."""
    options = alternatives(owner)
    for option in options:
        held = None
        if isinstance(option, Compiled) and name == "name" and (called := text_of(value)) is not None:
            option.name = option.builder.name = called
            option.builder.named = True
        if isinstance(option, Inst | Builder):
            held = option.attributes
        elif isinstance(option, Class):
            held = option.members
        if held is None:
            continue
        before = held.get(name)
        certain = len(options) == 1 and (not isinstance(option, Inst) or sure(option))
        held[name] = value if before is None or certain else one_of((before, value))


def item(owner: Value, index: Value) -> Value:
    """``owner[index]``."""
    if isinstance(owner, OneOf):
        return one_of(item(option, index) for option in owner.options)
    if isinstance(owner, Class):
        members = [one for one in owner.members.values() if isinstance(one, Member)]
        at = constant(index)
        return one_of(one for one in members if at is None or one.name == at.value)
    if isinstance(owner, Map):
        if (found := owner.entries.get(key(index))) is not None:
            return one_of((found[1], UNKNOWN)) if owner.more else found[1]
        if isinstance(index, OneOf):
            return one_of(item(owner, option) for option in index.options)
        if owner.open or isinstance(index, Const | Member):
            return UNKNOWN
        return one_of(value for _, value in owner.entries.values())
    found_items = items_of(owner)
    if found_items is None:
        return UNKNOWN
    at = constant(index)
    if at is None:
        return one_of(found_items.items) if not found_items.open else UNKNOWN
    place = at.value
    if found_items.open or not isinstance(place, int) or not -len(found_items.items) <= place < len(found_items.items):
        return UNKNOWN
    return found_items.items[place]


def part(owner: Value, bounds: list[Value]) -> Value:
    """``owner[a:b:c]``."""
    found = items_of(owner)
    numbers = [bound.value for bound in bounds if isinstance(bound, Const)]
    whole = [number for number in numbers if number is None or isinstance(number, int)]
    if found is None or found.open or len(whole) != len(bounds) or whole[-1] == 0:
        return UNKNOWN
    cut = found.items[slice(*whole)]
    if isinstance(owner, Const):
        return Const("".join(str(one.value) for one in cut if isinstance(one, Const)))
    return Seq(cut, found.kind)


def store_item(owner: Value, index: Value, value: Value, sure: Sure) -> None:
    """``owner[index] = value``; where that is not sure, it may be what it was as well."""
    options = alternatives(owner)
    for option in options:
        certain = len(options) == 1 and isinstance(option, Seq | Map) and sure(option)
        if isinstance(option, Map):
            _store_entry(option, index, value, certain=certain)
        elif isinstance(option, Seq):
            at = constant(index)
            place = at.value if at is not None else None
            if isinstance(place, int) and -len(option.items) <= place < len(option.items) and not option.open:
                option.items[place] = value if certain else one_of((option.items[place], value))
            else:
                option.open, option.bounded = True, False


def _store_entry(owner: Map, index: Value, value: Value, *, certain: bool) -> None:
    if not isinstance(index, Const | Member):
        owner.open, owner.bounded = True, False
        if len(owner.entries) < SIZE_MAX:
            owner.entries[key(value)] = (UNKNOWN, value)
        return
    before = owner.entries.get(key(index))
    owner.entries[key(index)] = (index, value if certain or before is None else one_of((before[1], value)))
    if not certain and before is None and not owner.open:
        owner.open = owner.bounded = True
