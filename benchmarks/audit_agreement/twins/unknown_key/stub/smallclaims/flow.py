from langgraph.graph import END, START, StateGraph

from . import steps
from .data import Court


def make_flow():
    flow = StateGraph(Court)
    for step in (steps.fetch, steps.count_lines, steps.find_calls, steps.docket, steps.vote, steps.rule, steps.dismiss):
        flow.add_node(step.__name__, step)
    flow.add_edge(START, "fetch")
    flow.add_conditional_edges("fetch", steps.route, ["dismiss", "count_lines", "find_calls"])
    flow.add_edge(["count_lines", "find_calls"], "docket")
    flow.add_conditional_edges("docket", steps.call_bench, ["vote"])
    flow.add_edge("vote", "rule")
    flow.add_edge("rule", END)
    flow.add_edge("dismiss", END)
    return flow.compile()
