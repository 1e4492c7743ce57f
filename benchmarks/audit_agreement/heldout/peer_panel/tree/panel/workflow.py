from langgraph.graph import StateGraph, START, END

from .chief import chief_justice, compute_variance, write_report
from .detect import clone, scan_code, scan_log
from .judges import make_judge
from .schema import PanelState

g = StateGraph(PanelState)
g.add_node("clone", clone)
g.add_node("scan_code", scan_code)
g.add_node("scan_log", scan_log)
g.add_node("gather", lambda s: {})
for r in ["Prosecutor", "Defense", "TechLead"]:
    g.add_node(r, make_judge(r))
g.add_node("compute_variance", compute_variance)
g.add_node("chief_justice", chief_justice)
g.add_node("write_report", write_report)

g.add_edge(START, "clone")
g.add_edge("clone", "scan_code")
g.add_edge("clone", "scan_log")
g.add_edge(["scan_code", "scan_log"], "gather")
g.add_edge("gather", "Prosecutor")
g.add_edge("Prosecutor", "Defense")
g.add_edge("Defense", "TechLead")
g.add_edge("TechLead", "compute_variance")
g.add_edge("compute_variance", "chief_justice")
g.add_edge("chief_justice", "write_report")
g.add_edge("write_report", END)
app = g.compile()
