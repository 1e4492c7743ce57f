"""Who speaks after whom."""
from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Literal

from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send

from . import beadles
from .alderman import alderman, scribe
from .masters import OATHS, vote
from .porter import Refused, bring
from .state import TOPICS, Hall

WATCH = ("history", "workflow", "safety", "paper")


def hall(into: str):
    async def porter(state: Hall) -> Command[Literal["history", "workflow", "safety", "paper", "scribe"]]:
        try:
            folder = await bring(state.url, into)
        except Refused as error:
            return Command(goto="scribe", update={"complaints": [str(error)]})
        return Command(goto=list(WATCH), update={"folder": folder})

    async def table(state: Hall) -> Command[Literal["vote", "scribe"]]:
        """All exhibits lie on the table before a master sees one."""
        if not state.exhibits:
            return Command(goto="scribe", update={"complaints": ["nothing to judge"]})
        return Command(goto=[
            Send("vote", {"master": master, "topic": topic, "exhibits": state.exhibits})
            for topic in TOPICS for master in OATHS
        ])

    graph = StateGraph(Hall)
    graph.add_node("porter", porter)
    for name in WATCH:
        graph.add_node(name, getattr(beadles, name))
    graph.add_node("table", table)
    graph.add_node("vote", vote)
    graph.add_node("alderman", alderman)
    graph.add_node("scribe", scribe)
    graph.add_edge(START, "porter")
    graph.add_edge(list(WATCH), "table")
    graph.add_edge("vote", "alderman")
    graph.add_edge("alderman", "scribe")
    return graph.compile()


async def session(url: str, paper: str) -> dict:
    with tempfile.TemporaryDirectory() as into:
        return await hall(str(Path(into))).ainvoke(
            {"url": url, "paper": paper}, {"recursion_limit": 20, "max_concurrency": 4}
        )
