"""Whether a newer JSON Schema keeps what an older one promised (docs/design.md §16.1).

Within a major version schemas are append-only: whatever was a document stays one. Permitted additions to a schema are
listed here: optional properties, values of an enumeration, wider bounds, more characters of which a text may be made, a
rule for such a new value. Every other difference breaks, also one that might be harmless: a person decides then, with a
new major version or a longer list.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pmagent.contracts.payload import END
from pmagent.contracts.pla_schemas import meaning

Schema = dict[str, Any]

_WIDER_ABOVE: Final = ("maxLength", "maxItems", "maximum", "maxProperties")
_WIDER_BELOW: Final = ("minLength", "minItems", "minimum")
_HEAD: Final = frozenset(("version",))
"""Says which version it is, and nothing about documents."""
_OWN: Final = frozenset(
    (*_WIDER_ABOVE, *_WIDER_BELOW, "required", "enum", "properties", "items", "allOf", "then", "pattern")
)
_OF_CHARACTERS: Final = re.compile(r"\^\[((?:[^\]\\]|\\.)+)\]\*" + re.escape(END))
"""A pattern that permits any text of the characters in its class."""


def breaks(old: dict[str, Schema], new: dict[str, Schema]) -> list[str]:
    """The broken promises of a released set: ``<contract><place>: what``; nothing if it is compatible.
    A contract more is none."""
    found = [f"{name}: the contract is gone" for name in old if name not in new]
    for name in (name for name in old if name in new):
        found += [f"{name}{difference}" for difference in _breaks(meaning(old[name]), meaning(new[name]), "")]
    return found


def major(version: str) -> int:
    """The major part of a version like 1.0.0."""
    return int(version.partition(".")[0])


def _breaks(old: Any, new: Any, place: str) -> Iterator[str]:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        if old != new:
            yield f"{place}: it was {old}, and is {'a schema' if isinstance(new, dict) else new}"
        return
    for key in sorted((old.keys() | new.keys()) - _OWN - _HEAD):
        if old.get(key) != new.get(key):
            yield f"{place}: {key} was changed"
    if not _permits(new.get("pattern"), old.get("pattern")):
        yield f"{place}: pattern was changed"
    yield from _narrowed(old, new, place)
    yield from _required(old, new, place)
    if "enum" in old or "enum" in new:
        yield from _enumerated(old.get("enum"), new.get("enum"), place)
    yield from _properties(old, new, place)
    for key in ("items", "then"):
        if key in old or key in new:
            yield from _breaks(old.get(key, {}), new.get(key, {}), f"{place}/{key}" if key == "items" else place)
    yield from _rules(old, new, place)


def _permits(new: str | None, old: str | None) -> bool:
    """Whether the pattern is the same, or permits texts of all the characters that the old one did."""
    if new == old:
        return True
    classes = [_OF_CHARACTERS.fullmatch(pattern or "") for pattern in (old, new)]
    before, after = (re.compile(f"[{found[1]}]") if found else None for found in classes)
    if before is None or after is None:
        return False
    return all(after.match(one) for one in map(chr, range(sys.maxunicode + 1)) if before.match(one))


def _narrowed(old: Schema, new: Schema, place: str) -> Iterator[str]:
    for key in (*_WIDER_ABOVE, *_WIDER_BELOW):
        if key not in new:
            continue
        if key not in old:
            yield f"{place}: {key} {new[key]} was not there"
        elif new[key] < old[key] if key in _WIDER_ABOVE else new[key] > old[key]:
            yield f"{place}: {key} was {old[key]}, and is {new[key]}"


def _required(old: Schema, new: Schema, place: str) -> Iterator[str]:
    before, after = old.get("required", []), new.get("required", [])
    yield from (f"{place}: {name} is required now" for name in after if name not in before)
    yield from (f"{place}: {name} is not required any more" for name in before if name not in after)


def _enumerated(old: Sequence[Any] | None, new: Sequence[Any] | None, place: str) -> Iterator[str]:
    if old is None or new is None:
        yield f"{place}: enum was {'added' if old is None else 'taken away'}"
    else:
        yield from (f"{place}: the value {value!r} is gone" for value in old if value not in new)


def _properties(old: Schema, new: Schema, place: str) -> Iterator[str]:
    """A property more is fine where the object was closed: no document had it. Whether it is required is looked at with
    ``required``."""
    before, after = old.get("properties", {}), new.get("properties", {})
    for name, schema in before.items():
        if name in after:
            yield from _breaks(schema, after[name], f"{place}/{name}")
        else:
            yield f"{place}/{name}: the property is gone"
    if old.get("additionalProperties") is not False:
        yield from (f"{place}/{name}: documents could have it in another shape" for name in after if name not in before)


def _rules(old: Schema, new: Schema, place: str) -> Iterator[str]:
    """``allOf`` holds rules for values of a property (``pmagent.contracts.pla_schemas``), told apart by their
    condition. A rule more narrows, but where its value is new."""
    before = {repr(rule.get("if")): rule for rule in old.get("allOf", [])}
    after = {repr(rule.get("if")): rule for rule in new.get("allOf", [])}
    for condition, rule in before.items():
        if condition in after:
            yield from _breaks(rule, after[condition], place)
        else:
            yield f"{place}: a rule is gone or changed: {condition}"
    for condition, rule in after.items():
        if condition not in before and not _is_of_a_new_value(rule, old):
            yield f"{place}: a rule is new: {condition}"


def _is_of_a_new_value(rule: Schema, old: Schema) -> bool:
    """Whether no older document meets the rule's condition: one property is a value that its enumeration had not."""
    for name, test in rule.get("if", {}).get("properties", {}).items():
        allowed = old.get("properties", {}).get(name, {}).get("enum")
        if allowed is not None and "const" in test and test["const"] not in allowed:
            return True
    return False
