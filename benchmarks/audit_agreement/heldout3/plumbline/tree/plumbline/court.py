"""The whole court as a graph."""
from __future__ import annotations

from pathlib import Path

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from .bench import CREEDS, judge
from .detectives import code_detective, historian, paper_detective
from .fetch import FetchError, clone
from .records import Case
from .ruling import chief, publish

DETECTIVES = ("historian", "code_detective", "paper_detective")


def fetch(case: Case) -> Case:
    try:
        return {"folder": str(clone(case["url"], Path(case["folder"])))}
    except FetchError as error:
        return {"troubles": [str(error)], "exit_code": 2}


def after_fetch(case: Case) -> list[str]:
    return ["publish"] if case.get("exit_code") else list(DETECTIVES)


def collect(case: Case) -> Case:
    """Joins the detectives. With nothing found there is nothing to judge."""
    if not any(one.found for one in case.get("findings", {}).values()):
        return {"exit_code": 3, "troubles": ["no detective found anything"]}
    return {}


def to_bench(case: Case) -> list[Send] | str:
    if case.get("exit_code"):
        return "publish"
    return [
        Send("judge", {"seat": seat, "criterion": criterion, "findings": case["findings"]})
        for criterion in case["criteria"] for seat in CREEDS
    ]


def build():
    graph = StateGraph(Case)
    graph.add_node("fetch", fetch)
    graph.add_node("historian", historian)
    graph.add_node("code_detective", code_detective)
    graph.add_node("paper_detective", paper_detective)
    graph.add_node("collect", collect)
    graph.add_node("judge", judge)
    graph.add_node("chief", chief)
    graph.add_node("publish", publish)

    graph.add_edge(START, "fetch")
    graph.add_conditional_edges("fetch", after_fetch, [*DETECTIVES, "publish"])
    graph.add_edge(list(DETECTIVES), "collect")
    graph.add_conditional_edges("collect", to_bench, ["judge", "publish"])
    graph.add_edge("judge", "chief")
    graph.add_edge("chief", "publish")
    graph.add_edge("publish", END)
    return graph.compile()
