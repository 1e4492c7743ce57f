"""The graph's nodes by themselves (docs/design.md §15.3): state in, partial update out.

    found = repo_investigator_node({"repo_url": "https://…", "pdf_path": "report.pdf"})["evidences"]

Each does its work on the spot, by a clerk of its own (``StandaloneClerk``: the rules judge, nobody looks at images),
unless its ``config`` brings one, as the graph's does. A state of the contract's six fields is enough: where it holds
no whole rubric its ``rubric_dimensions`` are gone by, without any the default rubric.
"""

# Annotations are no texts here: LangGraph knows by them that a node takes a config, and which fields it reads. The
# aggregator needs ``survey`` and ``reading``, so that a graph of the six fields gets these as well.

from collections.abc import Callable
from typing import Any, Protocol, cast

from langchain_core.runnables import RunnableConfig

from pmagent.actors.audit import nodes
from pmagent.actors.audit.clerk import NodeFailed
from pmagent.audit.standalone import StandaloneClerk
from pmagent.contracts.audit import AgentState, AuditFailure, AuditState

Update = dict[str, Any]
"""The keys of the state that change; ``failures`` where the node could not do its work."""

_Work = Callable[[AuditState, RunnableConfig], Update]


class Node(Protocol):
    """A node that may be called with a state alone."""

    def __call__(self, state: AgentState, config: RunnableConfig | None = None) -> Update:
        """The keys of the state that change."""


def _alone(name: str, work: _Work) -> Node:
    def node(state: AuditState, config: RunnableConfig | None = None) -> Update:
        given = dict((config or {}).get("configurable", {}))
        clerk = given.setdefault("clerk", StandaloneClerk())
        known = state.copy()
        if not known.get("rubric"):
            try:
                known["rubric"] = nodes.rubric_for(known, clerk)
            except NodeFailed as failed:
                why = AuditFailure(node=name, code=failed.code, reason=failed.reason, mend=failed.mend)
                return {"failures": [why]}
        return work(known, {"configurable": given})

    node.__name__ = node.__qualname__ = f"{name}_node"
    return cast("Node", node)


repo_investigator_node = _alone("repo_investigator", nodes.repo_investigator_node)
doc_analyst_node = _alone("doc_analyst", nodes.doc_analyst_node)
vision_inspector_node = _alone("vision_inspector", nodes.vision_inspector_node)
evidence_aggregator_node = _alone("evidence_aggregator", lambda state, _: nodes.evidence_aggregator_node(state))
prosecutor_node = _alone("prosecutor", nodes.prosecutor_node)
defense_node = _alone("defense", nodes.defense_node)
tech_lead_node = _alone("tech_lead", nodes.tech_lead_node)
chief_justice_node = _alone("chief_justice", nodes.chief_justice_node)
