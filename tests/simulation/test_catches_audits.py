"""The simulation notices when an audit goes wrong: faults of our own, each found."""

from __future__ import annotations

import re

import pytest

from pmagent.actors.audit import actor, actor_clerk, nodes, progress
from pmagent.actors.audit.actor import Auditor
from pmagent.actors.audit.actor_clerk import ActorClerk
from pmagent.actors.audit.justice import ruling, synthesis
from pmagent.actors.audit.justice.ruling import _Rules
from tests.support.planted import Planted, by_day, plant_all
from tests.support.simulated import AUDITS, failure

NEUTRAL = """if tries >= TRIES:
        return JudicialOpinion(
            judge=brief.judge, criterion_id=brief.dimension_id, score=3, argument="-", cited_evidence=[]
        )
    if False:"""

PLANTED: Planted = {
    "a judge without an opinion gets a neutral one": ("the model did not say so|needs|there is no reply|did not", [
        (ActorClerk, "opinion", "if tries >= TRIES:", NEUTRAL),
    ]),
    "a fourth try": ("attempt 4", [
        (ActorClerk, "opinion", "if tries >= TRIES:", "if tries > TRIES:"),
        (actor, "_own", "if rejected.attempt < TRIES:", "if rejected.attempt <= TRIES:"),
    ]),
    "an answered question is asked again": ("though it was answered", [
        (actor, "_begin", "given=kept.given", "given=[]"),
    ]),
    "replies are not checked": ("halted|the model did not say so|of another question|there is no reply", [
        (actor_clerk, "read_opinion", "check(given[name], brief)", "pass"),
    ]),
    "nine questions at once": ("9 questions at once", [
        (progress, "_requests", "if open_asks >= QUESTIONS_MAX:", "if open_asks > QUESTIONS_MAX:"),
    ]),
    "the repository is cloned again for each answer": ("a second time|used up", [
        (ActorClerk, "survey", "self._audit.survey is None and not self._audit.clone", "not self._audit.clone"),
    ]),
    "the report is read again for each answer": ("asked for a second time", [
        (ActorClerk, "reading", "if audit.reading is None and not audit.pdf:", "if audit.reading is None:"),
    ]),
    "no second round": ("rounds", [
        (synthesis, "_is_disputed", "return ", "return False and "),
    ]),
    "opinions that rest on nothing count": ("set aside are|instead of|rounds", [
        (ruling, "rests_on_facts", "and case.known[key].found", ""),
    ]),
    "a flaw that nobody is sure of caps": ("instead of|the score is", [
        (ruling, "confirmed", "and one.confidence >= CONFIRMED", ""),
    ]),
    "a flaw caps nothing": ("instead of|the score is", [
        (ruling, "confirmed", "one.found and", "not one.found and"),
    ]),
    "half is rounded to even": ("instead of", [
        (_Rules, "_based", "score = half_up(base)", "score = round(base)"),
    ]),
    "the end of a source is forgotten": ("has 0 answers|are open though", [
        (actor, "_answered", "case AuditSourceFailed(request=request, code=code, text=text, mend=mend)",
         "case AuditSourceFailed(request=-1 as request, code=code, text=text, mend=mend)"),
    ]),
    "a model that gives no reply is waited for": ("has 0 answers|are open though", [
        (actor, "_answered", "if any(one.ask == ask for one in audit.lost.values())", "if False"),
    ]),
    "a cancelled audit goes on": ("has 0 answers|no such audit is open|has ended before|has 2 answers", [
        (Auditor, "evolve",
         "return ended(state, audit_id, complete=isinstance(data, AuditConcluded) and not known.lost)",
         "return state"),
    ]),
    "what a dead audit asked for runs on": ("has no end|no such audit|are open though|has 0 answers|goes on", [
        (actor, "of_request", "audit.permit_asked, *audit.open_effects, *audit.open_asks", "audit.permit_asked,"),
    ]),
    "a judge speaks twice in a round": ("opinion number|halted|rounds", [
        (nodes, "_judged", "len(own) <= (dimension.id in state.get(\"disputed\", []))", "len(own) <= 1"),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("fault", by_day(PLANTED))
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    says, exchanges = PLANTED[fault]
    plant_all(monkeypatch, exchanges)
    assert re.search(says, failure(fault, AUDITS, 60))
