"""SafeOPSDecision: whether an operation is safe to go on with; pure (docs/design.md §13.2).

Objections make it ABORT, doubts make it WARN with conditions, and PROCEED is what is left. Evidence that cannot be had
(a tool not allowed, or one that failed), or that is too old in STRICT, blocks the answer itself: nothing is assumed
green.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pmagent.actors.oa.policy import allows
from pmagent.actors.oa.reasoning.rules import freshness
from pmagent.actors.oa.reasoning.rules.actions import Action, classified, is_care
from pmagent.actors.oa.reasoning.rules.answer import DIAGNOSTICS_MAX, Answer, Category, Evidence, Making
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
from pmagent.actors.oa.reasoning.rules.goal_commands import stated
from pmagent.actors.oa.reasoning.rules.text import listed, quoted
from pmagent.actors.oa.reasoning.rules.understanding import not_understood, outward, removing
from pmagent.actors.oa.reasoning.rules.vocabulary import stems, table
from pmagent.contracts.oa_documents import OADiagnostic
from pmagent.contracts.reasoning import ReasoningEnvelope, SafeOPSDecisionResult, safe_payload
from pmagent.contracts.reasoning_events import EDITION

PROGRAM = "SafeOPSDecision"

STRICT_GUARD = "pmagent oa guard --mode STRICT"
_BACKUP = table("actions").backup


class Weighing(Making):
    """An answer while it is made. ``blocks`` forbid to answer at all, ``against`` make ABORT, ``doubts`` WARN."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts.diagnostics)
        self.blocks: list[str] = []
        self.against: list[str] = []
        self.doubts: list[str] = []

    def object(self, why: str, category: Category, mend: str | None = None, **details: Any) -> None:
        """Something speaks against the operation."""
        self.against.append(why)
        self.note(category, "error", why, mend, **details)

    def doubt(self, why: str, condition: str = "", mend: str | None = None, **details: Any) -> None:
        """Something has to be done, or confirmed, first: ``condition``, or ``why`` itself."""
        self.doubts.append(why)
        self.note("condition", "warn", condition or why, mend, **details)


def answer(envelope: ReasoningEnvelope, evidence: Sequence[Evidence], edition: int = EDITION) -> Answer:
    """The rules' verdict on the envelope's goal; of edition 0 without doubt about words that are not understood."""
    facts = gather(envelope, evidence)
    if objections := forbidden(facts, PROGRAM):
        return refused(PROGRAM, objections)
    weighing = Weighing(facts)
    action = classified(envelope.goal, envelope.oa_context, envelope.timestamp)
    _tools(weighing, facts)
    _age(weighing, envelope, facts)
    _mode(weighing, action, facts)
    _constraints(weighing, envelope, action)
    _evidence(weighing, envelope, facts, action)
    _alignment(weighing, envelope, facts, action)
    _stakes(weighing, envelope, facts, action)
    if edition:
        _understanding(weighing, envelope.goal)
    return _concluded(weighing, action, facts)


def refused(program: str, objections: list[OADiagnostic]) -> Answer:
    """The answer of a program that may not answer: the first objection says why."""
    why = objections[0].message
    return Answer(payload=safe_payload(program, why), rationale=why, diagnostics=objections, permitted=False)


def _tools(weighing: Weighing, facts: Facts) -> None:
    for why in facts.unproven.values():
        weighing.blocks.append(why)
        mend = "allow the tool, and let it answer: without it the kernel's posture cannot be verified"
        weighing.note("tool", "block", why, mend)


def _age(weighing: Weighing, envelope: ReasoningEnvelope, facts: Facts) -> None:
    found = freshness.of_reality(envelope, facts)
    if found.state == "stale":
        _stale(weighing, envelope, found.why)
    elif found.state == "unknown":
        weighing.note("evidence", "warn", found.why, REFRESH)


def _stale(weighing: Weighing, envelope: ReasoningEnvelope, why: str) -> None:
    weighing.degraded = True
    if freshness.strict(envelope):
        weighing.blocks.append(f"{why}, and oa_state.mode is STRICT: that is no evidence any more")
        weighing.note("evidence", "block", why, REFRESH)
    else:
        weighing.doubt(why, f"the evidence is renewed first: {why}", REFRESH)


def _mode(weighing: Weighing, action: Action, facts: Facts) -> None:
    if not action.name:
        weighing.object(action.why, "policy", "name an action class that there is")
        return
    weighing.degraded |= facts.mode != "NORMAL"
    if not allows(facts.mode, action.name):
        why = f"mode {facts.mode} forbids {action.name}: {listed(facts.why)}"
        weighing.object(why, "policy", listed(facts.mends) or REFRESH)
    elif facts.mode != "NORMAL":
        message = f"{action.name} only: nothing beyond what mends or examines {listed(facts.why)}"
        weighing.doubt(f"mode {facts.mode}: {listed(facts.why)}", message, STRICT_GUARD)


def _constraints(weighing: Weighing, envelope: ReasoningEnvelope, action: Action) -> None:
    texts, wrong = read(envelope.oa_context.get("constraints"))
    if wrong:
        weighing.doubt(wrong, f"{wrong}: what it forbids cannot be told", "state the constraints as a list of texts")
    text = f"{envelope.goal}. {action.name}" if action.name == "migrations" else envelope.goal
    for hit in hits(texts, text):
        if hit.sure:
            weighing.object(hit.what, "policy", constraint=hit.constraint)
        else:
            weighing.doubt(hit.what, constraint=hit.constraint)
    _commands(weighing, envelope, texts)


def _commands(weighing: Weighing, envelope: ReasoningEnvelope, constraints: list[Constraint]) -> None:
    """The commands that the operation states are held to what a block may hold."""
    commands, flaws = stated(envelope.goal, {"commands": envelope.oa_context.get("commands")})
    for flaw in flaws[:DIAGNOSTICS_MAX]:
        weighing.doubt(flaw, mend="state each command as one line of text")
    for command in commands:
        forbidden, doubts = judged(command, constraints)
        if forbidden:
            weighing.object(f"{quoted(command)}: {forbidden}", "policy", "leave the command out")
        for hit in doubts:
            weighing.doubt(f"{quoted(command)}: {hit.what}", constraint=hit.constraint)
        if risks := danger(command).risks:
            why = f"{quoted(command)}: {', '.join(risks)}"
            weighing.doubt(why, f"reviewed by a person first: {why}", STRICT_GUARD)


_CONDITIONS = {
    "hard": "the operation mends what was found, and the check is run again after it",
    "soft": "the check passes again, and its earlier failures are explained",
    "impact": "the reach of the operation is acknowledged explicitly",
}
"""Weight of what a check found -> what has to be done first."""


def _evidence(weighing: Weighing, envelope: ReasoningEnvelope, facts: Facts, action: Action) -> None:
    found, problems = weighed(envelope, facts)
    weighing.diagnostics += problems
    weighing.doubts += [problem.message for problem in problems]
    weighing.degraded |= bool(found or problems)
    for one in found:
        if one.weight == "stale":
            _stale(weighing, envelope, one.what)
        elif one.weight == "hard" and not (action.declared and is_care(action)):
            weighing.object(one.what, "evidence", "mend what the check found, and run it again")
        else:
            weighing.doubt(one.what, f"{_CONDITIONS[one.weight]}: {one.what}", STRICT_GUARD)


def _alignment(weighing: Weighing, envelope: ReasoningEnvelope, facts: Facts, action: Action) -> None:
    sources = {"ssot_index": envelope.kernel_state_ref.ssot_index, SSOT_SURFACE: facts.result(SSOT_SURFACE)}
    for where, ssot in sources.items():
        stated = ssot.get("dms_share_alignment")
        what = f"{where}.dms_share_alignment is {stated}"
        broken, care = stated in ("BROKEN", "ERROR"), action.declared and is_care(action)
        if broken:
            weighing.degraded = True
            (weighing.doubts if care else weighing.against).append(what)
        if broken or stated == "UNKNOWN":
            weighing.note("evidence", "error" if broken and not care else "warn", what, REFRESH)


def _stakes(weighing: Weighing, envelope: ReasoningEnvelope, facts: Facts, action: Action) -> None:
    """High-impact work needs care whatever the guards say; unproven care is a degraded input."""
    if not action.stakes:
        return
    weighing.doubts += action.stakes
    mend = "take the backup, and name its check in the reality summary"
    weighing.note("condition", "warn", "a fresh backup is taken and can be restored", mend)
    weighing.note("condition", "warn", "the guards pass in STRICT right before it", STRICT_GUARD)
    weighing.note("condition", "warn", f"who does it acknowledges the risk explicitly: {listed(action.stakes)}")
    if not _backup_proven(envelope, facts):
        weighing.degraded = True
        why = "no passed check of the reality summary is about a backup"
        weighing.doubts.append(why)
        weighing.note("evidence", "warn", why, REFRESH)


def _understanding(weighing: Weighing, goal: str) -> None:
    """Goals that send, reveal or remove something, and words that nobody here understands, are for a person."""
    for why in (*outward(goal), *removing(goal)):
        weighing.doubt(why, f"confirmed by a person, who knows what leaves or is lost: {why}")
    if words := not_understood(goal):
        why = f"not understood: {', '.join(words)}"
        weighing.doubt(why, f"a person says what is meant by: {', '.join(words)}", "say it in plain English")


def _backup_proven(envelope: ReasoningEnvelope, facts: Facts) -> bool:
    """Whether a check of the reality summary that names a backup passed. A caller's own claim is no proof."""
    summary = facts.result(REALITY_SUMMARY) or envelope.kernel_state_ref.reality_summary
    return any(
        isinstance(check, dict)
        and check.get("passed") is True
        and isinstance(check.get("name"), str)
        and stems(check["name"]) & _BACKUP
        for check in listing(summary.get("checks"))
    )


def _concluded(weighing: Weighing, action: Action, facts: Facts) -> Answer:
    if weighing.blocks:
        why = listed(weighing.blocks)
        weighing.degraded = True
        return weighing.answer(safe_payload(PROGRAM, why), why, permitted=False)
    state = f"mode {facts.mode}, reality green, {action.why}"
    verdict: Literal["PROCEED", "WARN", "ABORT"] = "PROCEED"
    text = why = f"nothing speaks against it: {state}; no constraint forbids it"
    if weighing.against:
        verdict, text = "ABORT", listed([*weighing.against, *weighing.doubts])
        why = f"aborted: {text} ({state})"
    elif weighing.doubts:
        doubts = listed(weighing.doubts)
        verdict, text, why = "WARN", f"on conditions: {doubts}"[:16_384], f"allowed on conditions: {doubts} ({state})"
    payload = SafeOPSDecisionResult(allowed_action=verdict, safety_check_summary=text)
    return weighing.answer(payload, why)
