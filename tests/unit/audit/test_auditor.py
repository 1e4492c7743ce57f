"""The auditor: from a request to one report or one failure, through all real actors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from msgspec import UNSET

from pmagent.actors.audit.actor import Auditor
from pmagent.contracts.audit_events import (
    AuditCancelAnswered,
    AuditCancelRequested,
    AuditCloneRequested,
    AuditConcluded,
    AuditCriterionRuled,
    AuditEvidenceFound,
    AuditFailed,
    AuditOpinionGiven,
    AuditOpinionRejected,
    AuditPdfRequested,
    AuditRequested,
    AuditSourceFailed,
    AuditSurveyed,
)
from pmagent.contracts.audit_facts import Function
from pmagent.contracts.effect import ActorHalted, EffectCancelRequested, EffectFailed
from pmagent.contracts.model import ModelAsked, ModelCallFailed, ModelLimits, ModelReplied
from pmagent.contracts.oa import OaPermitRequested
from pmagent.events.event import Event
from tests.support.audits import AUDIT, Court, dimension, finding, rubric, said, survey
from tests.support.cases import each


def test_an_audit_by_rules_ends_with_a_ruling_on_every_criterion() -> None:
    court = Court()
    court.ask()
    over = court.audit()
    assert isinstance(over, AuditConcluded)
    assert [one.dimension_id for one in court.of(AuditCriterionRuled)] == ["state", "safety", "accuracy", "diagram"]
    diagram = court.of(AuditCriterionRuled)[-1]
    assert diagram.final_score is None
    assert "not inspected" in diagram.reason
    judged = [one for one in court.of(AuditCriterionRuled) if one.final_score is not None]
    assert len(court.of(AuditOpinionGiven)) >= 3 * len(judged)


def test_whoever_listens_to_this_process_hears_nothing_of_the_graph() -> None:
    heard: list[str] = []

    class Listener(BaseCallbackHandler):
        def on_chain_start(self, *_: Any, name: str = "", **__: Any) -> None:
            heard.append(name)

    def audited(_: None) -> None:
        court = Court()
        court.ask()
        court.audit()

    RunnableLambda(audited, name="outside").invoke(None, {"callbacks": [Listener()]})
    assert heard == ["outside"]


def test_nothing_outward_happens_before_the_permit() -> None:
    court = Court()
    court.ask()
    kinds = [type(event.data) for event in court.history if event.correlation == AUDIT]
    assert kinds.index(OaPermitRequested) < kinds.index(AuditCloneRequested)
    assert kinds.count(AuditCloneRequested) == 1


def test_evidence_is_decided_as_it_comes_and_cross_referenced_at_last() -> None:
    court = Court()
    court.pdf = lambda _: None
    court.ask()
    assert court.step()  # the clone
    assert {one.dimension_id for one in court.of(AuditEvidenceFound)} == {"state", "safety"}
    court.pdf = Court().pdf
    court.audit()
    accuracy = [one for one in court.of(AuditEvidenceFound) if one.dimension_id == "accuracy"][-1]
    texts = {one.goal.partition(":")[0]: one.content for one in accuracy.evidences}
    assert "src/app.py" in str(texts["report.verified"])
    assert "src/ghost.py" in str(texts["report.hallucinated"])


def test_judges_are_asked_for_what_is_missing_and_for_no_more_than_eight_at_once() -> None:
    court = Court()
    many = [dimension(f"d{number}") for number in range(6)]
    court.ask(rubric(*many), engine="langchain", model="toy")
    court.model = lambda *_: None
    while court.step():
        pass
    asked = [event for event in court.events(ModelAsked) if event.correlation == AUDIT]
    assert [event.data.inputs["question"] for event in asked] == [
        f"{judge} 1 d{number}" for number in range(3) for judge in ("Prosecutor", "Defense", "TechLead")
    ][:8]
    court.model = said
    assert isinstance(court.audit(), AuditConcluded)
    assert len(court.of(AuditOpinionGiven)) == 18


def test_a_wide_spread_is_judged_once_more_and_told_as_dissent() -> None:
    court = Court()
    scores = {"Prosecutor": 1, "Defense": 5, "TechLead": 3}

    def model(event: Event, asked: ModelAsked) -> object:
        judge, number, _ = asked.inputs["question"].split(" ")
        return said(event, asked, scores[judge] if number == "1" else 3)

    court.model = model  # type: ignore[assignment]
    court.ask(rubric(dimension("state")), engine="langchain", model="toy")
    court.audit()
    assert [one.round for one in court.of(AuditOpinionGiven)] == [1, 1, 1, 2, 2, 2]
    (ruled,) = court.of(AuditCriterionRuled)
    assert ruled.final_score == 3
    assert ruled.dissent_summary is not None
    assert "variance_re_evaluation" in [one.rule for one in ruled.rules]


def test_a_judge_is_told_what_was_wrong_and_fails_the_audit_after_three_tries() -> None:
    court = Court()
    court.model = lambda event, asked: said(event, asked, text="I would say four.")
    court.ask(rubric(dimension("state")), engine="langchain", model="toy")
    over = court.audit()
    assert isinstance(over, AuditFailed)
    assert over.code == "judge"
    attempts = [one.attempt for one in court.of(AuditOpinionRejected) if one.judge == "Prosecutor"]
    assert attempts == [1, 2, 3]
    assert court.of(AuditOpinionGiven) == []
    again = [one for one in court.of(ModelAsked) if len(one.messages) > 2]
    assert "cannot be taken as your opinion" in again[0].messages[-1].content
    assert max(len(one.messages) for one in again) == 6
    assert "gave no answer: no opinion in 3 tries" in over.reasons[0]


def failing(code: str, *criteria: str, transient: bool = False) -> Callable[[Event, ModelAsked], msgspec.Struct]:
    """A model whose calls on these criteria (without any: on all) fail so."""

    def model(event: Event, asked: ModelAsked) -> msgspec.Struct:
        if criteria and not asked.inputs["question"].endswith(criteria):
            return said(event, asked)
        return ModelCallFailed(
            request=event.position, ask=event.data.ask, code=code, error="Error", transient=transient  # type: ignore[arg-type]
        )

    return model


FOUR = rubric(*(dimension(f"d{number}") for number in range(4)))
TOY = {"engine": "langchain", "model": "toy"}


@each("code", ["too_long", "rejected"])
def test_a_criterion_without_answers_costs_no_other_its_own_and_is_asked_again_alone(code: str) -> None:
    court = Court()
    court.model = failing(code, "d1")
    court.ask(FOUR, **TOY)
    over = court.audit()
    assert isinstance(over, AuditConcluded)
    unanswered = {one.dimension_id: one.unanswered for one in court.of(AuditCriterionRuled)}
    assert unanswered == {"d0": UNSET, "d1": ["Prosecutor", "Defense", "TechLead"], "d2": UNSET, "d3": UNSET}
    court.model = said
    asked, again = len(court.of(ModelAsked)), f"{AUDIT[:-1]}2"
    court.ask(FOUR, again, resumes=AUDIT, **TOY)
    assert isinstance(court.audit(again), AuditConcluded)
    questions = [one.inputs["question"] for one in court.of(ModelAsked)[asked:]]
    assert questions == ["Prosecutor 1 d1", "Defense 1 d1", "TechLead 1 d1"]
    assert len(court.of(AuditCloneRequested)) == 1
    rulings = [one for one in court.of(AuditCriterionRuled) if one.audit_id == again]
    assert [(one.final_score, one.unanswered) for one in rulings] == [(4, UNSET)] * 4
    replied = {event.position for event in court.events(ModelReplied)}
    assert {one.reply for one in court.of(AuditOpinionGiven)} <= replied


def test_a_provider_that_answers_nobody_ends_the_audit_and_what_it_answered_before_is_kept() -> None:
    court = Court()
    nine = rubric(*(dimension(f"d{number}") for number in range(9)))
    court.model = failing("overloaded", *(f"d{number}" for number in range(2, 9)), transient=True)
    court.ask(nine, model_limits=ModelLimits(attempts=2, calls=100, concurrency=1), **TOY)
    over = court.audit()
    assert isinstance(over, AuditFailed)
    assert (over.code, "in a row have no answer" in over.reasons[0]) == ("judge", True)
    answered = len(court.of(ModelReplied))
    assert answered == 6
    court.model, again = said, f"{AUDIT[:-1]}2"
    court.ask(nine, again, resumes=AUDIT, **TOY)
    assert isinstance(court.audit(again), AuditConcluded)
    assert len(court.of(ModelReplied)) == 27


@each("known, changed", [(False, {}), (True, {"model": "other"}), (True, {"pdf_path": "/reports/other.pdf"})])
def test_only_what_ended_and_asked_the_same_is_taken_up_again(known: bool, changed: dict[str, str]) -> None:
    court, again = Court(), f"{AUDIT[:-1]}2"
    court.model = failing("no_key")
    court.ask(FOUR, **TOY)
    court.audit()
    court.ask(FOUR, again, resumes=AUDIT if known else again, **(TOY | changed))
    over = court.ended(again)
    assert isinstance(over, AuditFailed)
    assert over.code == "known"


def test_an_audit_that_has_all_its_answers_under_an_id_used_again_is_not_taken_up_for_the_one_before() -> None:
    court, again = Court(), f"{AUDIT[:-1]}2"
    court.model = failing("no_key")
    court.ask(FOUR, **TOY)
    court.audit()
    court.model = said
    court.tell(court.of(AuditRequested)[0], "asked a second time", AUDIT)
    while not court.of(AuditConcluded):
        assert court.step()
    court.ask(FOUR, again, resumes=AUDIT, **TOY)
    over = court.ended(again)
    assert isinstance(over, AuditFailed)
    assert over.code == "known"


def test_rules_and_a_second_model_stand_beside_and_change_no_score() -> None:
    court = Court()

    def model(event: Event, asked: ModelAsked) -> msgspec.Struct:
        key = asked.inputs["question"]
        assert asked.model == ("second" if key.startswith("panel ") else "toy")
        return said(event, asked, 2 if asked.model == "second" else 4)

    court.model = model
    court.ask(FOUR, panel="second", **TOY)
    over = court.audit()
    assert isinstance(over, AuditConcluded)
    assert isinstance(over.beside, list)
    assert [(one.engine, set(one.scores)) for one in over.beside] == [
        (engine, {"d0", "d1", "d2", "d3"}) for engine in ("rules", "panel (second)")
    ]
    offline = Court()
    offline.ask(FOUR)
    alone = offline.audit()
    assert isinstance(alone, AuditConcluded)
    assert over.beside[0].overall_score == alone.overall_score
    assert (over.overall_score, over.beside[1].overall_score) == (4.0, 2.0)


def test_judges_read_whole_the_functions_that_evidence_points_into_or_names() -> None:
    court = Court()
    shown = [
        Function(path="src/app.py", line=2, end=9, name="build", text="def build():\n    add(judge)"),
        Function(path="src/judge.py", line=1, end=2, name="judge", text="def judge():\n    pass"),
        Function(path="src/judge.py", line=5, end=6, name="other", text="def other(): ..."),
    ]
    found = survey(functions=shown)
    court.clone = lambda event: AuditSurveyed(request=event.position, survey=found)
    court.ask(rubric(dimension("state")), **TOY)
    court.audit()
    assert court.of(AuditCloneRequested)[0].function_bytes
    documents = [msgspec.json.decode(one.messages[1].content) for one in court.of(ModelAsked)]
    assert [[one["function"] for one in each["code"]] for each in documents] == [["build", "judge"]] * 3
    assert all("`code`" in one.messages[0].content for one in court.of(ModelAsked))


def test_one_bad_reply_costs_one_try() -> None:
    court = Court()
    bad = iter(["no", "neither"])
    court.model = lambda event, asked: said(event, asked, text=next(bad, None))
    court.ask(rubric(dimension("state")), engine="langchain", model="toy")
    assert isinstance(court.audit(), AuditConcluded)
    assert len(court.of(AuditOpinionRejected)) == 2


@each("code", ["not_found", "auth", "network", "too_large", "timed_out"])
def test_a_clone_that_fails_ends_the_audit_without_a_report(code: str) -> None:
    court = Court()
    court.clone = lambda event: AuditSourceFailed(request=event.position, code=code, text="no", mend="look")  # type: ignore[arg-type]
    court.ask()
    over = court.audit()
    assert isinstance(over, AuditFailed)
    assert (over.code, over.reasons, over.mend) == (code, ["no"], ["look"])
    assert court.of(AuditCriterionRuled) == []
    left = {event.position for event in court.open(AuditPdfRequested)}
    assert {one.request for one in court.of(EffectCancelRequested)} >= left


def test_a_confirmed_flaw_caps_its_criterion_and_words_about_flaws_do_not() -> None:
    for flaw in (True, False):
        court = Court()
        code = finding("security.shell") if flaw else finding("tools.no_unsafe_calls", text="no os.system with input")
        found = survey(finding("state.typed"), code)
        court.clone = lambda event, found=found: AuditSurveyed(request=event.position, survey=found)  # type: ignore[misc]
        court.model = lambda event, asked: said(event, asked, 5)
        court.ask(
            rubric(dimension("safety", goals=["state.typed", "tools.no_unsafe_calls", "security.shell"])),
            engine="langchain", model="toy",
        )  # fmt: skip
        court.audit()
        (ruled,) = court.of(AuditCriterionRuled)
        assert ruled.final_score == (3 if flaw else 5)


def test_an_opinion_that_rests_on_nothing_is_set_aside() -> None:
    court = Court()

    def model(event: Event, asked: ModelAsked) -> object:
        lies = asked.inputs["question"].startswith("Defense")
        return said(event, asked, 5, cited_evidence=["deep metacognition"]) if lies else said(event, asked, 2)

    court.model = model  # type: ignore[assignment]
    court.ask(rubric(dimension("state")), engine="langchain", model="toy")
    court.audit()
    (ruled,) = court.of(AuditCriterionRuled)
    assert (ruled.final_score, ruled.set_aside, ruled.unsupported) == (2, ["Defense"], ["deep metacognition"])


@each("text, finish", [(" \n", "stop"), ("I cannot help with this image.", "refusal")])
def test_a_vision_model_that_says_nothing_has_seen_nothing(text: str, finish: str) -> None:
    court = Court()

    def model(event: Event, asked: ModelAsked) -> ModelReplied:
        reply = said(event, asked, text=text if asked.inputs["question"].startswith("image ") else None)
        return msgspec.structs.replace(reply, finish=finish) if reply.content == text else reply

    court.model = model
    court.ask(engine="langchain", model="toy", vision_model="toy")
    assert isinstance(court.audit(), AuditConcluded)
    (ruled,) = [one for one in court.of(AuditCriterionRuled) if one.dimension_id == "diagram"]
    assert (ruled.final_score, ruled.reason) == (
        None, "not inspected: the vision model said nothing of this image"
    )  # fmt: skip


def test_an_operator_cancels_and_what_runs_is_taken_back() -> None:
    court = Court()
    court.clone = lambda _: None
    court.ask()
    court.tell(AuditCancelRequested(audit_id=AUDIT, reason="enough"), "cancel-1")
    over = court.ended()
    assert isinstance(over, AuditFailed)
    assert (over.code, over.reasons) == ("cancelled", ["enough"])
    assert court.of(AuditCancelAnswered)[0].accepted
    assert len(court.of(EffectCancelRequested)) >= 3
    court.tell(AuditCancelRequested(audit_id=AUDIT), "cancel-2")
    assert not court.of(AuditCancelAnswered)[1].accepted


def test_the_same_id_is_taken_once_and_nine_are_too_many() -> None:
    court = Court()
    court.clone = lambda _: None
    court.ask()
    court.tell(court.of(AuditRequested)[0], "again", AUDIT)
    assert court.of(AuditFailed)[0].code == "known"
    assert court.engine.states["auditor"].audits[AUDIT].requested == court.events(AuditRequested)[0].position
    for number in range(2, 10):
        court.ask(audit_id=f"{AUDIT[:-1]}{number}")
    assert [one.code for one in court.of(AuditFailed)] == ["known", "busy"]


def test_a_kernel_that_is_blocked_still_lets_diagnosis_happen() -> None:
    court = Court("BLOCKED")
    court.ask()
    assert isinstance(court.audit(), AuditConcluded)


def test_a_performer_that_raises_is_the_audits_failure_not_the_actors() -> None:
    court = Court()
    court.pdf = lambda event: EffectFailed(request=event.position, error="KeyError", place="x.py:1")
    court.ask()
    over = court.audit()
    assert isinstance(over, AuditFailed)
    assert over.code == "failed"
    assert court.of(ActorHalted) == []


def test_the_auditor_hears_every_way_in_which_what_it_asked_for_can_end() -> None:
    assert {AuditSurveyed, AuditSourceFailed, EffectFailed} <= Auditor.hears


@each(
    "document", [{}, {"dimensions": 3}, {"dimensions": [{"id": "x"}]}, rubric(dimension("a", "manual"))]
)
def test_a_rubric_that_nobody_checked_is_the_audits_failure(document: dict[str, object]) -> None:
    court = Court()
    court.tell(
        AuditRequested(
            audit_id=AUDIT, repo_url="/r", pdf_path="/p", rubric=document, rubric_source="x.json", output="audit/report"
        ),
        AUDIT, AUDIT,
    )  # fmt: skip
    (failed,) = court.of(AuditFailed)
    assert (failed.code, failed.reasons) == ("rubric", ["x.json is no valid rubric"])
    assert court.of(ActorHalted) == []
