"""The JSON Schemas of what is proposed, decided and executed (docs/design.md §16.1)."""

from __future__ import annotations

from pmagent.contracts.payload import END
from pmagent.contracts.pla import (
    COORDINATE_MAX,
    COORDINATE_MIN,
    KEYS,
    KEYS_MAX,
    MIN_ACTION_DELAY_MS,
    MODIFIERS,
    OCR_CHARS_MAX,
    RATIONALE_CHARS_MAX,
    RATIONALE_CHARS_MIN,
    REASON_CHARS_MAX,
    TEXT_CHARS_MAX,
)
from pmagent.contracts.pla_moment import VISIBLE
from pmagent.contracts.pla_schema_parts import (
    BOOLEAN,
    ID,
    MODE,
    MOMENT_TEXT,
    OPERATOR,
    SHA256,
    Schema,
    closed,
    exactly,
    integer,
    one_of,
    text,
    when,
)

_NOT_ONLY_MODIFIERS: Schema = {
    "anyOf": [{"maxItems": 1}, {"contains": {"not": {"enum": list(MODIFIERS)}}}],
}


def _payloads() -> dict[str, Schema]:
    typable = text(
        r"^[\t\n -~]*" + END, 1, TEXT_CHARS_MAX, "what a US keyboard types: printable ASCII, tab and newline"
    )
    keys: Schema = {
        "type": "array", "items": one_of(*KEYS), "minItems": 1, "maxItems": KEYS_MAX, "uniqueItems": True,
        "description": "pressed together; one at least is no modifier, unless it stands alone",
    }  # fmt: skip
    step = integer(COORDINATE_MIN, COORDINATE_MAX)
    return {
        "TYPE_TEXT": closed({"text": typable}),
        "KEY_COMBO": closed({"keys": keys | _NOT_ONLY_MODIFIERS}),
        "MOUSE_MOVE": closed({"x": step, "y": step}, description="steps to the right and down from where it is"),
        "MOUSE_CLICK": closed({"button": one_of("left", "right", "middle")}),
    }


def _with_action(schema: Schema) -> Schema:
    """The schema with each action's payload tied to its type."""
    ties = [when("action_type", kind, {"properties": {"payload": payload}}) for kind, payload in _payloads().items()]
    return schema | {"allOf": ties}


def _action() -> dict[str, Schema]:
    return {
        "action_type": one_of(*_payloads()),
        "payload": {"type": "object", "description": "what action_type says; see allOf"},
    }


def action_proposal() -> Schema:
    """Brain to operator: what might be typed."""
    elements: Schema = {"type": "array", "maxItems": 200, "items": text("", 0, 200)}
    bounds = {"max_chars": exactly(TEXT_CHARS_MAX), "rate_limit_ms": exactly(MIN_ACTION_DELAY_MS)}
    screen = {"ocr_text": text("", 0, OCR_CHARS_MAX), "detected_elements": elements}
    return _with_action(
        closed(
            {
                "proposal_id": ID,
                "timestamp": MOMENT_TEXT,
                "mode": MODE,
                **_action(),
                "rationale": text(VISIBLE, RATIONALE_CHARS_MIN, RATIONALE_CHARS_MAX, "why this is proposed"),
                "credential_warning": BOOLEAN | {"description": "credentials were found in it"},
                "safety_bounds": closed(bounds),
                "screen_context": closed(screen, optional=tuple(screen)),
            },
            optional=("screen_context",),
            description="What the brain proposes to an operator (brain to operator).",
        )
    )


def action_decision() -> Schema:
    """Operator to brain: yes or no."""
    schema = closed(
        {
            "proposal_id": ID,
            "decision": one_of("APPROVED", "REJECTED"),
            "timestamp": MOMENT_TEXT,
            "operator_id": OPERATOR,
            "override_reason": text(VISIBLE, 1, REASON_CHARS_MAX, "why it is rejected"),
            "credential_acknowledged": BOOLEAN | {"description": "the operator knows of the credentials in it"},
            "digest": SHA256 | {"description": "of the canonical action that was shown"},
        },
        optional=("override_reason", "credential_acknowledged", "digest"),
        description="What an operator decides on a proposal (operator to brain).",
    )
    return schema | {"allOf": [when("decision", "REJECTED", {"required": ["override_reason"]})]}


def action_execute() -> Schema:
    """Brain to device: what is to be typed, and who approved it."""
    bounds = {"max_text_length": exactly(TEXT_CHARS_MAX), "min_action_delay_ms": exactly(MIN_ACTION_DELAY_MS)}
    approval = {
        "decision_timestamp": MOMENT_TEXT,
        "operator_id": OPERATOR,
        "digest": SHA256 | {"description": "of the canonical action that was approved"},
    }
    return _with_action(
        closed(
            {
                "execution_id": ID,
                "proposal_id": ID,
                "timestamp": MOMENT_TEXT,
                "mode": exactly("EXECUTE"),
                **_action(),
                "safety_bounds": closed(bounds),
                "operator_approval": closed(approval, optional=("digest",), description="who approved it, and when"),
            },
            description="An approved action (brain to device).",
        )
    )
