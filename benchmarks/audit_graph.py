"""The audit's graph: invocations a second, with everything known but the next step, beside the bare graph.

The actor invokes the graph whenever something has come (docs/design.md §15.3), so an audit costs as many invocations as
answers. Measured is the one that a judge's reply leads to: all evidence there, all opinions but one. Beside it:
LangGraph's own part, a graph of the same shape whose nodes do nothing. At three sizes of rubric.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

from benchmarks.harness import Bench, Row, Spread
from pmagent.actors.audit.actor_clerk import ActorClerk
from pmagent.actors.audit.graph import BENCH, DETECTIVES, audit_graph
from pmagent.actors.audit.state import Asked, Audit
from pmagent.contracts.audit import JUDGES, AuditState, Evidence, JudicialOpinion
from pmagent.contracts.audit_events import AuditRequested

DIMENSIONS = (4, 12, 40)
RULES = ("security_override", "fact_supremacy", "functionality_weight", "dissent_requirement", "variance_re_evaluation")


def run(bench: Bench) -> list[Row]:
    """One row a size."""
    times = bench.count(300, 3)
    rows = []
    for dimensions in DIMENSIONS:
        whole, bare = _invocation(dimensions), _bare()
        rates: list[float] = []
        limits: list[float] = []
        for _ in range(bench.runs):
            rates.append(_rate(whole, times))
            limits.append(_rate(bare, times))
        rate, limit = Spread.of(rates), Spread.of(limits)
        rows.append(Row(
            what=f"audit graph, {dimensions} criteria, one opinion missing", figure=rate, unit="invocations/s",
            beside="a graph of this shape whose nodes do nothing", limit=limit, ratio=rate.median / limit.median,
        ))
    return rows


def _rate(invoke: Callable[[], object], times: int) -> float:
    invoke()
    start = time.perf_counter()
    for _ in range(times):
        invoke()
    return times / (time.perf_counter() - start)


def _invocation(dimensions: int) -> Callable[[], object]:
    names = [f"criterion_{n}" for n in range(dimensions)]
    rubric = {"rubric_metadata": {}, "dimensions": [_dimension(name) for name in names],
              "synthesis_rules": dict.fromkeys(RULES, "As the rule says.")}  # fmt: skip
    asked = AuditRequested(
        audit_id="00000000-0000-4000-8000-000000000001", repo_url="/repository", pdf_path="/report.pdf", rubric=rubric,
        rubric_source="benchmark", output="audit/report", engine="langchain", model="none",
    )  # fmt: skip
    last = f"TechLead 1 {names[-1]}"
    audit = Audit(asked.audit_id, 1, asked, names, questions={last: Asked(7)})
    opinions = [
        JudicialOpinion(judge=judge, criterion_id=name, score=3, argument="So it is.", cited_evidence=[f"{name}#1"])
        for name in names
        for judge in JUDGES
    ]
    state: AuditState = {
        "repo_url": asked.repo_url, "pdf_path": asked.pdf_path, "rubric": rubric,
        "evidences": {name: [_evidence(n) for n in range(12)] for name in names}, "opinions": opinions[:-1],
    }  # fmt: skip

    def invoke() -> object:
        config: RunnableConfig = {"configurable": {"clerk": ActorClerk(audit)}}
        after = audit_graph().invoke({**state, "opinions": list(opinions[:-1])}, config)
        assert after["waiting"], "one opinion is missing"
        return after

    return invoke


def _dimension(name: str) -> dict[str, Any]:
    return {
        "id": name, "name": name, "target_artifact": "github_repo", "forensic_instruction": "Look.",
        "success_pattern": "It is there.", "failure_pattern": "It is not.", "goals": ["state.typed"],
    }  # fmt: skip


def _evidence(number: int) -> Evidence:
    return Evidence(
        goal="state.typed: typed state", found=number % 2 == 0, content="x" * 500, location=f"app.py:{number}",
        rationale="by its syntax tree", confidence=1.0,
    )  # fmt: skip


class _Nothing(TypedDict, total=False):
    done: bool


def _bare() -> Callable[[], object]:
    builder: StateGraph[_Nothing, None, _Nothing, _Nothing] = StateGraph(_Nothing)

    def nothing(state: _Nothing) -> dict[str, Any]:
        del state
        return {}

    for name in ("context_builder", *DETECTIVES, "evidence_aggregator", *BENCH, "deliberation"):
        builder.add_node(name, nothing)
    builder.add_edge(START, "context_builder")
    for name in DETECTIVES:
        builder.add_edge("context_builder", name)
    builder.add_edge([*DETECTIVES], "evidence_aggregator")
    for name in BENCH:
        builder.add_edge("evidence_aggregator", name)
    builder.add_edge([*BENCH], "deliberation")
    builder.add_edge("deliberation", END)
    graph = builder.compile()
    return lambda: graph.invoke({})
