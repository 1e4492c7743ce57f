from langgraph.graph import StateGraph, START, END

from jurors import JURORS, ask
from models import JuryState
from scan import clone, repo_facts, pitch_facts
from score import decide


def start(state: JuryState):
    return {"folder": clone(state["repo_url"])}


def look_at_repo(state: JuryState):
    return {"facts": repo_facts(state["folder"])}


def look_at_pitch(state: JuryState):
    return {"facts": pitch_facts(state["pitch"])}


def enough(state: JuryState):
    # a team without any python and without a readable pitch gets nothing
    good = [f for f in state["facts"] if f.ok]
    return "jury" if good else "finish"


def gather(state: JuryState):
    return {}


def jury(state: JuryState):
    opinions = []
    for name in JURORS:
        opinions.append(ask(name, state["facts"], opinions))
    return {"opinions": opinions}


def finish(state: JuryState):
    return {"final": decide(state["repo_url"], state["facts"], state["opinions"])}


g = StateGraph(JuryState)
g.add_node("start", start)
g.add_node("look_at_repo", look_at_repo)
g.add_node("look_at_pitch", look_at_pitch)
g.add_node("gather", gather)
g.add_node("jury", jury)
g.add_node("finish", finish)
g.add_edge(START, "start")
g.add_edge("start", "look_at_repo")
g.add_edge("start", "look_at_pitch")
g.add_edge(["look_at_repo", "look_at_pitch"], "gather")
g.add_conditional_edges("gather", enough, ["jury", "finish"])
g.add_edge("jury", "finish")
g.add_edge("finish", END)
app = g.compile()
