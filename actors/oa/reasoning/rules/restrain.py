"""A model's answer, restrained by the rules: never more than they would allow themselves; pure."""

from __future__ import annotations

from pmagent.actors.oa.reasoning.rules.answer import Answer, finding
from pmagent.actors.oa.reasoning.rules.commands import danger, judged, score
from pmagent.actors.oa.reasoning.rules.constraints import read
from pmagent.actors.oa.reasoning.rules.opsblock import risky
from pmagent.actors.oa.reasoning.rules.text import bounded, listed, quoted
from pmagent.contracts.oa_documents import OADiagnostic
from pmagent.contracts.reasoning import (
    CRITERIA_MAX,
    GuardFailureInterpreterResult,
    OPSBlockGeneratorResult,
    Payloads,
    PhaseTransitionValidatorResult,
    ReasoningEnvelope,
    SafeOPSDecisionResult,
    is_safe,
)

STRICTNESS = {"PROCEED": 0, "WARN": 1, "ABORT": 2}
"""Order of the verdicts: a higher one allows less."""

Restrained = tuple[Payloads, list[OADiagnostic]]


def restrained(envelope: ReasoningEnvelope, own: Answer, payload: Payloads) -> Restrained:
    """The model's ``payload`` held against the rules' ``own`` answer to the same envelope, and each change told; where
    something stays permitted, the rules' conditions for it as well."""
    if type(payload) is not type(own.payload):
        message = f"the model answered for another program than {envelope.program_id}: the rules' answer stands"
        return own.payload, [finding("policy", "error", message)]
    if not own.permitted:
        if is_safe(payload):
            return payload, []
        message = f"the rules do not permit an answer: {own.rationale}"
        return own.payload, [finding("policy", "block", bounded(message))]
    conditions = [diagnostic for diagnostic in own.diagnostics if diagnostic.category == "condition"]
    match payload, own.payload:
        case SafeOPSDecisionResult(), SafeOPSDecisionResult() as rules:
            changed, changes = _verdict(payload, rules)
            return changed, changes if changed.allowed_action == "ABORT" else [*changes, *conditions]
        case PhaseTransitionValidatorResult(), PhaseTransitionValidatorResult() as rules:
            step, added = _criteria(payload, rules)
            return step, added if step.missing_criteria else [*added, *conditions]
        case OPSBlockGeneratorResult(), OPSBlockGeneratorResult():
            return _block(envelope, payload)
        case GuardFailureInterpreterResult(), GuardFailureInterpreterResult() as rules:
            return _cause(payload, rules)
    return own.payload, []


def _verdict(
    payload: SafeOPSDecisionResult, rules: SafeOPSDecisionResult
) -> tuple[SafeOPSDecisionResult, list[OADiagnostic]]:
    if STRICTNESS[payload.allowed_action] >= STRICTNESS[rules.allowed_action]:
        return payload, []
    message = f"the model's {payload.allowed_action} became {rules.allowed_action}: {rules.safety_check_summary}"
    summary = bounded(
        f"{rules.safety_check_summary} (the model said {payload.allowed_action}: "
        f"{quoted(payload.safety_check_summary)})"
    )
    changed = SafeOPSDecisionResult(allowed_action=rules.allowed_action, safety_check_summary=summary)
    return changed, [finding("policy", "warn", bounded(message))]


def _criteria(
    payload: PhaseTransitionValidatorResult, rules: PhaseTransitionValidatorResult
) -> tuple[PhaseTransitionValidatorResult, list[OADiagnostic]]:
    added = [criterion for criterion in rules.missing_criteria if criterion not in payload.missing_criteria]
    if not added:
        return payload, []
    every = [*rules.missing_criteria, *(one for one in payload.missing_criteria if one not in rules.missing_criteria)]
    changed = PhaseTransitionValidatorResult(transition_status="NOT_READY", missing_criteria=every[:CRITERIA_MAX])
    message = f"the model's {payload.transition_status} lacked what the rules find missing: {listed(added)}"
    return changed, [finding("policy", "warn", bounded(message))]


def _block(envelope: ReasoningEnvelope, payload: OPSBlockGeneratorResult) -> Restrained:
    texts, _ = read(envelope.oa_context.get("constraints"))
    objections = [f"{quoted(command)}: {why}" for command in payload.ops_block if (why := judged(command, texts)[0])]
    if objections:
        why = f"the model's block was emptied: {listed(objections)}"
        emptied = OPSBlockGeneratorResult(
            ops_block=[], complexity_score=payload.complexity_score, risk_analysis=bounded(why)
        )
        return emptied, [finding("policy", "block", bounded(why))]
    changes = []
    points, analysis = payload.complexity_score, payload.risk_analysis
    least = score(payload.ops_block)
    if points < least:
        changes.append(
            finding("policy", "info", f"complexity_score {points} became {least}: what the commands do counts")
        )
        points = least
    if unsaid := [risk for risk in risky(payload.ops_block) if risk not in analysis]:
        changes.append(finding("policy", "info", bounded(f"risks that the model does not name: {listed(unsaid)}")))
        analysis = bounded(f"{listed(unsaid)}; {analysis}")
    changed = OPSBlockGeneratorResult(ops_block=payload.ops_block, complexity_score=points, risk_analysis=analysis)
    return changed, changes


def _cause(payload: GuardFailureInterpreterResult, rules: GuardFailureInterpreterResult) -> Restrained:
    """A failure is only called transient, and a step only advised, when nothing that is known speaks against it."""
    changes = []
    transient, steps = payload.is_transient, payload.remediation_plan
    if transient and not rules.is_transient and not rules.root_cause.startswith("not determined"):
        changes.append(
            finding("policy", "warn", f"is_transient became false: {quoted(rules.root_cause)} stays until mended")
        )
        transient = False
    if bad := [line for line in steps.splitlines() if danger(line).forbidden]:
        message = f"the model's plan was replaced: {quoted(bad[0])} {danger(bad[0]).forbidden}"
        changes.append(finding("policy", "warn", message))
        steps = rules.remediation_plan
    changed = GuardFailureInterpreterResult(
        root_cause=payload.root_cause, remediation_plan=steps, is_transient=transient
    )
    return changed, changes
