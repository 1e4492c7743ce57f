"""The PLA's JSON Schemas, by name (docs/design.md §16.1).

They are written by hand and not made from the types of ``pmagent.contracts.pla_documents``, so that each is a check of
the other. Draft-07, which the validators of every language know; closed everywhere; each action's payload tied to its
type; formats as anchored patterns. ``python -m pmagent.contracts.generate`` writes them to
``schemas/pla/v1/<name>.schema.json``.

Brain and device compare ``CONTRACT_HASH`` at hello: with another one nothing is typed.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, Final

from pmagent.contracts.pla import CONTRACT_VERSION
from pmagent.contracts.pla_schema_actions import action_decision, action_execute, action_proposal
from pmagent.contracts.pla_schema_device import device_status, hello
from pmagent.contracts.pla_schema_jobs import job_manifest, job_status
from pmagent.contracts.pla_schema_log import session_log

Schema = dict[str, Any]

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
BASE: Final = "https://pmagent.invalid/contracts/pla/v1/"
"""Of each schema's ``$id``: a name, not a place; the major version is in it."""
_PROSE: Final = frozenset(("title", "description", "$comment"))


def _whole(name: str, schema: Schema) -> Schema:
    head = {"$schema": DIALECT, "$id": f"{BASE}{name}.schema.json", "title": name, "version": CONTRACT_VERSION}
    return head | schema


SCHEMAS: Final[dict[str, Schema]] = {
    name: _whole(name, schema)
    for name, schema in {
        "action_proposal": action_proposal(),
        "action_decision": action_decision(),
        "action_execute": action_execute(),
        "session_log": session_log(),
        "device_status": device_status(),
        "hello": hello(),
        "job_status": job_status(),
        "job_manifest": job_manifest(),
    }.items()
}
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
