"""The PLA's JSON Schemas, by name (docs/design.md §16.1).

They are made from the types of ``pmagent.contracts.pla_documents`` and ``pmagent.contracts.jobs``. Draft-07, which the
validators of every language know; closed everywhere; each action's payload tied to its type; formats as anchored
patterns. ``python -m pmagent.contracts.generate`` writes them to ``schemas/pla/v1/<name>.schema.json``.

Brain and device compare ``CONTRACT_HASH`` at hello: with another one nothing is typed.
"""

from __future__ import annotations

import json
from hashlib import sha256
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, UnsetType

from pmagent.contracts.pla import CONTRACT_VERSION
from pmagent.contracts.pla_documents import ACTIONS, TYPES

Schema = dict[str, Any]

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
BASE: Final = "https://pmagent.invalid/contracts/pla/v1/"
"""Of each schema's ``$id``: a name, not a place; the major version is in it."""
_PROSE: Final = frozenset(("title", "description", "$comment"))

# --- types as schemas ---------------------------------------------------------------------------------------------

_TYPES: Final[dict[Any, str]] = {
    str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null", list: "array", dict: "object",
}  # fmt: skip
_LENGTHS: Final = {"string": "Length", "array": "Items", "object": "Properties"}


def _schema(kind: Any) -> Schema:
    """The schema of a field's type. Any asks for nothing."""
    bare, *metas = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    origin, inner = get_origin(bare), get_args(bare)
    rest: Schema = {}
    if origin in (Union, UnionType):
        return _union([_schema(one) for one in inner if one is not UnsetType])
    if origin is Literal:
        head: Schema = {"type": _TYPES[type(inner[0])]}
        head |= {"enum": list(inner)} if len(inner) > 1 else {"const": inner[0]}
    elif isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        head, rest = {"type": "object"}, _properties(bare)
    else:
        head = {"type": _TYPES[origin or bare]}
        if origin is list and inner[0] is not Any:
            rest = {"items": _schema(inner[0])}
        elif origin is dict and inner[1] is not Any:
            rest = _mapping(inner[0], inner[1], metas[-1].extra["named"])
    for meta in metas:
        head |= _demands(meta, head["type"])
    return head | rest


def _demands(meta: Meta, kind: str) -> Schema:
    length = _LENGTHS.get(kind, "")
    demands = {
        "pattern": meta.pattern, f"min{length}": meta.min_length, f"max{length}": meta.max_length,
        "minimum": meta.ge, "maximum": meta.le, "description": meta.description,
    }  # fmt: skip
    made = {name: value for name, value in demands.items() if value is not None} | (meta.extra_json_schema or {})
    description = (meta.extra or {}).get("description")
    return made | {"description": description} if description else made


def _union(parts: list[Schema]) -> Schema:
    types = [part["type"] for part in parts]
    merged = {key: value for part in parts for key, value in part.items()}
    return merged | {"type": types} if len(types) > 1 else merged


def _properties(cls: type[msgspec.Struct]) -> Schema:
    hints = get_type_hints(cls, include_extras=True)
    required = [field.name for field in msgspec.structs.fields(cls) if field.required]
    return _closed({field: hints[field] for field in cls.__struct_fields__}, required)


def _closed(fields: dict[str, Any], required: list[str]) -> Schema:
    made: Schema = {"required": required} if required else {}
    properties = {name: _schema(kind) for name, kind in fields.items()}
    return made | {"properties": properties, "additionalProperties": False}


def _mapping(key: Any, value: Any, named: type[msgspec.Struct]) -> Schema:
    """Of a mapping whose ``named`` keys have a shape of their own."""
    names = _schema(key)
    del names["type"]
    return {"propertyNames": names} | _properties(named) | {"additionalProperties": _schema(value)}


# --- rules between fields -----------------------------------------------------------------------------------------


def _when(name: str, value: str | list[str], then: Schema) -> Schema:
    """Where the property is ``value`` (or one of them), the object also fits ``then``."""
    test: Schema = {"enum": value} if isinstance(value, list) else {"const": value}
    return {"if": {"required": [name], "properties": {name: test}}, "then": then}


def _of_actions() -> list[Schema]:
    """Each action's payload, tied to its type."""
    rules = []
    for name, form in ACTIONS.items():
        payload = {"type": "object"} | ({"description": form.description} if form.description else {})
        payload |= _closed(form.payload | form.optional, list(form.payload))
        rules.append(_when("action_type", name, {"properties": {"payload": payload}}))
    return rules


_RULES: Final[dict[str, list[Schema]]] = {
    "action_proposal": _of_actions(),
    "action_decision": [_when("decision", "REJECTED", {"required": ["override_reason"]})],
    "action_execute": _of_actions(),
    "job_status": [
        _when("status", ["queued", "running", "complete"], {"properties": {"error": False}}),
        _when("status", ["queued", "running"], {"properties": {"result": False}}),
        _when("status", "queued", {"properties": {"progress": {"maximum": 0}}}),
        _when("status", "complete", {"properties": {"progress": {"minimum": 1}}}),
    ],
}
"""Rules of a contract beyond the types of its fields."""

# --- the contracts ------------------------------------------------------------------------------------------------


def _contract(name: str) -> Schema:
    head = {"$schema": DIALECT, "$id": f"{BASE}{name}.schema.json", "title": name, "version": CONTRACT_VERSION}
    rules = {"allOf": _RULES[name]} if name in _RULES else {}
    return head | _schema(TYPES[name]) | rules


SCHEMAS: Final[dict[str, Schema]] = {name: _contract(name) for name in TYPES}
"""Name -> schema."""


def file_content(name: str) -> bytes:
    """The schema's file. Raises KeyError for a name that no contract has."""
    return json.dumps(SCHEMAS[name], indent=2).encode("ascii") + b"\n"


def meaning(schema: Any) -> Any:
    """The schema without what is only for people to read; of what ``properties`` names, nothing is left out."""
    if isinstance(schema, list):
        return [meaning(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: meaning(part) for name, part in value.items()} if key in ("properties", "definitions")
        else meaning(value)
        for key, value in schema.items() if key not in _PROSE
    }  # fmt: skip


def set_hash(schemas: dict[str, Schema]) -> str:
    """SHA-256 (hex) over the meaning of a set of schemas as canonical JSON: another wording of a description leaves it
    as it is, and no device has to be flashed again for that."""
    plain = {name: meaning(schema) for name, schema in schemas.items()}
    return sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


CONTRACT_HASH: Final = set_hash(SCHEMAS)
