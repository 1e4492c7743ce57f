import re
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph
from pydantic import BaseModel, Field

from .index import Index


class Hit(TypedDict):
    file: str
    page: int
    text: str


class Answer(BaseModel):
    """An answer that names its pages."""

    text: str
    pages: list[int] = Field(description="numbers of the passages used")
    confident: bool


class Stack(TypedDict, total=False):
    folder: str
    question: str
    hits: list[Hit]
    answer: str
    grounded: bool


llm = ChatOpenAI(model="gpt-4o-mini", temperature=0)
answerer = llm.with_structured_output(Answer)

SYSTEM = """Answer the question from the numbered passages only. If they do not contain the answer, say so.
End with the numbers of the passages you used, like [1][3]."""


def retrieve(state: Stack) -> Stack:
    index = Index()
    index.add_folder(state["folder"])
    hits = [Hit(file=p.file, page=p.number, text=p.text[:2000]) for _, p in index.search(state["question"])]
    return {"hits": hits}


def generate(state: Stack) -> Stack:
    if not state["hits"]:
        return {"answer": "Nothing in these papers matches the question."}
    passages = "\n\n".join(f"[{i}] {h['text']}" for i, h in enumerate(state["hits"], 1))
    reply = llm.invoke([("system", SYSTEM), ("human", f"{passages}\n\nQuestion: {state['question']}")])
    return {"answer": reply.content}


def check(state: Stack) -> Stack:
    """An answer without a valid passage number is not grounded."""
    numbers = [int(n) for n in re.findall(r"\[(\d+)\]", state["answer"])]
    return {"grounded": bool(numbers) and all(0 < n <= len(state["hits"]) for n in numbers)}


pipeline = StateGraph(Stack).add_sequence([retrieve, generate, check]).add_edge(START, "retrieve").compile()
