"""Between the reasoning commands' forms and the bridge: a form -> the task, a result -> the form; pure
(docs/design.md §13.5).

Everything in a form beyond the goal travels in the envelope's ``oa_context``, so that a result can be explained, and an
output form computed, from envelope and result alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from pmagent.actors.oa.reasoning.rules.facts import INIT, REFRESH
from pmagent.actors.oa.reasoning.rules.guardfailure import GUARD_KEYS
from pmagent.actors.oa.reasoning.rules.text import bounded
from pmagent.contracts.oa_documents import OADiagnostic
from pmagent.contracts.reasoning import (
    GuardFailureInterpreterResult,
    OPSBlockGeneratorResult,
    PhaseTransitionValidatorResult,
    ProgramId,
    ReasoningEnvelope,
    ReasoningResult,
    SafeOPSDecisionResult,
    check_payload,
)
from pmagent.contracts.reasoning_forms import (
    DECISIONS,
    GuardFailureInterpreterInput,
    GuardFailureInterpreterOutput,
    KernelStateForm,
    OPSBlockGeneratorInput,
    OPSBlockGeneratorOutput,
    PhaseTransitionValidatorInput,
    PhaseTransitionValidatorOutput,
    SafeOPSDecisionInput,
    SafeOPSDecisionOutput,
)
from pmagent.exitcodes import Exit
from pmagent.oa.ops_block import evidence_of, ops_block

Input = SafeOPSDecisionInput | OPSBlockGeneratorInput | GuardFailureInterpreterInput | PhaseTransitionValidatorInput
Output = (
    SafeOPSDecisionOutput | OPSBlockGeneratorOutput | GuardFailureInterpreterOutput | PhaseTransitionValidatorOutput
)

CLAIMS: Final = "claimed_kernel_state"
"""Where the caller's own view of the kernel stands in ``oa_context``."""

CONSTRAINTS: Final = "constraints"

STEPS_MAX: Final = 500


class Task(msgspec.Struct, frozen=True):
    """A form's question: a program, its goal, and what is laid over the workspace's task context."""

    program_id: ProgramId
    goal: str
    context: dict[str, Any]


def task_of(form: Input, goal: str = "") -> Task:
    """The task that a form stands for; ``goal`` in place of the one that is made of a form without a goal."""
    match form:
        case SafeOPSDecisionInput():
            return Task("SafeOPSDecision", goal or form.proposed_action, _context(form))
        case OPSBlockGeneratorInput():
            hints = [{"flow_id": hint.flow_id, "hint": hint.hint} for hint in form.hints]
            more = _given(ssot_references=form.ssot_references, hints=hints)
            return Task("OPSBlockGenerator", goal or form.goal, _context(form) | more)
        case GuardFailureInterpreterInput():
            named = form.guard_name.strip() or guard_named(form.guard_output)
            made = f"Explain why the guard {named} failed" if named else "Explain why a guard failed"
            more = {"guard_output": form.guard_output} | _given(guard_name=named)
            return Task("GuardFailureInterpreter", goal or made, _context(form) | more)
        case PhaseTransitionValidatorInput():
            proposed = _word(form.proposed_phase)
            current = "" if form.current_phase is None else _word(form.current_phase)
            made = f"Move from phase {current} to phase {proposed}" if current else f"Begin phase {proposed}"
            more = {"proposed_phase": proposed} | _given(
                current_phase=current, phase_done_checklist=form.phase_done_checklist
            )
            return Task("PhaseTransitionValidator", goal or made, _context(form) | more)


def merged(workspace: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The task context of an envelope: what is ``given`` wins over the workspace's CONTEXT, key by key; but of
    constraints both sides' hold, so that nobody is rid of one by asking differently."""
    context = {**workspace, **given}
    ours, theirs = (_listed(side.get(CONSTRAINTS)) for side in (workspace, given))
    added = [one for one in theirs if one not in ours]
    if ours or theirs:
        context[CONSTRAINTS] = [*ours, *added]
    return context


def output_of(envelope: ReasoningEnvelope, result: ReasoningResult) -> Output:
    """The output form of a result. Raises ShapeError when its decision is not its program's payload."""
    payload = check_payload(result.program_id, result.decision)
    match payload:
        case SafeOPSDecisionResult():
            return _decision(payload, result)
        case OPSBlockGeneratorResult():
            return OPSBlockGeneratorOutput(
                ops_block=ops_block(envelope, result, payload), commands=list(payload.ops_block),
                evidence_required=evidence_of(payload.ops_block),
            )
        case GuardFailureInterpreterResult():
            return _interpretation(payload, envelope, result)
        case PhaseTransitionValidatorResult():
            return _transition(payload, result)


def without_surfaces(result: ReasoningResult) -> ReasoningResult:
    """The result as a workspace is told that is set to have no kernel surfaces: there ``pmagent init`` writes none."""
    mend = 'remove surfaces = "none" from .pmagent/config.toml, then pmagent init; without surfaces nothing is decided'

    def told(one: OADiagnostic) -> OADiagnostic:
        text = one.remediation or ""
        return msgspec.structs.replace(one, remediation=mend) if INIT in text or REFRESH in text else one

    return msgspec.structs.replace(result, diagnostics=[*map(told, result.diagnostics)])


def exit_code(result: ReasoningResult) -> Exit:
    """The exit code for programs: 0 for allowed, ready, a block that was generated, a cause that was found; 8 for
    allowed under conditions; else 1."""
    if result.status in ("BLOCKED", "FAILED"):
        return Exit.NO
    match check_payload(result.program_id, result.decision):
        case SafeOPSDecisionResult(allowed_action="WARN"):
            return Exit.CONDITIONAL
        case SafeOPSDecisionResult(allowed_action=action):
            yes = action != "ABORT"
        case OPSBlockGeneratorResult(ops_block=commands):
            yes = bool(commands)
        case PhaseTransitionValidatorResult(transition_status=status):
            yes = status == "READY"
        case _:
            yes = True
    return Exit.DONE if yes else Exit.NO


def guard_named(report: Mapping[str, Any]) -> str:
    """The name of the guard that a report is of, where it says so; else ""."""
    names = (report.get(key) for key in GUARD_KEYS)
    return next((name.strip()[:200] for name in names if isinstance(name, str) and name.strip()), "")


def _decision(payload: SafeOPSDecisionResult, result: ReasoningResult) -> SafeOPSDecisionOutput:
    conditions: list[str] = []
    if payload.allowed_action == "WARN":  # nothing is to be met first where the answer is yes, or is no anyway
        conditions = [_with_remediation(one) for one in result.diagnostics if one.category == "condition"]
        conditions = conditions or [payload.safety_check_summary]  # who reads the conditions alone must find one
    reasoning = result.rationale or payload.safety_check_summary
    elsewhere = ("condition",) if conditions else ()
    return SafeOPSDecisionOutput(
        decision=DECISIONS[payload.allowed_action], reasoning=reasoning, conditions=_distinct(conditions),
        warnings=_distinct([*_warnings(result, reasoning, *elsewhere), *_mends(result, reasoning, *elsewhere)]),
    )


def _interpretation(
    payload: GuardFailureInterpreterResult, envelope: ReasoningEnvelope, result: ReasoningResult
) -> GuardFailureInterpreterOutput:
    named = envelope.oa_context.get("guard_name")
    return GuardFailureInterpreterOutput(
        guard_name=named if isinstance(named, str) else "", root_cause=payload.root_cause,
        remediation_plan=payload.remediation_plan,
        remediation_steps=[line.strip() for line in payload.remediation_plan.splitlines() if line.strip()][:STEPS_MAX],
        is_transient=payload.is_transient, reasoning=result.rationale,
        warnings=_warnings(result, f"{payload.root_cause}\n{result.rationale}"),
    )


def _transition(payload: PhaseTransitionValidatorResult, result: ReasoningResult) -> PhaseTransitionValidatorOutput:
    mends = (one.remediation for one in result.diagnostics if one.remediation)
    return PhaseTransitionValidatorOutput(
        transition_status=payload.transition_status, missing_criteria=list(payload.missing_criteria),
        reasoning=result.rationale, recommendations=_distinct(map(bounded, mends)),
        warnings=_warnings(result, "\n".join([result.rationale, *payload.missing_criteria])),
    )


def _warnings(result: ReasoningResult, shown: str, *elsewhere: str) -> list[str]:
    """The diagnostics' warnings that ``shown`` does not contain, but for the categories that stand ``elsewhere``."""
    found = _warning(result, *elsewhere)
    return _distinct(bounded(one.message) for one in found if one.message not in shown)


def _mends(result: ReasoningResult, shown: str, *elsewhere: str) -> list[str]:
    """The remedies of messages that ``shown`` contains already."""
    found = _warning(result, *elsewhere)
    return [bounded(f"to mend it: {one.remediation}") for one in found if one.remediation and one.message in shown]


def _warning(result: ReasoningResult, *elsewhere: str) -> list[OADiagnostic]:
    """The diagnostics that are more than information; that the engine was replaced first, who answered not at all."""
    shown = [one for one in result.diagnostics if one.severity != "info" and one.category not in elsewhere]
    return sorted(shown, key=lambda one: one.category != "engine")


def _context(form: Input) -> dict[str, Any]:
    claims = _claims(form.kernel_state)
    return {**form.oa_context, **({CLAIMS: claims} if claims else {})}


def _claims(state: KernelStateForm | None) -> dict[str, Any]:
    if state is None:
        return {}
    values = {name: getattr(state, name) for name in state.__struct_fields__}
    return {name: _word(value) if name == "phase" else value for name, value in values.items() if value is not None}


def _given(**values: Any) -> dict[str, Any]:
    """Those that were given."""
    return {name: value for name, value in values.items() if value}


def _word(phase: str | int) -> str:
    """A phase as a word: "28B" is one, and 28 is "28"."""
    return str(phase).strip()


def _listed(constraints: Any) -> list[Any]:
    """Constraints as a list; whatever stands there instead of one is kept as it is, to be judged and not lost."""
    if constraints is None:
        return []
    return list(constraints) if isinstance(constraints, list) else [constraints]


def _with_remediation(one: OADiagnostic) -> str:
    return bounded(f"{one.message} ({one.remediation})" if one.remediation else one.message)


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
