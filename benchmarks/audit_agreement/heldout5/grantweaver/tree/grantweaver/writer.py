"""Subgraph: one section, written and reviewed."""

from langgraph.graph import END, START, StateGraph

from .llm import model
from .schemas import Drafted, DraftState, Review, Section

MAX_ROUNDS = 3


def write(state: DraftState):
    requirement = state["requirement"]
    prompt = (
        f"You write an application to {state['call'].funder}, programme {state['call'].programme}.\n"
        f"Section: {requirement.heading}\nQuestion: {requirement.question}\n"
        f"At most {requirement.max_words} words. Use only facts of this profile:\n\n{state['profile']}"
    )
    return {"text": model.invoke(prompt).content, "rounds": state.get("rounds", 0) + 1}


def review(state: DraftState):
    requirement = state["requirement"]
    words = len(state["text"].split())
    if words > requirement.max_words:
        return {"review": Review(ok=False, complaints=[f"{words} words instead of {requirement.max_words}"])}
    found = model.with_structured_output(Review).invoke(
        "You are on the jury. Is the question answered, concretely and without facts that the profile lacks?\n"
        f"Question: {requirement.question}\nProfile: {state['profile']}\nAnswer: {state['text']}"
    )
    return {"review": found}


def again(state: DraftState):
    if state["review"].ok or state["rounds"] >= MAX_ROUNDS:
        return "finish"
    return "write"


def finish(state: DraftState):
    return {"sections": [Section(heading=state["requirement"].heading, text=state["text"])]}


builder = StateGraph(DraftState, output_schema=Drafted)
builder.add_node("write", write)
builder.add_node("review", review)
builder.add_node("finish", finish)
builder.add_edge(START, "write")
builder.add_edge("write", "review")
builder.add_conditional_edges("review", again, ["write", "finish"])
builder.add_edge("finish", END)
writer_graph = builder.compile()
