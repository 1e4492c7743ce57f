"""The graph: two fan-outs, each joined again, and a way out when the clone fails."""

from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, START, StateGraph

from depcheck import inspectors
from depcheck.reviewers import PROMPTS, reviewer
from depcheck.state import State
from depcheck.tools import CloneFailed, clone
from depcheck.verdict import decide

INSPECTORS = ("licence", "activity", "tests")


def fetch(state: State) -> dict:
    """Clone the repository, or say why not."""
    try:
        clone(state["url"], state["folder"])
    except CloneFailed as failed:
        return {"problem": str(failed)}
    return {}


def fetched(state: State) -> list[str]:
    """All inspectors, or none where there is nothing to inspect."""
    return ["give_up"] if state.get("problem") else list(INSPECTORS)


def gather(state: State) -> dict:
    """Wait for all inspectors."""
    return {}


def give_up(state: State) -> dict:
    """There is no verdict without facts."""
    return {}


def build(model: BaseChatModel):
    """The compiled graph."""
    graph = StateGraph(State)
    graph.add_node("fetch", fetch)
    graph.add_node("licence", inspectors.licence)
    graph.add_node("activity", inspectors.activity)
    graph.add_node("tests", inspectors.tests)
    graph.add_node("gather", gather)
    graph.add_node("give_up", give_up)
    for name in PROMPTS:
        graph.add_node(name, reviewer(name, model))
    graph.add_node("decide", decide)

    graph.add_edge(START, "fetch")
    graph.add_conditional_edges("fetch", fetched, [*INSPECTORS, "give_up"])
    graph.add_edge(["licence", "activity", "tests"], "gather")
    for name in ("sceptic", "advocate", "maintainer"):
        graph.add_edge("gather", name)
    graph.add_edge(["sceptic", "advocate", "maintainer"], "decide")
    graph.add_edge("decide", END)
    graph.add_edge("give_up", END)
    return graph.compile()
