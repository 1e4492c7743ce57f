"""The bench: a subgraph that three models pass at the same time, for one criterion."""
import os
from collections.abc import Awaitable, Callable

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

from .records import BenchInput, BenchOutput, BenchState, Opinion, Role, Vote

TEMPER: dict[Role, str] = {
    "prosecutor": (
        "You prosecute. Assume that the student cut corners until a clue shows otherwise. Look for what is missing, "
        "unsafe or only pretended. A gap that you cannot name by its clue is no gap."
    ),
    "advocate": (
        "You plead for the student. Reward effort, a sound idea in clumsy code, and a history that shows learning. "
        "Say what would be unfair in a low mark."
    ),
    "engineer": (
        "You will have to maintain this program for three years. You do not care for effort or intent. Does it work, is "
        "it tested, can it be changed by a stranger?"
    ),
}


def asker():
    model = ChatOpenAI(model=os.environ.get("HARBOR_MODEL", "gpt-4o"), temperature=0.2, timeout=60, max_tokens=700)
    return model.with_structured_output(Vote)


def seat(role: Role) -> Callable[[BenchState], Awaitable[dict]]:
    async def sit(state: BenchState) -> dict:
        clues = "\n".join(f"[{c.key}] {'seen' if c.seen else 'NOT seen'}: {c.text}" for c in state["clues"])
        said = "\n".join(f"{o.role}: {o.vote.score}, {o.vote.argument}" for o in state["earlier"])
        question = f"Criterion: {state['criterion']}\nClues (cite their keys):\n{clues}"
        if said:
            question += f"\n\nIn the first round the bench was far apart:\n{said}\nAnswer the others, then vote again."
        vote = await asker().ainvoke([("system", TEMPER[role]), ("user", question)])
        return {"opinions": [Opinion(role=role, criterion=state["criterion"], round=state["round"], vote=vote)]}

    return sit


def build_bench():
    graph = StateGraph(BenchState, input_schema=BenchInput, output_schema=BenchOutput)
    for role in TEMPER:
        graph.add_node(role, seat(role))
        graph.add_edge(START, role)
        graph.add_edge(role, END)
    return graph.compile()
