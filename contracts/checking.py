"""Holds documents against the PLA's contracts, at each border (docs/design.md §16.9).

``check_bytes`` for what comes from outside, ``check`` for what is decoded already. Each problem is a row of the
specification's table, a place, and words of our own, which hold nothing of what stands in the document but names: a
text that is refused may be a password.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import fastjsonschema
import msgspec

from pmagent.contracts.pla import Unfit
from pmagent.contracts.pla_documents import TYPABLE
from pmagent.contracts.pla_moment import MOMENT, VISIBLE
from pmagent.contracts.pla_schemas import SCHEMAS
from pmagent.contracts.strict_json import NotJson, Path, pointer, read, strange

CONTRACTS: Final = tuple(SCHEMAS)

_FRACTIONS: Final[Mapping[str, tuple[str, ...]]] = {"job_status": ("progress", "result")}
"""Where numbers that are no integers may stand, by contract: at the top, or anywhere below."""

_WHOLE: Final = "an integer is written without a fraction"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A fault of a document: the kind of violation, where (JSON pointer, "" is the whole), and in words."""

    kind: Unfit
    pointer: str
    text: str


def check_bytes(contract: str, raw: bytes) -> list[Problem]:
    """The faults of a document as it came; none when it keeps its contract. Raises KeyError for an unknown contract."""
    validator = _validator(contract)
    try:
        document = read(raw)
    except NotJson as problem:
        return [_unreadable(problem)]
    return _checked(contract, document, validator)


def check(contract: str, document: object) -> list[Problem]:
    """The faults of a decoded document, in its order. Raises KeyError for an unknown contract."""
    validator = _validator(contract)
    for problem in strange(document):
        return [_unreadable(problem)]
    return _checked(contract, document, validator)


def contract_of(document: object) -> str | None:
    """Which contract a document means to keep, by the keys that only one has; None when no such key is there."""
    if isinstance(document, dict):
        for contract, keys in _TELLING.items():
            if any(key in document for key in keys):
                return contract
    return None


_TELLING: Final[dict[str, tuple[str, ...]]] = {
    "job_manifest": ("public_root", "public"),
    "job_status": ("status", "job_id"),
    "session_log": ("log_id", "event_type", "checksum", "previous_log_checksum"),
    "hello": ("max_line", "remembers", "layout", "reset_reason"),
    "device_status": ("uptime_seconds", "error_state", "kill_switch_state", "device_id"),
    "action_decision": ("decision", "override_reason", "credential_acknowledged"),
    "action_proposal": ("rationale", "credential_warning", "screen_context"),
    "action_execute": ("operator_approval", "execution_id"),
}
"""Keys by which a contract is told, in this order; the last ones also hold for documents that lack much."""


def _unreadable(problem: NotJson) -> Problem:
    return Problem(kind="schema_validation", pointer=pointer(problem.path), text=problem.text)


@functools.cache
def _validator(contract: str) -> Callable[[Any], Any]:
    schema = SCHEMAS[contract]
    made: Callable[[Any], Any] = fastjsonschema.compile(schema, use_default=False, use_formats=False, fast_fail=False)
    return made


def _checked(contract: str, document: Any, validator: Callable[[Any], Any]) -> list[Problem]:
    found = [*_validator_errors(document, validator)]
    found += [(path, "schema_validation", _WHOLE) for path in _whole_floats(contract, document)]
    found.sort(key=lambda one: _order(document, one[0]))
    problems = [Problem(kind=kind, pointer=pointer(path), text=text) for path, kind, text in found]
    return list(dict.fromkeys(problems))


def _validator_errors(document: Any, validator: Callable[[Any], Any]) -> Iterator[tuple[Path, Unfit, str]]:
    try:
        validator(document)
    except fastjsonschema.JsonSchemaValuesException as many:
        mistyped = {tuple(error.path) for error in many.errors if error.rule == "type"}
        for error in many.errors:
            if error.rule == "type" or tuple(error.path) not in mistyped:
                path = _path(document, error.path[1:])
                found = _worded(path, error.rule, error.value, error.definition)
                yield from ((path, kind, text) for kind, text in found)


def _path(document: Any, parts: list[str]) -> Path:
    """The way into the document that an error's path tells. The validator splits names at dots and brackets, so that it
    can be followed as far only as names hold none; those that a contract knows do not."""
    path: Path = ()
    for part in parts:
        match document:
            case dict() if part in document:
                step: str | int = part
            case list() if part.isascii() and part.isdigit() and int(part) < len(document):
                step = int(part)
            case _:
                break
        path, document = (*path, step), document[step]
    return path


def _whole_floats(contract: str, document: Any) -> Iterator[Path]:
    """Where 1.0 stands for an integer. JSON Schema lets it pass."""
    free = _FRACTIONS.get(contract, ())
    stack: list[tuple[Path, Any]] = [((), document)]
    while stack:
        path, part = stack.pop()
        if path and path[0] in free:
            continue
        if isinstance(part, float) and part.is_integer():
            yield path
        elif isinstance(part, dict):
            stack += [((*path, key), inner) for key, inner in part.items()]
        elif isinstance(part, list):
            stack += [((*path, place), inner) for place, inner in enumerate(part)]


def _order(document: Any, path: Path) -> tuple[int, ...]:
    """Where in the document a path leads; an object comes before what it holds."""
    places = []
    for part in path:
        places.append(part if isinstance(part, int) else list(document).index(part))
        document = document[part]
    return tuple(places)


# --- in our words: the same with every version of the validator, and with nothing of the content but names ----------

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


def _worded(path: tuple[str | int, ...], rule: str | None, value: Any, asked: Any) -> Iterator[tuple[Unfit, str]]:
    """An error of the validator in our words: ``rule`` of the schema ``asked`` does not hold for ``value``."""
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


def _beyond(rule: str, value: Any, asked: Mapping[str, Any]) -> tuple[Unfit, str]:
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
    if asked["pattern"] == TYPABLE:
        at = next(at for at, character in enumerate(value, 1) if not re.match(TYPABLE, character))
        return f"character {at} is none that any keyboard types"
    return f"it is not {words}" if words else f"it does not fit {asked['pattern']}"
