"""The cleaning as a graph: profile, propose, try, judge, ask, write."""
from __future__ import annotations

import os
from functools import cache
from typing import Literal

from langchain_core.exceptions import OutputParserException
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from pydantic import ValidationError

from . import rules, table
from .model import Cleaning, Fault, Proposal

TRIES = 3
SYSTEM = (
    "You clean tables of a survey. For each column that breaks a rule give a Python expression over the DataFrame df "
    "(all columns are strings, pd is pandas) that gives the cleaned column. Dates become YYYY-MM-DD. Do not invent "
    "values: what cannot be read stays empty."
)


@cache
def proposer():
    model = ChatOpenAI(
        model=os.environ.get("TIDYTABLE_MODEL", "gpt-4o"), temperature=0, timeout=60, max_tokens=2000, max_retries=2,
    )
    return model.with_structured_output(Proposal)


def told(faults: list[Fault]) -> str:
    return "\n".join(f"{one.column} {one.rule} in {one.rows} rows, as {', '.join(one.examples)}" for one in faults)


def look(state: Cleaning) -> Command[Literal["propose", "publish", "__end__"]]:
    try:
        frame = table.read(state.source)
    except table.TableError as error:
        return Command(update={"outcome": "unreadable", "log": [str(error)]}, goto=END)
    faults = rules.check(frame, state.columns)
    if not faults:
        return Command(update={"proposal": Proposal(changes=[]), "log": ["nothing to clean"]}, goto="publish")
    return Command(update={"profile": table.profile(frame), "faults": faults}, goto="propose")


def propose(state: Cleaning) -> dict:
    talk = [("system", SYSTEM), ("human", f"Profile:\n{state.profile}\n\nBroken rules:\n{told(state.faults)}")]
    if state.trial:
        talk.append(("human", f"Your last proposal did not work: {state.trial}"))
    try:
        return {"proposal": proposer().invoke(talk), "tries": state.tries + 1}
    except (ValidationError, OutputParserException) as error:
        return {"proposal": None, "tries": state.tries + 1, "trial": str(error)[:400]}


def attempt(state: Cleaning) -> Command[Literal["propose", "ask", "give_up"]]:
    """Tries the proposal on a copy."""
    trouble = state.trial
    if state.proposal is not None:
        try:
            before = table.read(state.source)
            after = table.apply(before, state.proposal.changes)
            left = rules.check(after, state.columns) + rules.lost(before, after, state.columns)
            if not left:
                return Command(update={"faults": [], "trial": ""}, goto="ask")
            trouble = told(left)
        except table.TableError as error:
            trouble = str(error)
    again = state.tries < TRIES
    return Command(update={"trial": trouble, "log": [f"try {state.tries}: {trouble}"]}, goto="propose" if again else "give_up")


def ask(state: Cleaning) -> Command[Literal["publish", "__end__"]]:
    answer = interrupt({"target": state.target, "changes": [one.model_dump() for one in state.proposal.changes]})
    if answer != "yes":
        return Command(update={"outcome": "refused", "log": ["refused by the user"]}, goto=END)
    return Command(goto="publish")


def publish(state: Cleaning) -> dict:
    try:
        done = table.apply(table.read(state.source), state.proposal.changes)
        table.write(done, state.target, state.source)
    except (table.TableError, OSError) as error:
        return {"outcome": "not clean", "log": [str(error)]}
    return {"outcome": "written", "log": [f"{len(done)} rows written to {state.target}"]}


def give_up(state: Cleaning) -> dict:
    return {"outcome": "not clean", "log": [f"given up after {state.tries} tries"]}


def build(checkpointer):
    graph = StateGraph(Cleaning)
    graph.add_node("look", look)
    graph.add_node("propose", propose)
    graph.add_node("attempt", attempt)
    graph.add_node("ask", ask)
    graph.add_node("publish", publish)
    graph.add_node("give_up", give_up)
    graph.add_edge(START, "look")
    graph.add_edge("propose", "attempt")
    graph.add_edge("publish", END)
    graph.add_edge("give_up", END)
    return graph.compile(checkpointer=checkpointer)
