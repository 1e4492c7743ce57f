"""The methods of Python's own strings, lists, sets and dicts, for values that are known; pure.

Lists and dicts are changed where the method changes them. ``sure``: the call is made for certain, and once; else what
is added may be there, and what is taken away may be there still.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Final

from pmagent.actors.audit.graphs.pure import SIZE_MAX, distinct, extend, items_of, merge, ordered, shown
from pmagent.actors.audit.graphs.values import UNKNOWN, Const, Map, Member, Seq, Value, constant, key, one_of, text_of

_STRING_METHODS: Final = frozenset([
    "lower", "upper", "strip", "lstrip", "rstrip", "replace", "title", "capitalize", "removeprefix", "removesuffix",
    "startswith", "endswith",
])


def string_method(text: str, name: str, args: Sequence[Value]) -> Value:
    """A method of a string."""
    if name == "join" and args:
        found = items_of(args[0])
        parts = [text_of(item) for item in found.items] if found is not None and not found.open else [None]
        joined = text.join(part for part in parts if part is not None)
        return UNKNOWN if None in parts or len(joined) > SIZE_MAX else Const(joined)
    plain = [text_of(arg) for arg in args]
    if name == "split" and None not in plain and len(text) <= SIZE_MAX and "" not in plain:
        return Seq([Const(part) for part in text.split(plain[0] if plain else None)])
    if name == "format":
        return UNKNOWN
    if name not in _STRING_METHODS or None in plain or sum(map(len, map(str, plain)), len(text)) > SIZE_MAX:
        return UNKNOWN
    try:
        result = getattr(text, name)(*plain)
    except (TypeError, ValueError):
        return UNKNOWN
    return Const(result) if len(str(result)) <= SIZE_MAX else UNKNOWN


def formatted(text: str, args: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """``text.format(…)`` with plain fields only."""
    result, count = [], 0
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError:
        return UNKNOWN
    for before, field, how, conversion in fields:
        result.append(before)
        if field is None:
            continue
        at = field or str(count)
        count += not field
        value = args[int(at)] if at.isdecimal() and at.isascii() and int(at) < len(args) else named.get(at, UNKNOWN)
        spelled = text_of(shown(value, formatted=True))
        if spelled is None or how or conversion:
            return UNKNOWN
        result.append(spelled)
    whole = "".join(result)
    return Const(whole) if len(whole) <= SIZE_MAX else UNKNOWN


def list_method(owner: Seq, name: str, args: Sequence[Value], named: Mapping[str, Value], *, sure: bool) -> Value:
    """A method of a list or a set."""
    value = args[0] if args else UNKNOWN
    if name in ("append", "add", "appendleft", "insert", "extend", "update"):
        _grow(owner, name, args)
        if not sure and not owner.open:
            owner.open = owner.bounded = True
        return Const(None)
    if name in ("pop", "popleft", "remove", "discard", "clear"):
        return _shrink(owner, name, args, sure=sure)
    if name in ("sort", "reverse"):
        found = ordered(owner, owner) if name == "sort" else Seq(owner.items[::-1], open=owner.open)
        whole = isinstance(found, Seq) and not found.open and not named and sure
        if isinstance(found, Seq) and whole:
            owner.items = found.items
        else:
            _fewer(owner)
        return Const(None)
    if name in ("copy", "union"):
        copy = Seq(list(owner.items), owner.kind, owner.open, owner.bounded)
        for more in args:
            extend(copy, more)
        copy.items = distinct(copy.items) if copy.kind == "set" else copy.items
        return copy
    keys = [key(item) for item in owner.items]
    if name == "index" and len(args) == 1 and not owner.open and key(value) in keys:
        return Const(keys.index(key(value)))
    return Const(keys.count(key(value))) if name == "count" and not owner.open and _fixed(value, owner) else UNKNOWN


def _fixed(value: Value, owner: Seq) -> bool:
    return all(isinstance(one, Const | Member) for one in (value, *owner.items))


def _grow(owner: Seq, name: str, args: Sequence[Value]) -> None:
    if name in ("extend", "update"):
        for more in args:
            extend(owner, more)
    elif len(owner.items) >= SIZE_MAX or not args:
        owner.open, owner.bounded = True, False
    elif name == "insert":
        at = constant(args[0])
        known = at is not None and isinstance(at.value, int)
        owner.items.insert(at.value if at is not None and isinstance(at.value, int) else len(owner.items), args[-1])
        if not known:
            _fewer(owner)
    else:
        owner.items.insert(0 if name == "appendleft" else len(owner.items), args[0])
    if owner.kind == "set":
        owner.items = distinct(owner.items)


def _shrink(owner: Seq, name: str, args: Sequence[Value], *, sure: bool) -> Value:
    keys = [key(item) for item in owner.items]
    if name == "clear":
        if sure:
            owner.items, owner.open, owner.bounded = [], False, False
        else:
            _fewer(owner)
        return Const(None)
    if name in ("remove", "discard"):
        if not (sure and not owner.open and args and _fixed(args[0], owner)):
            _fewer(owner)
        elif key(args[0]) in keys:
            del owner.items[keys.index(key(args[0]))]
        return Const(None)
    at = constant(args[0] if args else Const(0 if name == "popleft" else -1))
    place = at.value if at is not None else None
    if owner.kind != "set" and sure and not owner.open and isinstance(place, int) and -len(keys) <= place < len(keys):
        return owner.items.pop(place)
    _fewer(owner)
    return one_of([*owner.items, *([UNKNOWN] if owner.more else [])])


def _fewer(owner: Seq) -> None:
    """There may be fewer than these, or in another order."""
    owner.bounded = owner.bounded or not owner.open
    owner.open = True


def dict_method(owner: Map, name: str, args: Sequence[Value], named: Mapping[str, Value], *, sure: bool) -> Value:
    """A method of a dict."""
    pairs = list(owner.entries.values())
    if name == "items":
        return Seq([Seq(list(pair), "tuple") for pair in pairs], open=owner.open, bounded=owner.bounded)
    if name in ("keys", "values"):
        return Seq([pair[name == "values"] for pair in pairs], open=owner.open, bounded=owner.bounded)
    if name == "copy":
        return Map(dict(owner.entries), owner.open)
    if name == "update":
        for more in (
            pairs_of(args[0]) if args else Map({}),
            Map({key(Const(one)): (Const(one), named[one]) for one in named}),
        ):
            update(owner, more, sure=sure)
        return Const(None)
    if name in ("get", "pop", "setdefault") and args:
        return _looked_up(owner, name, args, sure=sure)
    if name in ("clear", "popitem"):
        owner.bounded = owner.bounded or not owner.open
        owner.open = True
        if name == "clear" and sure:
            owner.entries, owner.open, owner.bounded = {}, False, False
    return UNKNOWN


def update(owner: Map, more: Value, *, sure: bool) -> None:
    """Add to a dict what is in another one; where that is not sure, its entries may be what they were as well."""
    before = dict(owner.entries)
    merge(owner, more)
    if sure:
        return
    for name, (word, value) in owner.entries.items():
        if name in before:
            owner.entries[name] = (word, one_of((before[name][1], value)))
    if not owner.open:
        owner.open = owner.bounded = True


def pairs_of(value: Value) -> Value:
    """A dict of a list of pairs."""
    found = items_of(value) if isinstance(value, Seq) else None
    if found is None or not all(isinstance(one, Seq) and len(one.items) == 2 for one in found.items):
        return value
    pairs = [(one.items[0], one.items[1]) for one in found.items if isinstance(one, Seq)]
    return Map({key(name): (name, one) for name, one in pairs}, found.open)


def _looked_up(owner: Map, name: str, args: Sequence[Value], *, sure: bool) -> Value:
    default = args[1] if len(args) > 1 else Const(None)
    found = owner.entries.get(key(args[0]))
    known = isinstance(args[0], Const | Member)
    if name == "pop" and (not sure or not known):
        owner.bounded = owner.bounded or not owner.open
        owner.open = True
    elif name == "pop":
        owner.entries.pop(key(args[0]), None)
    if found is not None:
        return one_of((found[1], default, *([UNKNOWN] if owner.more else []))) if owner.open else found[1]
    if known and not owner.open:
        if name == "setdefault":
            update(owner, Map({key(args[0]): (args[0], default)}), sure=sure)
        return default
    return one_of([*(value for _, value in owner.entries.values()), default]) if not owner.open else UNKNOWN


def removed(owner: Value, index: Value, *, sure: bool) -> None:
    """``del owner[index]``."""
    if isinstance(owner, Map):
        dict_method(owner, "pop", [index], {}, sure=sure)
    elif isinstance(owner, Seq):
        _shrink(owner, "pop", [index], sure=sure)
