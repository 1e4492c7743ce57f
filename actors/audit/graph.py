"""The audit as a LangGraph ``StateGraph`` (docs/design.md §15.3); pure.

    START → context_builder → [repo_investigator ∥ doc_analyst ∥ vision_inspector] → evidence_aggregator
          → [prosecutor ∥ defense ∥ tech_lead] → deliberation → (again the judges | chief_justice) → END

From ``context_builder``, ``evidence_aggregator`` and ``deliberation`` a conditional edge leads to END as well: for a
node that failed (missing evidence, a judge without a valid opinion), and for an answer that has yet to come.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cache
from typing import Any, Final, cast, get_args, get_origin, get_type_hints

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from pmagent.actors.audit import nodes
from pmagent.actors.audit.clerk import Clerk
from pmagent.contracts.audit import AuditState

Compiled = CompiledStateGraph[AuditState, None, AuditState, AuditState]

STEPS_MAX: Final = 25
"""So many steps a walk takes at most, as LangGraph does by itself."""

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


def walked(known: AuditState, config: RunnableConfig) -> AuditState:
    """The state in which ``audit_graph().invoke(known, config)`` ends, at a fraction of its cost: the graph's own nodes
    and edges, step by step in this thread, without what LangGraph prepares for each node to be traced, stored, streamed
    or run elsewhere. Raises GraphRecursionError, and whatever a node raises."""
    state: dict[str, Any] = {name: empty() for name, (empty, _) in _reducers().items()}
    _update(state, known)
    arrived: dict[str, set[str]] = {}
    due = _following({START}, state, config, arrived)
    for _ in range(STEPS_MAX):
        if not due:
            return cast("AuditState", state)
        given = dict(state)
        nodes = [cast("Runnable[Any, Any]", audit_graph().builder.nodes[name].runnable) for name in sorted(due)]
        for update in [node.invoke(given, config) for node in nodes]:
            _update(state, update)
        due = _following(due, state, config, arrived)
    raise GraphRecursionError(f"the graph has not ended after {STEPS_MAX} steps")


@cache
def _reducers() -> dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any]]]:
    """Of each field that has one: the empty value, and how an update is added."""
    hints = get_type_hints(AuditState, include_extras=True)
    annotated = {name: get_args(hint) for name, hint in hints.items() if hasattr(hint, "__metadata__")}
    return {name: (get_origin(kind) or kind, reducer) for name, (kind, reducer) in annotated.items()}


def _update(state: dict[str, Any], update: Mapping[str, Any]) -> None:
    reducers = _reducers()
    for name, value in update.items():
        state[name] = reducers[name][1](state[name], value) if name in reducers else value


def _following(ran: set[str], state: dict[str, Any], config: RunnableConfig, arrived: dict[str, set[str]]) -> set[str]:
    """The nodes that are due after those that ``ran`` in one step. ``arrived``: of a node that waits for several, those
    that have run since it ran. A node with a conditional edge runs alone, so that the edge sees what everybody sees."""
    builder = audit_graph().builder
    found = {end for start, end in builder.edges if start in ran}
    for starts, end in builder.waiting_edges:
        arrived[end] = (arrived.get(end, set()) | ran) & {*starts}
        if len(arrived[end]) == len(starts):
            found.add(end)
            arrived[end] = set()
    for start in ran:
        for branch in builder.branches[start].values() if start in builder.branches else ():
            assert branch.ends is not None, "each conditional edge has its map"
            chosen = cast("list[Hashable]", branch.path.invoke(state, config))
            found |= {branch.ends[one] for one in chosen}
    return found - {END}
