"""The auditor: takes requests for audits and invokes the graph with what is known, until it has a report; pure.

    audit.requested → permit → clone and survey ∥ PDF ∥ images → evidence → opinions → rulings → audit.concluded

The detectives, the judges and the chief justice are the graph's nodes (``nodes``); whenever something that they asked
for has come, the graph is invoked anew (docs/design.md §15.3). Each request ends with exactly one of
``audit.concluded`` and ``audit.failed``; no opinion is ever made up, so a criterion on which a judge gives none is not
judged. Where the provider answers nothing at all the audit ends; it can be taken up again with all its answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from pmagent.actors.audit.ends import AUDITOR, abandoned, failure
from pmagent.actors.audit.state import (
    AUDITS_MAX,
    ENDED_MAX,
    QUESTION,
    Audit,
    AuditorState,
    Lost,
    asked_again,
    begun,
    changed,
    ended,
    inherited,
    lost,
    of_request,
    question_key,
)
from pmagent.actors.audit.vision import seen_in
from pmagent.actors.model.actor import GATEWAY
from pmagent.contracts.audit_events import (
    TRIES,
    AuditCancelAnswered,
    AuditCancelRequested,
    AuditCloneRequested,
    AuditConcluded,
    AuditEvidenceFound,
    AuditFailed,
    AuditOpinionGiven,
    AuditOpinionRejected,
    AuditPdfRead,
    AuditPdfRequested,
    AuditPicturesRead,
    AuditPicturesRequested,
    AuditRequested,
    AuditSourceFailed,
    AuditSurveyed,
    FailureCode,
)
from pmagent.contracts.effect import (
    EFFECT_ENDS,
    ActorHalted,
    ActorResumed,
    EffectCancelled,
    EffectEnd,
    EffectFailed,
    EffectRefused,
    EffectTimedOut,
    RequestRefused,
)
from pmagent.contracts.model import ModelAsked, ModelFailed, ModelReplied
from pmagent.contracts.oa import OaPermitGranted, OaPermitRefused, OaPermitRequested
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event

Decision = Payload | Correlated
replace = msgspec.structs.replace


class Auditor:
    """Open audits, each with its graph."""

    name = AUDITOR
    hears: frozenset[type[msgspec.Struct]] = frozenset(
        (
            AuditRequested, AuditCancelRequested, AuditSurveyed, AuditPdfRead, AuditPicturesRead, AuditSourceFailed,
            OaPermitGranted, OaPermitRefused, RequestRefused, ModelReplied, ModelFailed, *EFFECT_ENDS, ActorHalted,
            ActorResumed,
        )
    )  # fmt: skip

    def initial(self) -> AuditorState:
        """No audit."""
        return AuditorState()

    def evolve(self, state: AuditorState, event: Event) -> AuditorState:
        """Fold an input or a decision of its own."""
        data = event.data
        if not state.audits and type(data) is not AuditRequested:
            return state  # the ends of what others have asked for
        match data:
            case AuditRequested() if _objection(state, data) is None:
                return begun(state, event)
            case AuditConcluded(audit_id=audit_id, request=request) | AuditFailed(audit_id=audit_id, request=request):
                known = state.audits.get(audit_id)
                if known is None or known.requested != request:
                    return state
                return ended(state, audit_id, complete=isinstance(data, AuditConcluded) and not known.lost)
            case RequestRefused(request=request):
                gone = next((one for one in state.audits.values() if one.requested == request), None)
                # The engine has answered in its stead.
                return state if gone is None else ended(state, gone.audit_id, complete=False)
        if event.actor == self.name and event.kind == "decision":
            audit = state.audits.get(event.correlation)
            return state if audit is None else changed(state, _own(audit, event))
        audit = of_request(state, getattr(data, "request", 0)) or of_request(state, getattr(data, "ask", 0))
        return state if audit is None else changed(state, _brought(audit, event))

    def decide(self, state: AuditorState, event: Event) -> Iterable[Decision]:
        """The decisions that an input leads to."""
        data = event.data
        match data:
            case AuditRequested(audit_id=audit_id):
                audit = state.audits.get(audit_id)
                taken = audit is not None and audit.requested == event.position
                return _begin(state, audit, event) if audit is not None and taken else [_refusal(state, event, data)]
            case AuditCancelRequested(audit_id=audit_id):
                return _cancel(state.audits.get(audit_id), event, data)
            case ActorHalted(name=name) if name == GATEWAY:  # what it was asked before has no end either
                asking = [audit for audit in state.audits.values() if audit.open_asks]
                return [one for audit in asking for one in _failed(audit, event, "halted", _NO_GATEWAY, _HALTED)]
            case ActorResumed(name=name) if name == self.name:  # what came meanwhile was not decided on
                why = "the auditor was halted, and what happened meanwhile was not decided on"
                lost = list(state.audits.values())
                return [one for audit in lost for one in _failed(audit, event, "halted", why, "ask again")]
        audit = state.audits.get(event.correlation)
        return [] if audit is None else list(_answered(audit, event))


# --- folding -------------------------------------------------------------------------------------------------------


def _objection(state: AuditorState, asked: AuditRequested) -> tuple[FailureCode, str, str] | None:
    """Why a request is not taken: a code, the reason, and what mends it; None: it is."""
    if asked.audit_id in state.audits:
        return "known", f"the audit {asked.audit_id} is open already", "ask with a new audit id"
    if len(state.audits) >= AUDITS_MAX:
        return "busy", f"{len(state.audits)} audits are open", "wait until some have ended, or cancel some"
    unfit = not_resumable(state, asked)
    if unfit is not None:
        return "known", *unfit
    if not _is_checked(asked):
        return "rubric", f"{asked.rubric_source} is no valid rubric", "pmagent audit says what is wrong with it"
    return None


def not_resumable(state: AuditorState, asked: AuditRequested) -> tuple[str, str] | None:
    """Why the audit that is to be taken up again cannot be, and what to do; None: it can, or there is none. Only where
    both ask the same of the same do the answers of one serve the other."""
    earlier = state.ended.get(asked.resumes)
    if earlier is None and asked.resumes:
        what = f"the audit {asked.resumes} cannot be taken up again: it has all its answers, or ended long ago"
        return what, f"the last {ENDED_MAX} that ended without all answers can; ask for a new one"
    if earlier is not None and any(getattr(earlier.asked, name) != getattr(asked, name) for name in _ASKED):
        return f"this is not what the audit {asked.resumes} was asked for", "pmagent audit --resume asks so"
    return None


_ASKED = ("repo_url", "pdf_path", "rubric", "engine", "model", "vision_model", "panel", "reported")


def _is_checked(asked: AuditRequested) -> bool:
    """Whether the rubric is one: who asks by a command finds out before anything is recorded."""
    from pmagent.actors.audit.rubric import BadRubric, rubric_of

    try:
        rubric_of(asked.rubric)
    except BadRubric:
        return False
    return True


def _own(audit: Audit, event: Event) -> Audit:
    """Fold a decision of the auditor's."""
    match event.data:
        case OaPermitRequested():
            return replace(audit, permit_asked=event.position)
        case AuditCloneRequested():
            return replace(audit, permit_asked=0, clone=event.position)
        case AuditPdfRequested():
            return replace(audit, pdf=event.position)
        case AuditPicturesRequested():
            return replace(audit, picturing=event.position)
        case ModelAsked(inputs=inputs, messages=messages):
            return asked_again(audit, inputs[QUESTION], ask=event.position, more=messages[2:])
        case AuditOpinionRejected() as rejected:
            key = question_key(rejected.judge, rejected.round, rejected.criterion_id, panel=bool(rejected.panel))
            if rejected.attempt < TRIES:
                return asked_again(audit, key, ask=0, tries=rejected.attempt)
            return lost(audit, key, Lost(0, "", f"no opinion in {TRIES} tries: {rejected.objection}"))
        case AuditEvidenceFound(dimension_id=dimension, evidences=evidences):
            found = replace(audit, evidences={**audit.evidences, dimension: evidences})
            return replace(found, survey=None, reading=None, pictures=None) if found.collected else found
        case AuditOpinionGiven(opinion=opinion, round=number, panel=panel) as given:
            key = question_key(opinion.judge, number, opinion.criterion_id, panel=bool(panel))
            questions = {name: one for name, one in audit.questions.items() if name != key}
            return replace(audit, given=[*audit.given, given], questions=questions)
    return audit


def _brought(audit: Audit, event: Event) -> Audit:
    """Fold what has come from outside for the audit."""
    data = event.data
    match data:
        case AuditSurveyed(survey=survey):
            return replace(audit, clone=0, survey=survey, commit=survey.commit, functions=survey.functions)
        case AuditPdfRead(reading=reading):
            return replace(audit, pdf=0, reading=reading, report_sha256=reading.sha256)
        case AuditPicturesRead(reading=reading):
            return replace(audit, picturing=0, pictures=reading)
        case ModelFailed(ask=ask, code=code, text=text):
            key = next((name for name, one in audit.questions.items() if one.ask == ask), "")
            failed = lost(audit, key, Lost(ask, code, text))
            return replace(failed, seen={**audit.seen, key: ""}) if key.startswith("image ") else failed
        case ModelReplied(ask=ask) as reply:
            key = next((name for name, one in audit.questions.items() if one.ask == ask), "")
            audit = replace(audit, answered=event.position)
            if not key.startswith("image "):
                return audit  # what the judge says is folded with the decision on it
            questions = {name: one for name, one in audit.questions.items() if name != key}
            return replace(audit, seen={**audit.seen, key: seen_in(reply)}, questions=questions)
    return audit


# --- deciding ------------------------------------------------------------------------------------------------------


def _answered(audit: Audit, event: Event) -> Iterator[Decision]:
    """Something has come that belongs to the audit."""
    data = event.data
    match data:
        case AuditSurveyed() | AuditPdfRead() | AuditPicturesRead() | ModelReplied():
            yield from _go_on(audit, event)
        case OaPermitGranted(request=request) if request == audit.permit_asked:
            yield from _go_on(audit, event)
        case OaPermitRefused(request=request, reasons=reasons, mend=mend) if request == audit.permit_asked:
            yield from _failed(audit, event, "not_permitted", "; ".join(reasons), "; ".join(mend))
        case RequestRefused(request=request, name=name, reason=reason) if _waits_for(audit, request):
            yield from _failed(audit, event, "halted", f"{name} is {reason}", _HALTED)
        case AuditSourceFailed(request=request, code=code, text=text, mend=mend) if request in audit.open_effects:
            yield from _failed(audit, event, code, text, mend)
        case ModelFailed(ask=ask, code=code, text=text) if any(one.ask == ask for one in audit.lost.values()):
            if code in _FOR_ALL:
                yield from _failed(audit, event, "judge", f"a question to a model has no answer: {text}", _MODEL)
            else:
                yield from _go_on(audit, event)
    if isinstance(data, EffectEnd) and data.request in audit.open_effects:
        yield from _failed(audit, event, *_reading(data))


_NO_GATEWAY = "the model gateway is halted"
_HALTED = "pmagent log tail --type actor.halted shows where; start a version that does not fail"
_MODEL = "pmagent log tail --type model.failed shows why; pmagent audit --resume takes it up again"
_FOR_ALL = frozenset((
    "unavailable", "no_key", "not_permitted", "cancelled", "calls", "time", "tokens", "cost", "no_price", "busy",
))  # fmt: skip
"""Codes of ``model.failed`` that hold for every other question as well."""


def _waits_for(audit: Audit, request: int) -> bool:
    return request in (audit.permit_asked, *audit.open_effects, *audit.open_asks)


def _reading(end: EffectEnd) -> tuple[FailureCode, str, str]:
    """The code, text and hint of an end that has no outcome of its own."""
    match end:
        case EffectRefused(reasons=reasons, mend=mend):
            return "not_permitted", "; ".join(reasons), "; ".join(mend)
        case EffectCancelled(reason=reason):
            return "not_permitted", f"what was being read was stopped: {reason}", "pmagent status shows the mode"
        case EffectTimedOut(limit_s=limit):
            return "timed_out", f"reading took longer than {limit:g} s", "see [audit] in .pmagent/config.toml"
        case EffectFailed(error=error, place=place):
            return "failed", f"reading failed ({error} in {place})", "this is an error of pmagent's; please report it"
    return "interrupted", "what was being read was interrupted", "ask again"


def _begin(state: AuditorState, audit: Audit, event: Event) -> Iterator[Decision]:
    """The first step; of an audit that takes up another one its evidence and opinions come first."""
    earlier = state.ended.get(audit.asked.resumes)
    if earlier is not None:
        kept = inherited(earlier)
        for name, items in kept.evidences.items():
            yield _in(audit, event, AuditEvidenceFound(audit_id=audit.audit_id, dimension_id=name, evidences=items))
        for one in kept.given:
            yield _in(audit, event, replace(one, audit_id=audit.audit_id))
        audit = replace(audit, evidences=kept.evidences, given=kept.given)
    yield from _go_on(audit, event)


def _go_on(audit: Audit, event: Event) -> Iterable[Decision]:
    from pmagent.actors.audit.progress import (
        progress,  # the graph, and with it LangGraph, when the first audit is there
    )

    return [_in(audit, event, decision) for decision in progress(audit, event)]


def _failed(audit: Audit, event: Event, code: FailureCode, reason: str, mend: str) -> Iterator[Decision]:
    """The end without a report: what still runs is taken back."""
    for decision in abandoned(audit, getattr(event.data, "request", 0), getattr(event.data, "ask", 0)):
        yield _in(audit, event, decision)
    yield _in(audit, event, failure(audit, code, [reason], [mend] if mend else []))


def _refusal(state: AuditorState, event: Event, asked: AuditRequested) -> Decision:
    others = replace(state, audits={name: one for name, one in state.audits.items() if one.requested != event.position})
    code, reason, mend = _objection(others, asked) or ("halted", "the auditor was halted", "ask again")
    return AuditFailed(request=event.position, audit_id=asked.audit_id, code=code, reasons=[reason], mend=[mend])


def _cancel(audit: Audit | None, event: Event, asked: AuditCancelRequested) -> list[Decision]:
    if audit is None:
        text = "no such audit is open"
        return [AuditCancelAnswered(request=event.position, audit_id=asked.audit_id, accepted=False, text=text)]
    why = asked.reason.strip() or "cancelled"
    return [
        AuditCancelAnswered(request=event.position, audit_id=asked.audit_id, accepted=True),
        *_failed(audit, event, "cancelled", why, "ask again"),
    ]


def _in(audit: Audit, event: Event, decision: Payload) -> Decision:
    return decision if event.correlation == audit.audit_id else Correlated(decision, audit.audit_id)
