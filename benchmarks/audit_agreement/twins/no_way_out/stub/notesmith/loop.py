from typing import Literal, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

MOST = 4


class Note(BaseModel):
    title: str
    note: str = Field(min_length=10)


class Verdict(BaseModel):
    decision: Literal["accept", "revise"]
    remarks: str = ""


class Work(TypedDict, total=False):
    changes: str
    title: str
    note: str
    remarks: str
    decision: str
    round: int


def asking(schema):
    return ChatOpenAI(model="gpt-4o-mini", timeout=60).with_structured_output(schema).with_retry(stop_after_attempt=3)


def write(work: Work) -> Work:
    remarks = work.get("remarks", "none yet")
    note = asking(Note).invoke([("system", f"Write a release note for users. Remarks of the editor: {remarks}"), ("human", work["changes"])])
    return {"title": note.title, "note": note.note, "round": work["round"] + 1}


def criticise(work: Work) -> Work:
    verdict = asking(Verdict).invoke([("system", "You edit release notes. Is every change told truly, briefly?"),
                                      ("human", f"{work['changes']}\n---\n{work['note']}")])
    return {"decision": verdict.decision, "remarks": verdict.remarks}


def next_step(work: Work) -> str:
    if work["decision"] == "accept" or work["round"] >= MOST:
        return "criticise"
    return "write"


g = StateGraph(Work)
g.add_node("write", write)
g.add_node("criticise", criticise)
g.add_edge(START, "write")
g.add_edge("write", "criticise")
g.add_conditional_edges("criticise", next_step)
graph = g.compile()
