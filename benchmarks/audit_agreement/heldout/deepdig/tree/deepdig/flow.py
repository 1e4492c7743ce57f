import os

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy, Send

from .search import search
from .types import Critique, Dig, Plan, Research

MAX_ROUNDS = 3


def model():
    return ChatOpenAI(model=os.getenv("DEEPDIG_MODEL", "gpt-4o-mini"), timeout=60)


async def plan(state: Research):
    planner = model().with_structured_output(Plan)
    missing = state["critique"].missing if state.get("critique") else []
    answer = await planner.ainvoke(
        [("system", "Split the question into subquestions that can be searched separately."),
         ("human", state["question"] + ("\nStill missing: " + "; ".join(missing) if missing else ""))])
    return {"plan": answer.subquestions, "round": state["round"] + 1}


def send_diggers(state: Research):
    return [Send("dig", Dig(subquestion=q, notes=state["notes"])) for q in state["plan"]]


async def dig(job: Dig):
    return {"snippets": search(job["notes"], job["subquestion"])}


async def write(state: Research):
    if not state.get("snippets"):
        return {"article": f"# {state['question']}\n\nThe notes say nothing about it.\n"}
    sources = "\n".join(f"[{i}] {s.source}: {s.text}" for i, s in enumerate(state["snippets"], 1))
    reply = await model().ainvoke(
        [("system", "Answer from these sources only, cite them as [n]. Say what they leave open."),
         ("human", f"{state['question']}\n\n{sources}")])
    listing = "\n".join(f"{i}. {s.source}" for i, s in enumerate(state["snippets"], 1))
    return {"article": f"# {state['question']}\n\n{reply.content}\n\n## Sources\n{listing}\n"}


async def criticise(state: Research):
    critic = model().with_structured_output(Critique)
    return {"critique": await critic.ainvoke([("system", "You are a tough editor. What is missing?"), ("human", state["article"])])}


def enough(state: Research) -> str:
    if state["critique"].good_enough or state["round"] >= MAX_ROUNDS:
        return END
    return "plan"


def make_flow():
    retry = RetryPolicy(max_attempts=3)
    g = StateGraph(Research)
    g.add_node("plan", plan, retry_policy=retry)
    g.add_node("dig", dig)
    g.add_node("write", write, retry_policy=retry)
    g.add_node("criticise", criticise, retry_policy=retry)
    g.add_edge(START, "plan")
    g.add_conditional_edges("plan", send_diggers, ["dig"])
    g.add_edge("dig", "write")
    g.add_edge("write", "criticise")
    g.add_conditional_edges("criticise", enough, ["plan", END])
    return g.compile()
