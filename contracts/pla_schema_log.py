"""The JSON Schema of a session log's entries (docs/design.md §16.8)."""

from __future__ import annotations

from pmagent.contracts.payload import END
from pmagent.contracts.pla_schema_parts import (
    BOOLEAN,
    ID,
    MODE,
    MOMENT_TEXT,
    OPERATOR,
    SHA256,
    Schema,
    closed,
    one_of,
    text,
)

_EXACT = 2**53 - 1


def _details() -> Schema:
    """Some details have a shape by their name; any other is a text, an integer or a yes or no."""
    other: Schema = {
        "type": ["string", "integer", "boolean"], "maxLength": 2000, "minimum": -_EXACT, "maximum": _EXACT,
    }  # fmt: skip
    return {
        "type": "object",
        "maxProperties": 32,
        "propertyNames": {"pattern": r"^[a-z][a-z0-9_]{0,63}" + END},
        "properties": {
            "action_type": one_of("TYPE_TEXT", "KEY_COMBO", "MOUSE_MOVE", "MOUSE_CLICK"),
            "payload_summary": text("", 0, 500),
            "decision": one_of("APPROVED", "REJECTED"),
            "error_message": text("", 0, 1000),
            "old_mode": MODE,
            "new_mode": MODE,
            "credential_warning": BOOLEAN,
        },
        "additionalProperties": other,
    }


def session_log() -> Schema:
    """One entry; a file has one a line."""
    return closed(
        {
            "log_id": ID,
            "timestamp": MOMENT_TEXT,
            "event_type": one_of("PROPOSAL", "DECISION", "EXECUTION", "ERROR", "MODE_CHANGE"),
            "mode": MODE,
            "proposal_id": ID,
            "execution_id": ID,
            "operator_id": OPERATOR | {"description": "who was responsible"},
            "details": _details(),
            "checksum": SHA256 | {"description": "of the entry's canonical JSON without this"},
            "previous_log_checksum": SHA256 | {"description": "of the entry before; 64 zeros in the first"},
        },
        optional=("proposal_id", "execution_id"),
        description="An entry of a session's log: entries form a chain.",
    )
