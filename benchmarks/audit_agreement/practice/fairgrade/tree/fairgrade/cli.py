import sys
import tempfile

from langgraph.graph import END, START, StateGraph

from . import detect
from .chief import chief_justice
from .core import Grading
from .panel import judges


def graph():
    g = StateGraph(Grading)
    g.add_node("clone", detect.clone)
    g.add_node("history", detect.history)
    g.add_node("code", detect.code)
    g.add_node("collected", lambda s: {})
    g.add_node("chief_justice", chief_justice)
    g.add_edge(START, "clone")
    g.add_conditional_edges("clone", lambda s: END if s.errors else ["history", "code"], ["history", "code", END])
    g.add_edge(["history", "code"], "collected")
    for name, node in judges.items():
        g.add_node(name, node)
        g.add_edge("collected", name)
    g.add_edge(list(judges), "chief_justice")
    g.add_edge("chief_justice", END)
    return g.compile()


def main():
    with tempfile.TemporaryDirectory() as tmp:
        end = graph().invoke({"repo_url": sys.argv[1], "workdir": tmp})
    for e in end.get("errors", []):
        print("error:", e, file=sys.stderr)
    return 1 if end.get("errors") else 0


if __name__ == "__main__":
    sys.exit(main())
