"""What is wrong with a document, in our words: the same with every version of the validator, and with nothing of the
document's content but names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pmagent.contracts.pla import Unfit, is_typable
from pmagent.contracts.pla_moment import MOMENT, VISIBLE

Told = tuple[Unfit, str]

_TYPES: Final = {
    "object": "an object", "array": "a list", "string": "a text", "integer": "an integer", "number": "a number",
    "boolean": "true or false", "null": "null",
}  # fmt: skip
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,40}", re.ASCII)
_NAMED_MAX: Final = 8
_PATTERNS: Final = {
    MOMENT: "an RFC 3339 time of a day that is in the calendar",
    VISIBLE: "a text in which something is to be seen",
}


def told(path: tuple[str | int, ...], rule: str | None, value: Any, asked: Any) -> Iterator[Told]:
    """What an error of the validator says: ``rule`` of the schema ``asked`` does not hold for ``value``."""
    match rule:
        case None:
            yield "schema_validation", "it must not be there"
        case "required":
            yield from (("missing_field", f"{name} is missing") for name in asked["required"] if name not in value)
        case "additionalProperties":
            yield from (("schema_validation", _unknown(name)) for name in value if name not in asked["properties"])
        case "propertyNames":
            yield "schema_validation", "a name in it is not of lower-case letters, digits and _, at most 64"
        case "type":
            yield "schema_validation", f"it is not {_type(asked['type'])}"
        case "enum":
            yield "schema_validation", f"it is not {_choice(asked['enum'])}"
        case "const":
            bound = "safety_bounds" in path
            yield ("bound_exceeded" if bound else "schema_validation"), f"it is not {_plain(asked['const'])}"
        case "pattern":
            yield "schema_validation", _misfit(value, asked)
        case "uniqueItems":
            yield "schema_validation", "something stands in it twice"
        case "anyOf":
            yield "bound_exceeded", "of several keys one at least is no modifier"
        case _:
            yield _beyond(str(rule), value, asked)


def _beyond(rule: str, value: Any, asked: Mapping[str, Any]) -> Told:
    if rule in ("minLength", "minItems") and not value:
        return "missing_field", "it is empty"
    bound = asked[rule]
    match rule:
        case "minLength" | "maxLength":
            text = f"it has {len(value)} characters, not {_least(rule)} {bound}"
        case "minItems" | "maxItems" | "maxProperties":
            text = f"it has {len(value)} parts, not {_least(rule)} {bound}"
        case _:
            text = f"it is not {_least(rule)} {bound}"
    return "bound_exceeded", text


def _least(rule: str) -> str:
    return "at least" if rule.startswith("min") else "at most"


def _unknown(name: str) -> str:
    return f"it holds {name if _NAME.fullmatch(name) else 'something'}, which the contract does not name"


def _type(kinds: str | list[str]) -> str:
    return " or ".join(_TYPES[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _choice(values: list[str]) -> str:
    if len(values) > _NAMED_MAX:
        return f"one of the {len(values)} that the contract names"
    return " or ".join(value or "nothing" for value in values)


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _misfit(value: str, asked: Mapping[str, Any]) -> str:
    words = _PATTERNS.get(asked["pattern"]) or asked.get("description")
    if "US keyboard" in str(words):
        at = next(at for at, character in enumerate(value, 1) if not is_typable(character))
        return f"character {at} is none that a US keyboard types"
    return f"it is not {words}" if words else f"it does not fit {asked['pattern']}"
