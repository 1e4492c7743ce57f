"""Wiring of the swarm."""
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from .agents import after_critic, approval, critic, dispatch, planner, researcher, verifier, writer
from .schemas import ReviewState


def build_graph():
    graph = StateGraph(ReviewState)
    graph.add_node("planner", planner)
    graph.add_node("researcher", researcher)
    graph.add_node("critic", critic)
    graph.add_node("writer", writer)
    graph.add_node("verifier", verifier)
    graph.add_node("approval", approval)
    graph.add_edge(START, "planner")
    graph.add_conditional_edges("planner", dispatch, ["researcher"])
    graph.add_edge("researcher", "critic")
    graph.add_conditional_edges("critic", after_critic, ["researcher", "writer"])
    graph.add_edge("writer", "verifier")
    graph.add_edge("verifier", END)
    graph.add_edge("approval", END)
    return graph.compile(checkpointer=InMemorySaver())
