from langgraph.graph import END, START, StateGraph

from . import justice, nodes
from .models import Case


def build():
    g = StateGraph(Case)
    for fn in (nodes.code_detective, nodes.paper_detective, nodes.clerk, nodes.judge, nodes.no_case,
               justice.chief_justice, justice.publish):
        g.add_node(fn.__name__, fn)
    for detective in ("code_detective", "paper_detective"):
        g.add_edge(START, detective)
    g.add_edge(["code_detective", "paper_detective"], "clerk")
    g.add_conditional_edges("clerk", nodes.call_judges, ["judge", "no_case"])
    g.add_edge("judge", "chief_justice")
    g.add_edge("chief_justice", "publish")
    g.add_edge("no_case", "publish")
    g.add_edge("publish", END)
    return g.compile()
