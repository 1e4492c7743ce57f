"""The chart: which node comes after which."""
import asyncio
import tempfile
from typing import Literal

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send

from . import dock, master
from .bench import build_bench
from .records import BenchInput, Clue, Voyage

WATCHES = ("log_watch", "code_watch", "paper_watch")


async def moor(state: Voyage) -> Command[Literal["log_watch", "code_watch", "paper_watch", "release"]]:
    try:
        checkout = await dock.check_out(state["url"], tempfile.mkdtemp(dir=state["checkout"]))
    except dock.DockError as error:
        return Command(goto="release", update={"problem": str(error)})
    return Command(goto=list(WATCHES), update={"checkout": checkout})


def found(*clues: Clue) -> dict:
    return {"clues": {clue.key: clue for clue in clues}}


async def log_watch(state: Voyage) -> dict:
    try:
        return found(await dock.history(state["checkout"]))
    except dock.DockError as error:
        return found(Clue(key="log", criterion="process", seen=False, text=str(error)))


async def code_watch(state: Voyage) -> dict:
    return found(*await asyncio.to_thread(dock.read_code, state["checkout"]))


async def paper_watch(state: Voyage) -> dict:
    return found(await asyncio.to_thread(dock.read_paper, state["pdf"]))


def hearing(state: Voyage, criterion: str, turn: int) -> Send:
    earlier = master.latest(state.get("opinions", []), criterion) if turn > 1 else []
    clues = [c for c in state["clues"].values() if c.criterion == criterion]
    return Send("bench", BenchInput(criterion=criterion, clues=clues, round=turn, earlier=earlier))


def muster(state: Voyage) -> dict:
    """The watches meet here."""
    return {}


def call_bench(state: Voyage) -> list[Send]:
    return [hearing(state, criterion, 1) for criterion in master.WEIGHT]


def close_round(state: Voyage) -> dict:
    """The hearings meet here."""
    return {}


def again_or_release(state: Voyage) -> list[Send] | str:
    again = []
    for criterion in master.WEIGHT:
        heard = master.latest(state["opinions"], criterion)
        if master.spread(heard) > master.FAR_APART and heard[0].round == 1:
            again.append(hearing(state, criterion, 2))
    return again or "release"


def release(state: Voyage) -> dict:
    problem = state.get("problem", "")
    marks = [] if problem else [master.mark(c, state["opinions"], state["clues"]) for c in master.WEIGHT]
    return {"marks": marks, "written": master.write(marks, problem)}


def build():
    graph = StateGraph(Voyage)
    graph.add_node("moor", moor)
    graph.add_node("log_watch", log_watch)
    graph.add_node("code_watch", code_watch)
    graph.add_node("paper_watch", paper_watch)
    graph.add_node("muster", muster)
    graph.add_node("bench", build_bench())
    graph.add_node("close_round", close_round)
    graph.add_node("release", release)
    graph.add_edge(START, "moor")
    graph.add_edge(list(WATCHES), "muster")
    graph.add_conditional_edges("muster", call_bench, ["bench"])
    graph.add_edge("bench", "close_round")
    graph.add_conditional_edges("close_round", again_or_release, ["bench", "release"])
    graph.add_edge("release", END)
    return graph.compile()
