"""The audit as a LangGraph ``StateGraph`` (docs/design.md §15.3); pure.

    START → context_builder → [repo_investigator ∥ doc_analyst ∥ vision_inspector] → evidence_aggregator
          → [prosecutor ∥ defense ∥ tech_lead] → deliberation → (again the judges | chief_justice) → END

From ``context_builder``, ``evidence_aggregator`` and ``deliberation`` a conditional edge leads to END as well: for a
node that failed (missing evidence, a judge without a valid opinion), and for an answer that has yet to come.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cache

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from pmagent.actors.audit import nodes
from pmagent.actors.audit.clerk import Clerk
from pmagent.contracts.audit import AuditState

Compiled = CompiledStateGraph[AuditState, None, AuditState, AuditState]

DETECTIVES = ("repo_investigator", "doc_analyst", "vision_inspector")
BENCH = ("prosecutor", "defense", "tech_lead")


@cache
def audit_graph() -> Compiled:
    """The graph, compiled once. It needs a clerk: ``config["configurable"]["clerk"]``; ``provenance`` there may name
    ``audit_id``, ``engine``, ``commit`` and ``report_sha256`` for the report, and a second model (``panel``)."""
    builder: StateGraph[AuditState, None, AuditState, AuditState] = StateGraph(AuditState)
    builder.add_node("context_builder", nodes.context_builder_node)
    builder.add_node("repo_investigator", nodes.repo_investigator_node)
    builder.add_node("doc_analyst", nodes.doc_analyst_node)
    builder.add_node("vision_inspector", nodes.vision_inspector_node)
    builder.add_node("evidence_aggregator", nodes.evidence_aggregator_node)
    builder.add_node("prosecutor", nodes.prosecutor_node)
    builder.add_node("defense", nodes.defense_node)
    builder.add_node("tech_lead", nodes.tech_lead_node)
    builder.add_node("deliberation", nodes.deliberation_node)
    builder.add_node("chief_justice", nodes.chief_justice_node)

    away: dict[Hashable, str] = {"failed": END, "waiting": END}
    builder.add_edge(START, "context_builder")
    builder.add_conditional_edges("context_builder", nodes.after_context, {**_to(DETECTIVES), "failed": END})
    builder.add_edge([*DETECTIVES], "evidence_aggregator")
    builder.add_conditional_edges("evidence_aggregator", nodes.after_evidence, {**_to(BENCH), **away})
    builder.add_edge([*BENCH], "deliberation")
    again = {**_to(BENCH), "chief_justice": "chief_justice", **away}
    builder.add_conditional_edges("deliberation", nodes.after_opinions, again)
    builder.add_edge("chief_justice", END)
    return builder.compile()


def _to(names: tuple[str, ...]) -> dict[Hashable, str]:
    return dict(zip(names, names, strict=True))


def compile_audit_graph(clerk: Clerk, provenance: Mapping[str, str] | None = None) -> Compiled:
    """The graph with its clerk: ``graph.invoke({"repo_url": …, "pdf_path": …})`` returns the state; ``final_report`` is
    None where the audit failed, ``failures`` say why. With a clerk that answers at once, it is a whole audit."""
    return audit_graph().with_config(configurable={"clerk": clerk, "provenance": dict(provenance or {})})
