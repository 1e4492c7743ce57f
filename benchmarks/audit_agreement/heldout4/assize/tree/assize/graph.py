"""The course of a case."""

from pathlib import Path
from typing import get_args

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from . import bench, sleuths, verdict
from .clone import GitFailed, clone
from .state import Case, Judge

SLEUTHS = {"history": sleuths.history, "code": sleuths.code, "paper": sleuths.paper}


def fetch(case: Case) -> dict:
    try:
        clone(case["url"], Path(case["folder"]))
    except GitFailed as failed:
        return {"problem": str(failed)}
    return {"problem": ""}


def to_sleuths(case: Case) -> list[str]:
    return ["dismiss"] if case["problem"] else list(SLEUTHS)


def docket(case: Case) -> dict:
    """Joins the sleuths. Without anything to read there is no case."""
    return {} if any(one.criterion != "history" for one in case["exhibits"]) else {"problem": "nothing to judge was found"}


def to_judges(case: Case) -> list[Send] | str:
    if case["problem"]:
        return "dismiss"
    return [
        Send("hear", {"judge": judge, "criterion": criterion,
                      "exhibits": [one for one in case["exhibits"] if one.criterion == criterion.id]})
        for judge in get_args(Judge) for criterion in case["criteria"]
    ]


def publish(case: Case) -> dict:
    Path(case["out"]).write_text(verdict.as_markdown(case), "utf-8")
    return {}


def dismiss(case: Case) -> dict:
    Path(case["out"]).write_text(f"# Dismissed\n\n{case['url']}: {case['problem']}\n", "utf-8")
    return {}


def court():
    graph = StateGraph(Case)
    graph.add_node("fetch", fetch)
    for name, sleuth in SLEUTHS.items():
        graph.add_node(name, sleuth)
    graph.add_node("docket", docket)
    graph.add_node("hear", bench.hear)
    graph.add_node("ruling", verdict.ruling)
    graph.add_node("publish", publish)
    graph.add_node("dismiss", dismiss)
    graph.add_edge(START, "fetch")
    graph.add_conditional_edges("fetch", to_sleuths, [*SLEUTHS, "dismiss"])
    graph.add_edge(list(SLEUTHS), "docket")
    graph.add_conditional_edges("docket", to_judges, ["hear", "dismiss"])
    graph.add_edge("hear", "ruling")
    graph.add_edge("ruling", "publish")
    graph.add_edge("publish", END)
    graph.add_edge("dismiss", END)
    return graph.compile()
