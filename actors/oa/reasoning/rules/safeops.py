"""SafeOPSDecision: whether an operation is safe to go on with; pure (docs/design.md §13.2).

Objections make it ABORT, doubts make it WARN with conditions, and PROCEED is what is left. Evidence that cannot be had
(a tool not allowed, or one that failed), or that is too old in STRICT, blocks the answer itself: nothing is assumed
green.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pmagent.actors.oa.policy import allows
from pmagent.actors.oa.reasoning.rules import freshness
from pmagent.actors.oa.reasoning.rules.actions import Action, classified, is_care
from pmagent.actors.oa.reasoning.rules.answer import Answer, Evidence, finding
from pmagent.actors.oa.reasoning.rules.commands import danger, judged
from pmagent.actors.oa.reasoning.rules.constraints import Constraint, hits, read
from pmagent.actors.oa.reasoning.rules.evidence import weighed
from pmagent.actors.oa.reasoning.rules.facts import (
    REALITY_SUMMARY,
    REFRESH,
    SSOT_SURFACE,
    Facts,
    forbidden,
    gather,
    listing,
)
from pmagent.actors.oa.reasoning.rules.stated import stated
from pmagent.actors.oa.reasoning.rules.text import listed, quoted
from pmagent.actors.oa.reasoning.rules.vocabulary import stems, table
from pmagent.contracts.oa_documents import OADiagnostic
from pmagent.contracts.reasoning import ReasoningEnvelope, SafeOPSDecisionResult, safe_payload

PROGRAM = "SafeOPSDecision"
DIAGNOSTICS_MAX = 200

STRICT_GUARD = "pmagent oa guard --mode STRICT"
_BACKUP = table("actions").backup


class Weighing(msgspec.Struct):
    """An answer while it is made. ``blocks`` forbid to answer at all, ``against`` make ABORT, ``doubts`` WARN;
    ``degraded``: inputs were incomplete or spoke against the operation."""

    blocks: list[str] = []
    against: list[str] = []
    doubts: list[str] = []
    diagnostics: list[OADiagnostic] = []
    degraded: bool = False


def answer(envelope: ReasoningEnvelope, evidence: Sequence[Evidence]) -> Answer:
    """The rules' verdict on the envelope's goal."""
    facts = gather(envelope, evidence)
    if objections := forbidden(facts, PROGRAM):
        return refused(PROGRAM, objections)
    weighing = Weighing(diagnostics=list(facts.diagnostics))
    action = classified(envelope.goal, envelope.oa_context, envelope.timestamp)
    _tools(weighing, facts)
    _age(weighing, envelope, facts)
    _mode(weighing, action, facts)
    _constraints(weighing, envelope, action)
    _evidence(weighing, envelope, facts, action)
    _alignment(weighing, envelope, facts, action)
    _stakes(weighing, envelope, facts, action)
    return _concluded(weighing, action, facts)


def refused(program: str, objections: list[OADiagnostic]) -> Answer:
    """The answer of a program that may not answer: the first objection says why."""
    why = objections[0].message
    return Answer(payload=safe_payload(program, why), rationale=why, diagnostics=objections, permitted=False)


def _tools(weighing: Weighing, facts: Facts) -> None:
    for why in facts.unproven.values():
        weighing.blocks.append(why)
        mend = "allow the tool, and let it answer: without it the kernel's posture cannot be verified"
        weighing.diagnostics.append(finding("tool", "block", why, mend))


def _age(weighing: Weighing, envelope: ReasoningEnvelope, facts: Facts) -> None:
    found = freshness.of_reality(envelope, facts)
    if found.state == "stale":
        _stale(weighing, envelope, found.why)
    elif found.state == "unknown":
        weighing.diagnostics.append(finding("evidence", "warn", found.why, REFRESH))


def _stale(weighing: Weighing, envelope: ReasoningEnvelope, why: str) -> None:
    weighing.degraded = True
    if freshness.strict(envelope):
        weighing.blocks.append(f"{why}, and oa_state.mode is STRICT: that is no evidence any more")
        weighing.diagnostics.append(finding("evidence", "block", why, REFRESH))
    else:
        weighing.doubts.append(why)
        weighing.diagnostics.append(finding("condition", "warn", "the evidence is renewed first: " + why, REFRESH))


def _mode(weighing: Weighing, action: Action, facts: Facts) -> None:
    if not action.name:
        weighing.against.append(action.why)
        weighing.diagnostics.append(finding("policy", "error", action.why, "name an action class that there is"))
        return
    if not allows(facts.mode, action.name):
        why = f"mode {facts.mode} forbids {action.name}: {listed(facts.why)}"
        weighing.against.append(why)
        weighing.diagnostics.append(finding("policy", "error", why, listed(facts.mends) or REFRESH))
    if facts.mode != "NORMAL":
        weighing.degraded = True
        if allows(facts.mode, action.name):
            weighing.doubts.append(f"mode {facts.mode}: {listed(facts.why)}")
            message = f"{action.name} only: nothing beyond what mends or examines {listed(facts.why)}"
            weighing.diagnostics.append(finding("condition", "warn", message, STRICT_GUARD))


def _constraints(weighing: Weighing, envelope: ReasoningEnvelope, action: Action) -> None:
    texts, wrong = read(envelope.oa_context.get("constraints"))
    if wrong:
        weighing.doubts.append(wrong)
        message = f"{wrong}: what it forbids cannot be told"
        weighing.diagnostics.append(finding("condition", "warn", message, "state the constraints as a list of texts"))
    said = f"{envelope.goal}. {action.name}" if action.name == "migrations" else envelope.goal
    for hit in hits(texts, said):
        if hit.sure:
            weighing.against.append(hit.what)
            weighing.diagnostics.append(finding("policy", "error", hit.what, constraint=hit.constraint))
        else:
            weighing.doubts.append(hit.what)
            weighing.diagnostics.append(finding("condition", "warn", hit.what, constraint=hit.constraint))
    _commands(weighing, envelope, texts)


def _commands(weighing: Weighing, envelope: ReasoningEnvelope, constraints: list[Constraint]) -> None:
    """The commands that the operation states are held to what a block may hold."""
    commands, flaws = stated(envelope.goal, {"commands": envelope.oa_context.get("commands")})
    for flaw in flaws[:DIAGNOSTICS_MAX]:
        weighing.doubts.append(flaw)
        weighing.diagnostics.append(finding("condition", "warn", flaw, "state each command as one line of text"))
    for command in commands:
        forbidden, doubts = judged(command, constraints)
        if forbidden:
            why = f"{quoted(command)}: {forbidden}"
            weighing.against.append(why)
            weighing.diagnostics.append(finding("policy", "error", why, "leave the command out"))
        for hit in doubts:
            why = f"{quoted(command)}: {hit.what}"
            weighing.doubts.append(why)
            weighing.diagnostics.append(finding("condition", "warn", why, constraint=hit.constraint))
        if risks := danger(command).risks:
            why = f"{quoted(command)}: {', '.join(risks)}"
            weighing.doubts.append(why)
            weighing.diagnostics.append(
                finding("condition", "warn", f"reviewed by a person first: {why}", STRICT_GUARD)
            )


def _evidence(weighing: Weighing, envelope: ReasoningEnvelope, facts: Facts, action: Action) -> None:
    found, problems = weighed(envelope, facts)
    weighing.diagnostics += problems
    if problems:
        weighing.doubts += [problem.message for problem in problems]
        weighing.degraded = True
    for one in found:
        if one.weight == "stale":
            _stale(weighing, envelope, one.what)
            continue
        weighing.degraded = True
        if one.weight == "hard" and not (action.declared and is_care(action)):
            weighing.against.append(one.what)
            mend = "mend what the check found, and run it again"
            weighing.diagnostics.append(finding("evidence", "error", one.what, mend))
            continue
        weighing.doubts.append(one.what)
        said = {
            "hard": "the operation mends what was found, and the check is run again after it",
            "soft": "the check passes again, and its earlier failures are explained",
            "impact": "the reach of the operation is acknowledged explicitly",
        }[one.weight]
        weighing.diagnostics.append(finding("condition", "warn", f"{said}: {one.what}", STRICT_GUARD))


def _alignment(weighing: Weighing, envelope: ReasoningEnvelope, facts: Facts, action: Action) -> None:
    sources = {"ssot_index": envelope.kernel_state_ref.ssot_index, SSOT_SURFACE: facts.result(SSOT_SURFACE)}
    for where, ssot in sources.items():
        told = ssot.get("dms_share_alignment")
        what = f"{where}.dms_share_alignment is {told}"
        if told in ("BROKEN", "ERROR"):
            weighing.degraded = True
            care = action.declared and is_care(action)
            (weighing.doubts if care else weighing.against).append(what)
            weighing.diagnostics.append(finding("evidence", "warn" if care else "error", what, REFRESH))
        elif told == "UNKNOWN":
            weighing.diagnostics.append(finding("evidence", "warn", what, REFRESH))


def _stakes(weighing: Weighing, envelope: ReasoningEnvelope, facts: Facts, action: Action) -> None:
    """High-impact work needs care whatever the guards say; unproven care is a degraded input."""
    if not action.stakes:
        return
    weighing.doubts += action.stakes
    for message, mend in (
        ("a fresh backup is taken and can be restored", "take the backup, and name its check in the reality summary"),
        ("the guards pass in STRICT right before it", STRICT_GUARD),
        (f"who does it acknowledges the risk explicitly: {listed(action.stakes)}", None),
    ):
        weighing.diagnostics.append(finding("condition", "warn", message, mend))
    if not _backup_proven(envelope, facts):
        weighing.degraded = True
        why = "no passed check of the reality summary is about a backup"
        weighing.doubts.append(why)
        weighing.diagnostics.append(finding("evidence", "warn", why, REFRESH))


def _backup_proven(envelope: ReasoningEnvelope, facts: Facts) -> bool:
    """Whether a check of the reality summary that names a backup passed. What a caller says of its own is no proof."""
    summary = facts.result(REALITY_SUMMARY) or envelope.kernel_state_ref.reality_summary
    return any(
        isinstance(check, dict)
        and check.get("passed") is True
        and isinstance(check.get("name"), str)
        and stems(check["name"]) & _BACKUP
        for check in listing(summary.get("checks"))
    )


def _concluded(weighing: Weighing, action: Action, facts: Facts) -> Answer:
    diagnostics = weighing.diagnostics[:DIAGNOSTICS_MAX]
    if weighing.blocks:
        why = listed(weighing.blocks)
        return Answer(
            payload=safe_payload(PROGRAM, why), rationale=why, diagnostics=diagnostics, permitted=False, degraded=True
        )
    state = f"mode {facts.mode}, reality green, {action.why}"
    if weighing.against:
        said = listed([*weighing.against, *weighing.doubts])
        payload = SafeOPSDecisionResult(allowed_action="ABORT", safety_check_summary=said)
        return _answer(payload, f"aborted: {said} ({state})", diagnostics, degraded=weighing.degraded)
    if weighing.doubts:
        said = listed(weighing.doubts)
        payload = SafeOPSDecisionResult(allowed_action="WARN", safety_check_summary=f"on conditions: {said}"[:16_384])
        return _answer(payload, f"allowed on conditions: {said} ({state})", diagnostics, degraded=weighing.degraded)
    said = f"nothing speaks against it: {state}; no constraint forbids it"
    return _answer(
        SafeOPSDecisionResult(allowed_action="PROCEED", safety_check_summary=said), said, diagnostics, degraded=False
    )


def _answer(payload: SafeOPSDecisionResult, why: str, diagnostics: list[OADiagnostic], *, degraded: bool) -> Answer:
    return Answer(payload=payload, rationale=listed([why]), diagnostics=diagnostics, degraded=degraded)
