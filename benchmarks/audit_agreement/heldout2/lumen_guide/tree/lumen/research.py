"""Two collections, searched at the same time."""
from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from langgraph.graph import END, START, StateGraph
from rank_bm25 import BM25Okapi

from .state import Passage, ResearchState


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@lru_cache
def collection(path: Path) -> tuple[list[dict], BM25Okapi]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    if not rows:
        raise ValueError(f"{path} is empty")
    return rows, BM25Okapi([words(row["text"]) for row in rows])


def search(path: Path, weight: float) -> Callable[[ResearchState], dict]:
    def node(state: ResearchState) -> dict:
        rows, index = collection(path)
        ranks = index.get_scores(words(state["english"]))
        found = [Passage(id=r["id"], text=r["text"], rank=float(s) * weight) for r, s in zip(rows, ranks) if s > 0]
        return {"passages": found}

    return node


def research(folder: Path):
    g = StateGraph(ResearchState)
    g.add_node("catalogue", search(folder / "catalogue.jsonl", 1.0))
    g.add_node("notes", search(folder / "notes.jsonl", 0.8))
    for name in ("catalogue", "notes"):
        g.add_edge(START, name)
        g.add_edge(name, END)
    return g.compile()
