"""``pmagent audit`` with judges that are models: a provider's real client against a server of ours, which errs,
limits and fails as providers do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pmagent.contracts.audit import JUDGES
from tests.support.audited import RUBRIC, Sources, assert_proven, sources
from tests.support.audits import dimension
from tests.support.bench import Bench, Question, opinion, sitting
from tests.support.commands import Ran, pmagent
from tests.support.provider import completion, error

__all__ = ["sources"]

pytestmark = pytest.mark.slow

MODEL = ("--model", "openai:gpt-x")


def judged(
    workspace: Path, sources: Sources, bench: Bench, monkeypatch: pytest.MonkeyPatch, *more: str, **settings: str
) -> Ran:
    """An audit by models, which answer as ``bench`` says; ``settings`` are variables."""
    with sitting(bench) as environ:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        return pmagent(workspace, *sources.quick, *MODEL, "--format", "json", *more, environ=settings)


def test_models_judge_and_what_does_not_fit_is_asked_for_again(
    workspace: Path, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Question("Defense", "state", 1)
    bench = Bench(first={wrong: [completion("It is fine."), opinion(wrong, score=9)]})
    done = judged(workspace, sources, bench, monkeypatch)
    assert done.code == 0, done.errors
    assert done.errors.count("is no opinion") == 2
    assert done.document["engine"] == "langchain"
    scores = {"Prosecutor": 2, "Defense": 4, "TechLead": 3}
    assert {one["dimension_id"]: one["scores"] for one in done.document["criteria"]} == {
        "state": scores, "accuracy": scores,
    }  # fmt: skip
    assert bench.asked[wrong] == 3
    assert sum(bench.asked.values()) == 8
    assert done.document["used"]["calls"] == 8
    assert done.document["used"]["input_tokens"] > 0
    assert "test-key-of-nobody" not in (workspace / "audit" / "report_depcheck.md").read_text()
    assert_proven(workspace)


def test_judges_that_lie_far_apart_are_asked_once_more(
    workspace: Path, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {Question("Prosecutor", "state", 1): 1, Question("Defense", "state", 1): 5}
    bench = Bench(scores=first)
    done = judged(workspace, sources, bench, monkeypatch)
    assert done.code == 0, done.errors
    state = done.document["criteria"][0]
    assert (state["round"], state["scores"]) == (2, {"Prosecutor": 2, "Defense": 4, "TechLead": 3})
    assert state["dissent"]
    assert {question for question in bench.asked if question.round == 2} == {
        Question(judge, "state", 2) for judge in ("Prosecutor", "Defense", "TechLead")
    }
    assert set(bench.asked.values()) == {1}
    assert_proven(workspace)


def test_a_judge_that_never_fits_costs_its_criterion_alone_and_resume_asks_for_that_alone(
    workspace: Path, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Question("TechLead", "accuracy", 1)
    bench = Bench(first={wrong: [completion("3 of 5, I would say.")] * 3})
    done = judged(workspace, sources, bench, monkeypatch)
    assert (done.code, done.document["state"], done.document["unanswered"]) == (1, "concluded", ["accuracy"])
    assert [one["final_score"] for one in done.document["criteria"]] == [3, None]
    assert bench.asked[wrong] == 3
    report = (workspace / "audit" / "report_depcheck.md").read_text()
    assert "Tech Lead gave no answer" in report
    assert "8 calls, " in report
    resumed = resume(workspace, Bench(), monkeypatch, done.document["audit_id"])
    assert (resumed.code, resumed.document["unanswered"], resumed.document["used"]["calls"]) == (0, [], 1)
    assert [one["final_score"] for one in resumed.document["criteria"]] == [3, 3]
    again = pmagent(workspace, "audit", "--resume", resumed.document["audit_id"])
    assert (again.code, "has all its answers" in again.errors) == (2, True)
    assert_proven(workspace)


def resume(workspace: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch, audit_id: str) -> Ran:
    """The audit, taken up again before this bench."""
    with sitting(bench) as environ:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        return pmagent(workspace, "audit", "--resume", audit_id[:8], "--format", "json")


def test_a_provider_that_fails_is_waited_for_and_one_that_goes_on_failing_loses_no_answer(
    workspace: Path, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Question("Prosecutor", "state", 1)
    bench = Bench(first={late: [error(429, retry_after="1")]})
    done = judged(workspace, sources, bench, monkeypatch)
    assert (done.code, bench.asked[late]) == (0, 2)
    assert "model  waiting" in done.errors
    assert "for at most 10 minutes" in done.errors
    down = {Question(judge, name, 1): [error(503)] for judge in JUDGES for name in ("state", "accuracy")}
    kept = down.pop(Question("Prosecutor", "state", 1))
    assert kept
    settings = {"PMAGENT_AUDIT_PATIENCE_MINUTES": "0", "PMAGENT_AUDIT_ATTEMPTS": "1"}
    done = judged(workspace, sources, Bench(first=down), monkeypatch, **settings)
    assert (done.code, done.document["state"], done.document["code"]) == (1, "failed", "judge"), done.errors
    bench = Bench()
    resumed = resume(workspace, bench, monkeypatch, done.document["audit_id"])
    assert (resumed.code, sum(bench.asked.values()), bench.asked[late]) == (0, 5, 0), resumed.errors
    assert_proven(workspace)


def test_a_second_model_and_the_rules_stand_beside_the_first(
    workspace: Path, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    done = judged(workspace, sources, bench, monkeypatch, "--panel", "openai:second")
    assert (done.code, set(bench.asked.values())) == (0, {2}), done.errors
    report = json.loads((workspace / "audit" / "report_depcheck.json").read_text())["report"]
    assert [one["engine"] for one in report["beside"]] == ["rules", "panel (openai:second)"]
    assert report["beside"][1]["scores"] == {"state": 3, "accuracy": 3}
    assert "| rules | panel (openai\\:second) | Reason |" in (workspace / "audit" / "report_depcheck.md").read_text()
    assert_proven(workspace)


def test_a_vision_model_looks_at_the_images_so_that_diagrams_are_judged(
    workspace: Path, sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, rubric = Bench(), tmp_path / "images.json"
    images = dimension("diagrams", "pdf_images", goals=["images.present", "images.inspected"])
    rubric.write_text(json.dumps({**RUBRIC, "dimensions": [images]}))
    with sitting(bench) as environ:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        words = (*sources.arguments, "--rubric", str(rubric), "--vision-model", "openai:eye", "--format", "json")
        done = pmagent(workspace, *words)
    assert done.code == 0, done.errors
    assert (bench.pictures, sum(bench.asked.values())) == (1, 0), "the rules judge what the model has seen"
    (diagrams,) = done.document["criteria"]
    assert diagrams["final_score"] is not None
    assert "three parts side by side" in (workspace / "audit" / "report_depcheck.md").read_text()
    assert_proven(workspace)


def test_a_limit_on_models_ends_the_audit_without_a_report(
    workspace: Path, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    done = judged(workspace, sources, bench, monkeypatch, PMAGENT_AUDIT_CALLS="2")
    assert (done.code, done.document["state"], done.document["code"]) == (1, "failed", "judge"), done.errors
    assert "2 calls" in done.document["reasons"][0]
    assert sum(bench.asked.values()) <= 2
    assert_proven(workspace)
