from langgraph.graph import StateGraph, END
from labelers import label_a, label_b, label_c
from agree import majority, confidence, ask_human

graph = StateGraph(dict)
graph.add_node("a", label_a)
graph.add_node("b", label_b)
graph.add_node("c", label_c)
graph.add_node("majority", majority)
graph.add_node("confidence", confidence)
graph.add_node("ask_human", ask_human)
graph.set_entry_point("a")
graph.add_edge("a", "b")
graph.add_edge("b", "c")
graph.add_edge("c", "majority")
graph.add_edge("majority", "confidence")
graph.add_edge("confidence", END)
graph = graph.compile()
