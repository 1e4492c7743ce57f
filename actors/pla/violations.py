"""The specification's table of violations: how each kind is handled; pure (docs/design.md §16.9)."""

from __future__ import annotations

from typing import Final, Literal

from pmagent.contracts.pla_events import PlaViolation

Kind = Literal[
    "schema_validation", "missing_field", "bound_exceeded", "mode_mismatch", "missing_approval", "contract_mismatch"
]

_ALERT: Final = "the action is rejected; the operator is told"

HANDLING: Final[dict[Kind, tuple[Literal["warning", "error"], str]]] = {
    "schema_validation": ("error", _ALERT),
    "missing_field": ("error", "it is answered as a validation error"),
    "bound_exceeded": ("error", _ALERT),
    "mode_mismatch": ("warning", "HID is disabled; the mode has to be set again"),
    "missing_approval": ("error", "the execution is rejected; an approval is required"),
    "contract_mismatch": ("warning", "no HID action is taken; the device only tells its status"),
}
"""Kind -> how severe it is, and what is done. The last row is that of the version rules."""


def violation(
    kind: Kind, contract: str, text: str, by: str, *, session_id: str, proposal_id: str = "", execution_id: str = ""
) -> PlaViolation:
    """The event that tells of a violation of ``contract``, noticed ``by`` an actor or a border; ``text`` says what."""
    severity, handling = HANDLING[kind]
    return PlaViolation(
        session_id=session_id, kind=kind, severity=severity, contract=contract, text=text[:2000], handling=handling,
        by=by, proposal_id=proposal_id, execution_id=execution_id,
    )  # fmt: skip
