"""The multi-agent graph."""
from langgraph.graph import END, START, StateGraph

from wattwise.agents.critic import critic_agent, dispatch, ensemble_agent, human_approval  # noqa: F401
from wattwise.agents.load import load_agent
from wattwise.agents.market import market_agent
from wattwise.agents.weather import weather_agent
from wattwise.state import GridState


def start(state: GridState) -> dict:
    return {"status": "started"}


def build_graph():
    graph = StateGraph(GridState)
    graph.add_node("start", start)
    graph.add_node("finish", lambda state: {"status": "finished"})
    graph.add_edge(START, "start")
    graph.add_edge("start", "finish")
    graph.add_edge("finish", END)
    return graph.compile()


def build_full_graph():
    """The complete pipeline with parallel agents, critic loop and approval."""
    graph = StateGraph(GridState)
    for name, agent in (("weather", weather_agent), ("load", load_agent), ("market", market_agent)):
        graph.add_node(name, agent)
        graph.add_edge(START, name)
    graph.add_node("ensemble", ensemble_agent)
    graph.add_edge(["weather", "load", "market"], "ensemble")
    graph.add_node("human_approval", human_approval)
    graph.add_node("dispatch", dispatch)
    graph.add_conditional_edges("ensemble", critic_agent, {"good": "human_approval", "again": "load"})
    graph.add_edge("human_approval", "dispatch")
    graph.add_edge("dispatch", END)
    return graph.compile()
