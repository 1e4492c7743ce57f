"""The audit for other programs: by itself, without a workspace and a log."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph

import pmagent.audit
from pmagent.audit import (
    AgentState,
    AuditFailed,
    AuditReport,
    AuditState,
    JudicialOpinion,
    compile_audit_graph,
    run_audit,
)
from pmagent.events.errors import PmagentError
from pmagent.projections.audits.report import report_markdown
from tests.support.audited import RUBRIC, Sources, sources
from tests.support.cases import each

__all__ = ["sources"]


def test_an_audit_by_itself_leaves_its_report_where_it_is_wanted(
    sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sources.repository.parent)
    made = run_audit("depcheck", "depcheck.pdf", str(sources.rubric), str(tmp_path / "out"))
    assert [one.dimension_id for one in made.criteria] == ["state", "accuracy"]
    assert (made.engine, made.rubric_name) == ("rules", "Two criteria")
    assert (tmp_path / "out" / "report_depcheck.md").read_text() == report_markdown(made)
    document = json.loads((tmp_path / "out" / "report_depcheck.json").read_bytes())
    assert AuditReport.model_validate(document["report"]) == made
    assert document["provenance"] is None, "there is no log that it came from"


def test_both_sources_may_lie_below_the_home_folder(
    sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(sources.repository.parent))
    made = run_audit("~/depcheck", "~/depcheck.pdf", str(sources.rubric), str(tmp_path))
    assert [one.dimension_id for one in made.criteria] == ["state", "accuracy"]


@each(
    "repository, pdf, rubric, output, code",
    [
        ("nowhere", "depcheck.pdf", "rubric.json", None, 2),
        ("depcheck", "depcheck.pdf", "none.json", None, 2),
        ("depcheck", "depcheck.pdf", "rubric.json", "rubric.json", 2),
        ("depcheck", "none.pdf", "rubric.json", None, 1),
    ],
)
def test_an_audit_that_cannot_be_says_why_and_writes_nothing(
    sources: Sources, repository: str, pdf: str, rubric: str, output: str | None, code: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(sources.repository.parent)
    before = sorted(Path.cwd().iterdir())
    with pytest.raises(PmagentError) as caught:
        run_audit(repository, pdf, rubric, output)
    assert caught.value.exit_code == code
    assert caught.value.hint
    assert not isinstance(caught.value, AuditFailed) or caught.value.code == "pdf_missing"
    assert sorted(Path.cwd().iterdir()) == before


DETECTIVES = ("repo_investigator", "doc_analyst", "vision_inspector")
BENCH = ("prosecutor", "defense", "tech_lead")


@pytest.fixture
def given(sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A state as the contract has it: two sources, and the rubric's dimensions."""
    monkeypatch.chdir(tmp_path)
    return {
        "repo_url": str(sources.repository), "pdf_path": str(sources.report),
        "rubric_dimensions": RUBRIC["dimensions"],
    }  # fmt: skip


def test_a_node_by_itself_needs_no_more_than_the_state(given: Any) -> None:
    update = pmagent.audit.repo_investigator_node(given, None)
    assert set(update["evidences"]) == {"state"}, "and keeps to the artifact that is its own"
    state: Any = {**given, "evidences": {**update["evidences"], **pmagent.audit.doc_analyst_node(given)["evidences"]}}
    before = json.dumps(state, default=lambda one: one.model_dump())
    opinions = pmagent.audit.prosecutor_node(state)["opinions"]
    assert [(one.judge, one.criterion_id) for one in opinions] == [("Prosecutor", "state")]
    assert json.dumps(state, default=lambda one: one.model_dump()) == before, "what was given is as it was"


def test_a_node_that_cannot_do_its_work_says_so(given: Any) -> None:
    away: Any = {**given, "repo_url": "/nowhere"}
    (failure,) = pmagent.audit.repo_investigator_node(away)["failures"]
    assert (failure.node, failure.code) == ("repo_investigator", "not_found")
    nothing: Any = {**given, "rubric_dimensions": [], "rubric_path": "/nowhere/rubric.json"}
    (failure,) = pmagent.audit.tech_lead_node(nothing)["failures"]
    assert (failure.node, failure.code) == ("tech_lead", "rubric")


@each("schema", [AgentState, AuditState])
def test_the_nodes_make_a_graph_as_the_contract_draws_it(given: Any, schema: type[Any]) -> None:
    """Two stages, each with a fan-out and a fan-in."""
    builder: Any = StateGraph(schema)
    for name in (*DETECTIVES, "evidence_aggregator", *BENCH, "chief_justice"):
        builder.add_node(name, getattr(pmagent.audit, f"{name}_node"))
    for name in DETECTIVES:
        builder.add_edge(START, name)
    builder.add_edge([*DETECTIVES], "evidence_aggregator")
    for name in BENCH:
        builder.add_edge("evidence_aggregator", name)
    builder.add_edge([*BENCH], "chief_justice")
    builder.add_edge("chief_justice", END)
    state = builder.compile().invoke(given)
    assert len(state["opinions"]) == 2 * len(BENCH)
    assert all(isinstance(one, JudicialOpinion) for one in state["opinions"])
    assert [one.dimension_id for one in state["final_report"].criteria] == ["state", "accuracy"]
    assert set(state) >= set(AgentState.__annotations__)


def test_dimensions_that_are_given_are_those_that_are_judged(given: Any) -> None:
    graph: Any = compile_audit_graph()
    report = graph.invoke({**given, "rubric_dimensions": RUBRIC["dimensions"][:1]})["final_report"]
    assert [one.dimension_id for one in report.criteria] == ["state"]
    state = graph.invoke({**given, "rubric_dimensions": [{"id": "state"}]})
    assert [(one.node, one.code) for one in state["failures"]] == [("context_builder", "rubric")]
    assert state["final_report"] is None


def test_everything_that_is_named_is_there_and_only_what_is_asked_for_is_imported(tmp_path: Path) -> None:
    assert set(pmagent.audit.__all__) <= set(dir(pmagent.audit))
    for name in pmagent.audit.__all__:
        assert getattr(pmagent.audit, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = pmagent.audit.nothing_of_the_kind
    program = "import pmagent.audit, sys; print(*({'pydantic', 'langgraph', 'langchain_core'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-I", "-c", program], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.strip() == b""
