from langgraph.graph import StateGraph, END
from tools import *
from judges import *


def detective(state):
    path = clone_repo(state["url"])
    state["log"] = get_log(path)
    state["code"] = read_files(path)[:20000]
    return state


def doc(state):
    state["pdf"] = read_pdf("report.pdf")
    return state


def chief(state):
    # average of all scores
    scores = [state["prosecutor"]["score"], state["defense"]["score"], state["tech_lead"]["score"]]
    state["final"] = sum(scores) / 3
    return state


def run_court(url):
    g = StateGraph(dict)
    g.add_node("detective", detective)
    g.add_node("doc", doc)
    g.add_node("prosecutor", prosecutor)
    g.add_node("defense", defense)
    g.add_node("tech_lead", tech_lead)
    g.add_node("chief", chief)
    g.set_entry_point("detective")
    g.add_edge("detective", "doc")
    g.add_edge("doc", "prosecutor")
    g.add_edge("prosecutor", "defense")
    g.add_edge("defense", "tech_lead")
    g.add_edge("tech_lead", "chief")
    g.add_edge("chief", END)
    app = g.compile()
    return app.invoke({"url": url})
