"""GuardFailureInterpreter: why a guard failed and what mends it; pure (docs/design.md §13.2).

It runs in every mode: it is how one gets out of the bad ones. The cause is the deepest that the reports name, the plan
is made of the reports' own remediations and the kernel's, and ends with the guard itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from pmagent.actors.oa.reasoning.rules.answer import Answer, Evidence, Making
from pmagent.actors.oa.reasoning.rules.causes import (
    FAILED,
    FAILED_CHECK,
    FOLLOWS,
    INCOHERENT,
    INVALID,
    KINDS,
    LOG,
    MISSING,
    Cause,
    causes,
    failed_check,
    ranked,
    spoken,
    summary,
)
from pmagent.actors.oa.reasoning.rules.commands import danger
from pmagent.actors.oa.reasoning.rules.evidence import adverse
from pmagent.actors.oa.reasoning.rules.facts import GUARD_RUN, KERNEL_STATUS, REFRESH, Facts, gather, listing, mapping
from pmagent.actors.oa.reasoning.rules.goal_commands import guard_command, guard_name
from pmagent.actors.oa.reasoning.rules.text import bounded, listed, quoted
from pmagent.contracts.reasoning import GuardFailureInterpreterResult, ReasoningEnvelope

PROGRAM = "GuardFailureInterpreter"

GUARD_KEYS = ("guard_name", "guard", "name")
STEPS_MAX = 40

_MENDS = {
    LOG: ("pmagent log verify",),
    MISSING: (REFRESH,),
    INVALID: ("pmagent oa guard --mode HINT --name surface_schema",),
    INCOHERENT: (REFRESH, "pmagent oa snapshot"),
    FAILED: (),
    FOLLOWS: (REFRESH,),
}
"""Remedies of a cause whose report names none, by depth."""


def guard_in_question(envelope: ReasoningEnvelope) -> str:
    """The guard whose failure it is, if there is one of that name: as the context says, else its report; else ""."""
    return guard_name(_named(envelope.oa_context))


def _named(context: dict[str, Any]) -> str:
    report = mapping(context.get("guard_output"))
    given = [context.get("guard_name"), *(report.get(key) for key in GUARD_KEYS)]
    return next((name.strip() for name in given if isinstance(name, str) and name.strip()), "")


def answer(envelope: ReasoningEnvelope, evidence: Sequence[Evidence]) -> Answer:
    """Cause, cure, and whether it may pass by itself."""
    facts = gather(envelope, evidence)
    made = Making(facts.diagnostics)
    made.degraded = facts.mode != "NORMAL" or not facts.green
    given = envelope.oa_context.get("guard_output")
    if given is not None and not isinstance(given, dict):
        made.flaw(f"oa_context.guard_output is {quoted(given)}, not an object")
    report, rerun = mapping(given), facts.result(GUARD_RUN)
    for tool, why in facts.unproven.items():
        if tool == KERNEL_STATUS or guard_in_question(envelope):
            made.flaw(why, "allow the tool, and let it answer", "tool")
    name = _named(envelope.oa_context)
    current = report or rerun
    if current.get("ok") is True and rerun.get("ok", True) is True:
        return _nothing(made, name, facts)
    found = _causes(envelope, report, rerun, facts, passed_now=bool(report) and rerun.get("ok") is True)
    if not found:
        return _unknown(made, name, current, facts)
    passing = _passing(envelope, found[0], rerun if report else {})
    return _interpreted(made, name, found, facts, passing)


def _causes(
    envelope: ReasoningEnvelope, report: dict[str, Any], rerun: dict[str, Any], facts: Facts, *, passed_now: bool
) -> list[Cause]:
    """The causes that the report, the guard as it answers now, and the kernel's reasons name; deepest first."""
    found = causes(report)
    if not passed_now:
        found += causes(rerun)
    if not report and not rerun:
        found += [Cause(FAILED, FAILED_CHECK + name) for name in facts.failed_checks]
    kernel = facts.result(KERNEL_STATUS)
    reasons = [reason for reason in listing(kernel.get("reasons")) if isinstance(reason, str)]
    if not passed_now:
        found += _without_repeats([spoken(reason) for reason in reasons], found)
    return ranked([_with_message(cause, envelope) for cause in found])


def _with_message(cause: Cause, envelope: ReasoningEnvelope) -> Cause:
    """A failed check of which only the name is told, with what the reality summary says that it found."""
    for check in listing(envelope.kernel_state_ref.reality_summary.get("checks")):
        if not isinstance(check, dict) or check.get("passed") is not False:
            continue
        name, message = check.get("name"), check.get("message")
        if isinstance(name, str) and cause.text == FAILED_CHECK + quoted(name) and isinstance(message, str):
            summary = quoted(message.strip())
            return msgspec.structs.replace(cause, text=f"{cause.text}: {summary}") if summary else cause
    return cause


def _without_repeats(reasons: list[Cause], found: list[Cause]) -> list[Cause]:
    """The kernel's reasons without those that name a check whose failure is known, with what it found, already, or a
    surface that is known to be missing."""
    known = {failed_check(cause.text) for cause in found} - {""}
    absent = {_surface(cause.text) for cause in found if cause.depth == MISSING}
    new = [reason for reason in reasons if failed_check(reason.text) not in known]
    return [reason for reason in new if reason.depth != MISSING or _surface(reason.text) not in absent]


def _surface(text: str) -> str:
    """The surface that a text says is missing: "share/A.json: missing", "share/A.json is missing"."""
    return text.partition(": ")[0].removesuffix(" is missing")


def _interpreted(made: Making, name: str, found: list[Cause], facts: Facts, passing: str) -> Answer:
    first = found[0]
    named = first.depth != FAILED or first.text.startswith(FAILED_CHECK)
    kind = KINDS[first.depth] if named else "what the reports name"
    root = f"{kind}: {first.text.removeprefix(FAILED_CHECK)}"
    also = [cause for cause in found[1:6] if cause.depth != FOLLOWS or first.depth == FOLLOWS]
    follows = [cause for cause in found[1:6] if cause not in also]
    root += f" (also: {summary(also)})" if also else ""
    root += f" (what follows from it: {summary(follows)})" if follows else ""
    payload = GuardFailureInterpreterResult(
        root_cause=bounded(root), remediation_plan=_plan(name, found, facts, passing), is_transient=bool(passing)
    )
    text = f"{_called(name)}: the deepest of the causes named ({len(found)}): {first.text}"
    if passing:
        text += f"; it may pass by itself: {passing}"
    for cause in found[:50]:
        made.note("evidence", "error", cause.text, cause.mend or None)
    return made.answer(payload, f"{text}; {_kernel(facts)}")


def _passing(envelope: ReasoningEnvelope, first: Cause, rerun: dict[str, Any]) -> str:
    """Why the failure may pass without any change; "" when nothing says so."""
    if rerun.get("ok") is True:
        return "the same guard passes now"
    if first.passing:
        return first.text
    report = mapping(envelope.oa_context.get("guard_output"))
    unsteady = [one.what for one in adverse(report, "guard_output", envelope.timestamp) if one.weight == "soft"]
    if unsteady:
        return unsteady[0]
    deep = first.depth in (LOG, MISSING, INVALID)
    if not deep and envelope.kernel_state_ref.reality_summary.get("provisional") is True:
        return "reality_summary is provisional: its run has not finished"
    return ""


def _plan(name: str, found: list[Cause], facts: Facts, passing: str) -> str:
    """Numbered steps, each once: the reports' remediations, what mends the deepest cause, the kernel's, the guard."""
    advice = mapping(facts.result(KERNEL_STATUS).get("interpretation")).get("recommended_commands")
    advised = [quoted(step) for step in listing(advice) if isinstance(step, str)]
    steps = []
    for cause in found:
        check = failed_check(cause.text)
        steps += [step for step in advised if check and check in step][:1] or ([cause.mend] if cause.mend else [])
    if not steps:
        steps += _MENDS.get(found[0].depth, ())
    if passing and not steps:
        steps.append("wait until what was not reachable or not finished is, and change nothing")
    steps += advised
    if not steps:
        steps.append(f"mend what it names: {found[0].text}")
    return _numbered([step for step in steps if not danger(step).forbidden], name)


def _numbered(steps: list[str], name: str) -> str:
    last = guard_command(guard_name(name)) if guard_name(name) else f"run {_called(name)} again"
    each = [step for step in dict.fromkeys(steps) if step.strip() and step != last]
    each = [step for step in each if not any(step != other and step in other for other in each)][: STEPS_MAX - 1]
    return bounded("\n".join(f"{number}. {step}" for number, step in enumerate([*each, last], 1)))


def _nothing(made: Making, name: str, facts: Facts) -> Answer:
    payload = GuardFailureInterpreterResult(
        root_cause=f"nothing failed: {_called(name)} reports ok",
        remediation_plan="1. nothing is to be mended" if not facts.why else _numbered(facts.mends, name),
        is_transient=False,
    )
    return made.answer(payload, f"{_called(name)}: its report says ok: true; {_kernel(facts)}")


def _unknown(made: Making, name: str, report: dict[str, Any], facts: Facts) -> Answer:
    what = f"its keys: {listed(map(quoted, list(report)[:20]), ', ')}" if report else "there is no report"
    message = f"the report of {_called(name)} names no cause ({what})"
    made.flaw(message, "give the guard's own output: oa_context.guard_output")
    why = f"; the kernel: {listed(facts.why)}" if facts.why else ""
    payload = GuardFailureInterpreterResult(
        root_cause=bounded(f"not determined: {message}{why}"), remediation_plan=_numbered(list(facts.mends), name),
        is_transient=False,
    )
    return made.answer(payload, f"{message}; {_kernel(facts)}")


def _called(name: str) -> str:
    return f"the guard {quoted(name, 80)}" if name else "the guard"


def _kernel(facts: Facts) -> str:
    return f"kernel {facts.mode}, reality {'green' if facts.green else 'not green'}" + (
        f": {listed(facts.why)}" if facts.why else ""
    )
