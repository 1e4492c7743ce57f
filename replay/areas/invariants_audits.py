"""Laws of audits, computed from the events themselves and not by the code that is tested.

One report or one failure for each; every opinion is a judge's own words; every score follows from recorded opinions,
evidence and the order of synthesis; every citation was looked at. It holds for any prefix of a history;
``check_audits_idle`` for states that came to rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import msgspec

from pmagent.actors.audit.goals import GOALS
from pmagent.contracts.audit_events import (
    TRIES,
    AuditCloneRequested,
    AuditConcluded,
    AuditCriterionRuled,
    AuditEvidenceFound,
    AuditFailed,
    AuditOpinionGiven,
    AuditOpinionRejected,
    AuditPdfRequested,
    AuditPicturesRequested,
    AuditRequested,
    EvidenceItem,
    OpinionItem,
)
from pmagent.contracts.effect import ActorHalted, EffectEnd, RequestRefused
from pmagent.contracts.model import ModelAsked, ModelFailed, ModelReplied, ModelWithdrawn
from pmagent.events.event import Event
from pmagent.replay.simulation.world import require

OPEN_MAX: Final = 8
"""So many audits are open at once, and so many questions of one."""
JUDGES: Final = ("Prosecutor", "Defense", "TechLead")
CONFIRMED: Final = 0.8


class _Audit:
    """A request for an audit, and what came of it so far."""

    def __init__(self, event: Event) -> None:
        self.event = event
        self.asked: AuditRequested = event.data
        self.evidence: dict[str, list[EvidenceItem]] = {}
        self.opinions: dict[tuple[str, str], list[OpinionItem]] = {}
        self.rejected: Counter[tuple[str, str, int]] = Counter()
        self.questions: dict[int, str] = {}
        self.ruled: dict[str, AuditCriterionRuled] = {}
        self.requested: Counter[type] = Counter()

    @property
    def dimensions(self) -> dict[str, dict[str, Any]]:
        return {one["id"]: one for one in self.asked.rubric["dimensions"]}


def check_audits(history: Sequence[Event]) -> None:
    """See the module. Raises Violation."""
    check = _Check(history)
    for event in history:
        check.take(event)


def check_audits_idle(states: Mapping[str, Any]) -> None:
    """After everything came to rest no audit is open. Raises Violation."""
    left = list(states["auditor"].audits)
    require(not left, f"audits are open though nothing happens any more: {left}")


class _Check:
    def __init__(self, history: Sequence[Event]) -> None:
        self._history = history
        self._open: dict[str, _Audit] = {}
        self._ended: set[int] = set()

    def take(self, event: Event) -> None:
        data = event.data
        if isinstance(data, AuditRequested):
            self._open.setdefault(data.audit_id, _Audit(event))
            return
        if isinstance(data, AuditFailed | AuditConcluded):
            self._end(event, data)
            return
        if isinstance(data, RequestRefused):
            self._open = {name: one for name, one in self._open.items() if one.event.position != data.request}
        self._answered(event)
        if event.actor == "auditor" and event.kind == "decision":
            self._decided(event)

    def _answered(self, event: Event) -> None:
        """A question that has an end is open no more."""
        data = event.data
        if isinstance(data, ModelReplied | ModelFailed | ModelWithdrawn):
            for audit in self._open.values():
                audit.questions.pop(data.ask, None)

    def _end(self, event: Event, end: AuditFailed | AuditConcluded) -> None:
        where = f"{event.type} at {event.position}"
        asked = self._history[end.request - 1].data
        require(isinstance(asked, AuditRequested), f"{where}: nobody asked for it")
        require(asked.audit_id == end.audit_id, f"{where}: it is another's end")
        require(end.request not in self._ended, f"{where}: the audit has ended before")
        self._ended.add(end.request)
        audit = self._open.get(end.audit_id)
        if audit is None or audit.event.position != end.request:
            require(isinstance(end, AuditFailed), f"{where}: it was never taken")
            return
        require(event.correlation == end.audit_id, f"{where}: it belongs to another audit")
        if isinstance(end, AuditConcluded):
            require(list(audit.ruled) == list(audit.dimensions), f"{where}: not every criterion has a ruling")
            self._overall(where, audit, end)
        del self._open[end.audit_id]

    def _overall(self, where: str, audit: _Audit, end: AuditConcluded) -> None:
        scores = [one.final_score for one in audit.ruled.values() if one.final_score is not None]
        require(bool(scores), f"{where}: a report though nothing was judged")
        tenths = (Fraction(sum(scores), len(scores)) * 10 + Fraction(1, 2)).__floor__()
        overall = Fraction(tenths, 10)
        parameters = audit.asked.rubric.get("synthesis_parameters", {})
        if parameters.get("total_cap") and any(_flawed(one) for one in audit.evidence.values()):
            overall = min(overall, Fraction(3))
        require(abs(float(overall) - end.overall_score) < 1e-9, f"{where}: the score is {end.overall_score}")

    def _decided(self, event: Event) -> None:
        where = f"{event.type} at {event.position}"
        audit = self._open.get(event.correlation)
        if audit is None:
            answers = isinstance(event.data, ActorHalted) or event.type == "audit.cancel_answered"
            withdrawn = isinstance(event.data, ModelWithdrawn | EffectEnd) or event.type == "effect.cancel_requested"
            require(answers or withdrawn, f"{where}: no such audit is open")
            return
        match event.data:
            case AuditCloneRequested() | AuditPdfRequested() | AuditPicturesRequested() as asked:
                audit.requested[type(asked)] += 1
                require(audit.requested[type(asked)] == 1, f"{where}: asked for a second time")
            case AuditEvidenceFound(dimension_id=dimension, evidences=evidences):
                require(dimension in audit.dimensions and bool(evidences), f"{where}: evidence of nothing")
                audit.evidence[dimension] = evidences
            case ModelAsked(inputs=inputs):
                audit.questions[event.position] = inputs["question"]
                require(len(audit.questions) <= OPEN_MAX, f"{where}: {len(audit.questions)} questions at once")
            case AuditOpinionGiven() as given:
                self._given(where, audit, given)
            case AuditOpinionRejected() as rejected:
                key = (rejected.judge, rejected.criterion_id, rejected.round)
                audit.rejected[key] += 1
                require(rejected.attempt == audit.rejected[key] <= TRIES, f"{where}: attempt {rejected.attempt}")
                self._of_question(where, rejected.reply, f"{rejected.judge} {rejected.round} {rejected.criterion_id}")
            case AuditCriterionRuled() as ruled:
                require(ruled.dimension_id not in audit.ruled, f"{where}: ruled before")
                audit.ruled[ruled.dimension_id] = ruled
                _check_ruling(where, audit, ruled)

    def _given(self, where: str, audit: _Audit, given: AuditOpinionGiven) -> None:
        opinion = given.opinion
        require(opinion.criterion_id in audit.evidence, f"{where}: an opinion before the evidence")
        opinions = audit.opinions.setdefault((opinion.judge, opinion.criterion_id), [])
        opinions.append(opinion)
        require(given.round == len(opinions) <= 2, f"{where}: opinion number {len(opinions)} in round {given.round}")
        if audit.asked.engine == "rules":
            require(given.reply == 0, f"{where}: the rules need no reply")
            return
        reply = self._of_question(where, given.reply, f"{opinion.judge} {given.round} {opinion.criterion_id}")
        own = _content(reply) or {}
        same = (own.get("score"), own.get("cited_evidence")) == (opinion.score, opinion.cited_evidence)
        require(same, f"{where}: the model did not say so")

    def _of_question(self, where: str, position: int, key: str) -> ModelReplied:
        reply = self._history[position - 1].data if 0 < position <= len(self._history) else None
        require(isinstance(reply, ModelReplied), f"{where}: there is no reply")
        assert isinstance(reply, ModelReplied), "just required"
        asked = self._history[reply.ask - 1].data
        require(isinstance(asked, ModelAsked) and asked.inputs["question"] == key, f"{where}: of another question")
        return reply


def _content(reply: ModelReplied) -> dict[str, Any] | None:
    """The content of a reply, read independently of the tested code."""
    if reply.tool_calls:
        return reply.tool_calls[0].args
    try:
        return dict(msgspec.json.decode(reply.content))
    except (msgspec.DecodeError, TypeError, ValueError):
        return None


def _says_something(one: EvidenceItem) -> bool:
    """Whether the evidence is for or against the criterion, and was looked at; that images are there says nothing."""
    name = one.goal.partition(":")[0]
    kind = GOALS[name].kind if name in GOALS else "context"
    return kind != "context" and one.confidence > 0 and name != "images.present"


def _flawed(evidence: Sequence[EvidenceItem]) -> bool:
    named = ("security.os_system", "security.shell", "security.evaluation", "security.unsafe_load",
             "security.sql", "security.clone_in_place", "security.secret")  # fmt: skip
    return any(one.found and one.confidence >= CONFIRMED and one.goal.partition(":")[0] in named for one in evidence)


def _check_ruling(where: str, audit: _Audit, ruled: AuditCriterionRuled) -> None:
    """The order of synthesis (docs/design.md §15.9), once more: facts, second round, base, security, bounds."""
    name = ruled.dimension_id
    evidence = audit.evidence[name]
    rounds = [audit.opinions.get((judge, name), []) for judge in JUDGES]
    if ruled.final_score is None and not any(rounds):
        require(not any(map(_says_something, evidence)), f"{where}: it could have been judged")
        return
    parameters = audit.asked.rubric.get("synthesis_parameters", {})
    spread = parameters.get("spread", 2)
    keys = {f"{name}#{number}": one.found for number, one in enumerate(evidence, 1)}
    require(all(rounds), f"{where}: a judge has said nothing")
    first = [one[0] for one in rounds]
    counted = _rest(first, keys)
    again = len(counted) > 1 and max(one.score for one in counted) - min(one.score for one in counted) > spread
    require({len(one) for one in rounds} == {1 + again}, f"{where}: rounds {[len(one) for one in rounds]}, {again}")
    last = [one[-1] for one in rounds]
    counted = _rest(last, keys)
    aside = [one.judge for one in last if one not in counted]
    require(sorted(ruled.set_aside) == sorted(aside), f"{where}: set aside are {ruled.set_aside}, not {aside}")
    unsupported = {cited for one in [*first, *last] for cited in one.cited_evidence if cited not in keys}
    require(set(ruled.unsupported) == unsupported, f"{where}: citations that are none: {sorted(unsupported)}")
    if not counted:
        require(ruled.final_score is None, f"{where}: a score of nobody")
        return
    base = _base(counted, architecture=name == "graph_orchestration")
    score = min(base, 3) if _flawed(evidence) else base
    require(ruled.final_score == score, f"{where}: {ruled.final_score} instead of {score}")
    wide = max(one.score for one in first) - min(one.score for one in first) > spread
    require((ruled.dissent_summary is not None) == wide, f"{where}: dissent is told: {ruled.dissent_summary}")


def _rest(opinions: Sequence[OpinionItem], keys: Mapping[str, bool]) -> list[OpinionItem]:
    return [one for one in opinions if any(keys.get(cited, False) for cited in one.cited_evidence)]


def _base(opinions: Sequence[OpinionItem], *, architecture: bool) -> int:
    if architecture:
        weights = [2 if one.judge == "TechLead" else 1 for one in opinions]
        total = sum(one.score * weight for one, weight in zip(opinions, weights, strict=True))
        base = Fraction(total, sum(weights))
    else:
        scores = sorted(one.score for one in opinions)
        base = Fraction(scores[(len(scores) - 1) // 2] + scores[len(scores) // 2], 2)
    return (base + Fraction(1, 2)).__floor__()
