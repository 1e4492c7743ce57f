from __future__ import annotations

import json
import sys
from pathlib import Path

from langgraph.graph import END, START, StateGraph

from . import speak
from .research import research
from .state import TourState


def tour(folder: Path):
    g = StateGraph(TourState)
    g.add_node("listen", speak.listen)
    g.add_node("research", research(folder))
    g.add_node("compose", speak.draft)
    g.add_node("second_look", speak.second_look)
    g.add_node("translate", speak.translate)
    g.add_node("sorry", speak.sorry)
    g.add_edge(START, "listen")
    g.add_conditional_edges("research", speak.anything_found)
    g.add_edge("compose", "second_look")
    g.add_edge("second_look", "translate")
    g.add_edge("translate", END)
    g.add_edge("sorry", END)
    return g.compile()


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: lumen FOLDER QUESTION")
    folder = Path(sys.argv[1])
    if not (folder / "catalogue.jsonl").exists():
        sys.exit(f"lumen: no catalogue.jsonl in {folder}")
    end = tour(folder).invoke({"asked": sys.argv[2]}, {"recursion_limit": 15})
    with (folder / "asked.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps({"asked": sys.argv[2], "answer": end["answer"], "trail": end["trail"]}) + "\n")
    print(end["answer"])


if __name__ == "__main__":
    main()
