import argparse

from langgraph.types import Command

from . import progress
from .graph import build


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--name", default="you")
    p.add_argument("--level", type=int, choices=[1, 2, 3, 4])
    args = p.parse_args()
    level = args.level or progress.load(args.name).get("level", 1)
    graph = build()
    config = {"configurable": {"thread_id": args.name}, "recursion_limit": 100}
    out = graph.invoke({"name": args.name, "level": level, "solved": 0, "wrong": 0, "messages": []}, config)
    shown = 0
    while True:
        for m in out["messages"][shown:]:
            if m.type == "ai":
                print("TUTOR:", m.content)
        shown = len(out["messages"])
        if "__interrupt__" not in out:
            break
        try:
            said = input("YOU: ")
        except (EOFError, KeyboardInterrupt):
            break
        out = graph.invoke(Command(resume=said), config)
    progress.save(args.name, out["level"], out["solved"])


if __name__ == "__main__":
    main()
