"""What a program's rules are given and what they answer; pure."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from pmagent.contracts.oa_documents import OADiagnostic, Severity
from pmagent.contracts.reasoning import Payloads

Category = Literal[
    "engine",  # who answered
    "condition",  # what has to be done first; the message is the condition, the remediation how to meet it
    "policy",  # a rule, a mode or a constraint that forbids
    "evidence",  # what an input says against, or does not say
    "tool",  # a tool that could not be, or was not, called
    "kernel_mismatch",
    "config_drift",
    "missing_surface",
    "schema_violation",
    "tri_surface_incoherence",
]
"""The categories of a result's diagnostics: those of the guards, and the reasoning's own."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What one tool call of the run brought: ``result``, or ``error`` (with ``result`` None)."""

    tool_id: str
    args: dict[str, Any]
    result: dict[str, Any] | None
    error: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine says before it becomes a ReasoningResult.

    ``rationale`` names the inputs that decided. ``permitted`` false: the program was not allowed to answer (BLOCKED),
    and the payload is the safe one; ``degraded``: the inputs were incomplete or spoke against each other.
    """

    payload: Payloads
    rationale: str
    diagnostics: list[OADiagnostic] = []
    permitted: bool = True
    degraded: bool = False


def finding(
    category: Category, severity: Severity, message: str, remediation: str | None = None, **details: Any
) -> OADiagnostic:
    """A diagnostic of a run. Its ``type`` follows from the severity."""
    kind: dict[Severity, Literal["issue", "warn", "blocker"]] = {
        "info": "issue", "warn": "warn", "error": "issue", "block": "blocker",
    }
    return OADiagnostic(
        type=kind[severity], category=category, severity=severity, message=message, details=details,
        remediation=remediation,
    )
