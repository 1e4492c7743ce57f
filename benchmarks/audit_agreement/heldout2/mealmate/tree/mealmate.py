import sys

from langgraph.graph import END, START, StateGraph

from cook import check, cook, next_step
from state import PlanState
from writer import give_up, write


def build():
    g = StateGraph(PlanState)
    g.add_node("cook", cook)
    g.add_node("check", check)
    g.add_node("write", write)
    g.add_node("give_up", give_up)
    g.add_edge(START, "cook")
    g.add_edge("cook", "check")
    g.add_conditional_edges("check", next_step)
    g.add_edge("write", END)
    g.add_edge("give_up", END)
    return g.compile()


if __name__ == "__main__":
    wish = sys.argv[1] if len(sys.argv) > 1 else "anything"
    fridge = [line.strip() for line in open("fridge.txt") if line.strip()]
    build().invoke({"wish": wish, "fridge": fridge, "tries": 0})
