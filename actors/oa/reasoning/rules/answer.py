"""Evidence and answers of a program's rules; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec

from pmagent.actors.oa.reasoning.rules.text import bounded
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

DIAGNOSTICS_MAX: Final = 200


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one tool call of the run: ``result``, or ``error`` (with ``result`` None)."""

    tool_id: str
    args: dict[str, Any]
    result: dict[str, Any] | None
    error: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An engine's answer before it becomes a ReasoningResult.

    ``rationale`` names the inputs that decided. ``permitted`` false: the program was not allowed to answer (BLOCKED),
    and the payload is the safe one; ``degraded``: the inputs were incomplete or spoke against each other.
    """

    payload: Payloads
    rationale: str
    diagnostics: list[OADiagnostic] = []
    permitted: bool = True
    degraded: bool = False


_TYPES: Final[dict[Severity, Literal["issue", "warn", "blocker"]]] = {
    "info": "issue", "warn": "warn", "error": "issue", "block": "blocker",
}  # fmt: skip


def finding(
    category: Category, severity: Severity, message: str, remediation: str | None = None, **details: Any
) -> OADiagnostic:
    """A diagnostic of a run. Its ``type`` follows from the severity."""
    return OADiagnostic(
        type=_TYPES[severity], category=category, severity=severity, message=message, details=details,
        remediation=remediation,
    )


class Making:
    """An answer while it is made: its diagnostics so far, and whether it is ``degraded``."""

    def __init__(self, diagnostics: Iterable[OADiagnostic]) -> None:
        self.diagnostics = list(diagnostics)
        self.degraded = False

    def note(
        self, category: Category, severity: Severity, message: str, mend: str | None = None, **details: Any
    ) -> None:
        """Add a diagnostic."""
        self.diagnostics.append(finding(category, severity, message, mend, **details))

    def flaw(self, message: str, mend: str | None = None, category: Category = "evidence") -> None:
        """An input is missing, broken, or speaks against: the answer is degraded."""
        self.degraded = True
        self.note(category, "warn", message, mend)

    def answer(self, payload: Payloads, rationale: str, *, permitted: bool = True) -> Answer:
        """The answer."""
        return Answer(
            payload=payload, rationale=bounded(rationale), diagnostics=self.diagnostics[:DIAGNOSTICS_MAX],
            permitted=permitted, degraded=self.degraded,
        )
