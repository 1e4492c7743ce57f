"""The reasoning programs' answers, for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from pmagent.actors.oa.reasoning.rules.opsblock import MANUAL_STEP
from pmagent.cli.output import Output, Styled
from pmagent.contracts.reasoning import ReasoningEnvelope, ReasoningResult
from pmagent.contracts.reasoning_forms import (
    GuardFailureInterpreterOutput,
    OPSBlockGeneratorOutput,
    PhaseTransitionValidatorOutput,
    SafeOPSDecisionOutput,
)
from pmagent.oa.forms import output_of
from pmagent.oa.reasoning import Concluded

_MARKS: Final = {
    "ALLOW": Styled("✓ ALLOW", "green"),
    "CONDITIONAL": Styled("▸ CONDITIONAL", "yellow"),
    "DENY": Styled("✗ DENY", "red"),
    "READY": Styled("✓ READY", "green"),
    "NOT_READY": Styled("✗ NOT_READY", "red"),
}


def as_block(document: ReasoningEnvelope | ReasoningResult) -> str:
    """A document as indented JSON, to be cleaned like every text for people."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def screen(output: Output, envelope: ReasoningEnvelope, concluded: Concluded) -> None:
    """The output form of a run, and below it who answered."""
    form = output_of(envelope, concluded.result)
    match form:
        case SafeOPSDecisionOutput():
            output.line(_MARKS[form.decision], f": {envelope.goal}")
            _lines(output, [form.reasoning])
            _listed(output, "condition", form.conditions)
            _listed(output, "warning", form.warnings)
        case OPSBlockGeneratorOutput():
            output.block(form.ops_block)
        case GuardFailureInterpreterOutput():
            passing = " (transient: the same run may pass without any change)" if form.is_transient else ""
            output.line(Styled(f"{form.guard_name or 'the guard'}: {form.root_cause}", "bold"), passing)
            _lines(output, form.remediation_steps)
            _listed(output, "warning", form.warnings)
        case PhaseTransitionValidatorOutput():
            output.line(_MARKS[form.transition_status], f": {envelope.goal}")
            _lines(output, [form.reasoning])
            _listed(output, "missing", form.missing_criteria)
            _listed(output, "recommended", form.recommendations)
            _listed(output, "warning", form.warnings)
    who = concluded.engine or "no engine"
    place = f"{who}, {concluded.result.status}, position {concluded.position}, {concluded.correlation}"
    output.note(Styled(f"answered by {place}", "dim"))


def by_hand(result: ReasoningResult) -> bool:
    """Whether a block leaves its work to a person, without a command for it."""
    return any(str(command).startswith(MANUAL_STEP) for command in result.decision.get("ops_block", ()))


def _lines(output: Output, texts: Iterable[str]) -> None:
    for text in texts:
        for line in text.splitlines():
            output.line(f"  {line}")


def _listed(output: Output, what: str, texts: Iterable[str]) -> None:
    for text in texts:
        output.line(f"  {what}: {text}")
