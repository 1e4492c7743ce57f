"""How a run ends: from an engine's answer, or from the want of one, to the one ReasoningResult; pure."""

from __future__ import annotations

from typing import Final

import msgspec

from pmagent.actors.oa.reasoning.prompts import ModelVerdict
from pmagent.actors.oa.reasoning.rules.answer import Answer, finding
from pmagent.actors.oa.reasoning.rules.engine import answer, floor, permitted
from pmagent.actors.oa.reasoning.rules.text import bounded
from pmagent.actors.oa.reasoning.runs import Run
from pmagent.contracts.oa_documents import OADiagnostic
from pmagent.contracts.reasoning import (
    DIAGNOSTIC_PROGRAMS,
    OPSBlockGeneratorResult,
    ReasoningResult,
    ReasoningStatus,
    ShapeError,
    check_result,
    is_safe,
    safe_payload,
)
from pmagent.contracts.reasoning_events import ReasoningConcluded

DIAGNOSTICS_MAX: Final = 100
MESSAGE_CHARS_MAX: Final = 1_000
RESULT_BYTES_MAX: Final = 700_000
"""Bounds of a result, so that the decision that carries it fits into a line of the log."""


def by_rules(run: Run) -> ReasoningConcluded:
    """The rules' answer, as the engine that was asked for."""
    given = answer(run.asked.envelope, run.evidence, run.asked.edition)
    return _answered(run, given, "rules", [_engine("rules", "the rules answered")])


def by_fallback(run: Run, why: str) -> ReasoningConcluded:
    """The rules' answer in the place of an engine that has none, because of ``why``."""
    given = answer(run.asked.envelope, run.evidence, run.asked.edition)
    message = f"{_named(run)} gave no answer ({why}); the rules answered instead"
    notice = finding("engine", "warn", message, engine="rules")
    return _answered(run, msgspec.structs.replace(given, degraded=True), "rules", [notice])


def by_model(run: Run, verdict: ModelVerdict) -> ReasoningConcluded:
    """A model's answer, as far as the facts let it stand."""
    envelope, evidence = run.asked.envelope, run.evidence
    payload, corrections = floor(envelope, evidence, verdict.payload, run.asked.edition)
    by_facts = answer(envelope, evidence, run.asked.edition)
    findings = [finding("condition", "warn", text) for text in verdict.conditions]
    findings += [finding("evidence", "warn", text) for text in verdict.warnings]
    emptied = isinstance(payload, OPSBlockGeneratorResult) and is_safe(payload) and not is_safe(verdict.payload)
    given = Answer(
        payload=payload, rationale=verdict.rationale, diagnostics=[*corrections, *findings],
        permitted=by_facts.permitted and not emptied, degraded=by_facts.degraded,
    )
    return _answered(run, given, run.asked.engine, [_engine(run.asked.engine, f"{_named(run)} answered")])


def by_answer(run: Run, given: Answer) -> ReasoningConcluded:
    """The answer that the facts alone decide, before any engine is asked."""
    return _answered(run, given, "", [])


def blocked(run: Run) -> ReasoningConcluded:
    """The kernel is BLOCKED, and the program may not answer then. An envelope that shows it BLOCKED shows why, too."""
    objection = permitted(run.asked.envelope)
    if objection is not None and _mode(run) == "BLOCKED":
        return by_answer(run, objection)
    why = f"the kernel is BLOCKED, so {run.program} may not answer"
    mend = "pmagent status names what would mend it"
    return _without_answer(run, "BLOCKED", [finding("policy", "block", why, mend)], why)


def failed(run: Run, why: str, mend: str) -> ReasoningConcluded:
    """No engine gave an answer that fits."""
    return _without_answer(run, "FAILED", [finding("engine", "error", f"{_named(run)}: {why}", mend)], why)


def _answered(run: Run, given: Answer, engine: str, diagnostics: list[OADiagnostic]) -> ReasoningConcluded:
    status: ReasoningStatus = "BLOCKED" if not given.permitted else "DEGRADED" if given.degraded else "OK"
    if _mode(run) == "DEGRADED" and status == "OK":
        status = "DEGRADED"
    result = ReasoningResult(
        envelope_id=run.asked.envelope.envelope_id, program_id=run.asked.envelope.program_id, status=status,
        decision=msgspec.to_builtins(given.payload), rationale=bounded(given.rationale), tool_calls=run.tool_calls,
        diagnostics=_limited([*diagnostics, *given.diagnostics, *_refusals(run)]),
    )
    try:
        check_result(result)
        if len(msgspec.json.encode(result)) > RESULT_BYTES_MAX:
            raise ShapeError(f"the result is larger than {RESULT_BYTES_MAX} bytes")
    except ShapeError as error:
        return failed(run, str(error), "ask for less at once")
    return _concluded(run, engine, result)


def _without_answer(run: Run, status: ReasoningStatus, diagnostics: list[OADiagnostic], why: str) -> ReasoningConcluded:
    envelope = run.asked.envelope
    result = ReasoningResult(
        envelope_id=envelope.envelope_id, program_id=envelope.program_id, status=status,
        decision=msgspec.to_builtins(safe_payload(envelope.program_id, why)), rationale=bounded(why),
        tool_calls=run.tool_calls, diagnostics=_limited([*diagnostics, *_refusals(run)]),
    )
    return _concluded(run, "", result)


def _concluded(run: Run, engine: str, result: ReasoningResult) -> ReasoningConcluded:
    return ReasoningConcluded(
        request=run.request, envelope_sha256=run.sha256, engine=engine, tries=run.tries, result=result
    )


def forbidden(run: Run, *, blocked: bool) -> bool:
    """Whether a kernel that is ``blocked`` forbids the run's program to answer."""
    return blocked and run.program not in DIAGNOSTIC_PROGRAMS


def _mode(run: Run) -> str:
    return run.asked.envelope.kernel_state_ref.mode


def _named(run: Run) -> str:
    asked = run.asked
    return asked.engine if asked.engine == "rules" else f"{asked.engine} ({bounded(asked.model, 200)})"


def _engine(engine: str, message: str) -> OADiagnostic:
    return finding("engine", "info", message, engine=engine)


def _refusals(run: Run) -> list[OADiagnostic]:
    return [finding("tool", "warn", f"{one.tool} was not called: {one.reason}") for one in run.refusals]


def _limited(diagnostics: list[OADiagnostic]) -> list[OADiagnostic]:
    cut = [
        msgspec.structs.replace(
            one, message=bounded(one.message, MESSAGE_CHARS_MAX),
            remediation=None if one.remediation is None else bounded(one.remediation, MESSAGE_CHARS_MAX),
        )
        for one in diagnostics[:DIAGNOSTICS_MAX]
    ]
    if len(diagnostics) > DIAGNOSTICS_MAX:
        cut.append(finding("evidence", "info", f"{len(diagnostics) - DIAGNOSTICS_MAX} further diagnostics"))
    return cut
