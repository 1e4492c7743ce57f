import sys
from langgraph.graph import StateGraph, START, END
from .state import BenchState
from .collect import collect, ok
from .judges import prosecutor, defense, tech_lead
from .final import final

w = StateGraph(BenchState)
w.add_node("collect", collect)
w.add_node("docket", lambda s: {"final_score": 0.0})
w.add_node("prosecutor", prosecutor)
w.add_node("defense", defense)
w.add_node("tech_lead", tech_lead)
w.add_node("final", final)
w.add_edge(START, "collect")
w.add_conditional_edges("collect", ok, {"go": "docket", "stop": END})
for j in ["prosecutor", "defense", "tech_lead"]:
    w.add_edge("docket", j)
w.add_edge(["prosecutor", "defense", "tech_lead"], "final")
w.add_edge("final", END)
app = w.compile()

if __name__ == "__main__":
    r = app.invoke({"url": sys.argv[1]})
    print(r.get("final_score"), r.get("error", ""))
