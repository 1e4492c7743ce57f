"""The whole: read the call, write each section side by side, put them together."""

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from .reader import reader_graph
from .schemas import GrantState
from .writer import writer_graph


def plan(state: GrantState):
    if not state.get("call"):
        return "report_problems"
    return [
        Send("write_section", {"call": state["call"], "profile": state["profile"], "requirement": requirement})
        for requirement in state["call"].requirements
    ]


def report_problems(state: GrantState):
    return {"application": "# No application\n\n" + "\n".join(f"- {problem}" for problem in state["problems"])}


def assemble(state: GrantState):
    call = state["call"]
    lines = [f"# {call.programme}", "", f"To: {call.funder}"]
    if call.deadline:
        lines.append(f"Deadline: {call.deadline}")
    for section in state["sections"]:
        lines += ["", f"## {section.heading}", "", section.text]
    return {"application": "\n".join(lines)}


builder = StateGraph(GrantState)
builder.add_node("read_call", reader_graph)
builder.add_node("write_section", writer_graph)
builder.add_node("assemble", assemble)
builder.add_node("report_problems", report_problems)
builder.add_edge(START, "read_call")
builder.add_conditional_edges("read_call", plan, ["write_section", "report_problems"])
builder.add_edge("write_section", "assemble")
builder.add_edge("assemble", END)
builder.add_edge("report_problems", END)
app = builder.compile()
