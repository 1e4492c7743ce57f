"""The compiled graph by itself leaves the report as a file (docs/design.md §15.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pmagent.audit import AuditReport, compile_audit_graph
from pmagent.contracts.audit import AuditState
from tests.support.audits import dimension, rubric
from tests.support.audits_history import sources


@pytest.mark.slow
def test_the_graph_writes_the_report_where_it_is_wanted_or_in_the_usual_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    repository, report = sources(tmp_path)
    given: AuditState = {"repo_url": repository, "pdf_path": report, "rubric": rubric(dimension("state"))}
    graph = compile_audit_graph()
    state = graph.invoke(given)
    assert isinstance(state["final_report"], AuditReport)
    assert (tmp_path / "audit" / "report_depcheck.md").read_text("utf-8").startswith("# Audit Report")
    assert (tmp_path / "audit" / "report_depcheck.json").exists()
    given["output_path"] = "mine.md"
    graph.invoke(given)
    assert (tmp_path / "mine.md").exists()


def test_a_place_that_is_somebody_elses_is_refused_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.md").write_text("A poem")
    state = compile_audit_graph().invoke(
        {"repo_url": "https://example.invalid/team/agent", "pdf_path": "nothing.pdf", "output_path": "mine.md"}
    )
    assert state["final_report"] is None
    (failure,) = state["failures"]
    assert failure.node == "context_builder"
    assert (tmp_path / "mine.md").read_text() == "A poem"


def test_a_state_without_its_inputs_is_a_failure_of_the_first_node() -> None:
    graph: Any = compile_audit_graph()
    for state, code in (({}, "bad_url"), ({"repo_url": "/r"}, "pdf_missing"), ({"repo_url": 3}, "bad_url")):
        (failure,) = graph.invoke(state)["failures"]
        assert (failure.node, failure.code) == ("context_builder", code)
