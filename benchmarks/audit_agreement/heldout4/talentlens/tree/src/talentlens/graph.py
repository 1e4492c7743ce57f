from __future__ import annotations

from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph

from . import nodes
from .schemas import ScreeningState


def build_graph():
    graph = StateGraph(ScreeningState)
    graph.add_node("build_profile", nodes.build_profile)
    graph.add_node("anonymise", nodes.anonymise)
    graph.add_node("assess", nodes.assess)
    graph.add_node("rank", nodes.rank)
    graph.add_node("bias_audit", nodes.bias_audit)
    graph.add_node("rerank", nodes.rerank)
    graph.add_node("human_review", nodes.human_review)
    graph.add_node("send_mails", nodes.send_mails)
    graph.add_node("export", nodes.export)

    graph.add_edge(START, "build_profile")
    graph.add_edge("build_profile", "anonymise")
    graph.add_conditional_edges("anonymise", nodes.fan_out, ["assess"])
    graph.add_edge("assess", "rank")
    graph.add_edge("rank", "bias_audit")
    graph.add_conditional_edges("bias_audit", nodes.route_bias, ["human_review", "rerank"])
    graph.add_edge("rerank", "bias_audit")
    graph.add_edge("human_review", "send_mails")
    graph.add_edge("send_mails", "export")
    graph.add_edge("export", END)
    return graph.compile(checkpointer=MemorySaver())
