import re
from typing import Literal

import requests
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from .agents import damage_agent, fraud_agent, policy_agent
from .config import APPROVAL_ABOVE, DB_PATH, PAYMENTS_URL, llm
from .state import ClaimState, Route

SUPERVISOR = (
    "You lead a team that settles motor claims: policy_agent, damage_agent, fraud_agent. "
    "Given the conversation, choose who works next. Each should work once. Answer FINISH when all three have answered."
)


def supervisor(state: ClaimState) -> Command[Literal["policy_agent", "damage_agent", "fraud_agent", "writer"]]:
    route = llm.with_structured_output(Route).invoke([SystemMessage(SUPERVISOR), *state["messages"]])
    goto = "writer" if route.next == "FINISH" else route.next
    return Command(goto=goto, update={"next": route.next})


def _worker(name, agent):
    def node(state: ClaimState) -> Command[Literal["supervisor"]]:
        result = agent.invoke({"messages": state["messages"]})
        last = result["messages"][-1].content
        return Command(goto="supervisor", update={"messages": [HumanMessage(last, name=name)]})

    return node


def writer(state: ClaimState):
    letter = llm.invoke([
        SystemMessage(
            "Write the settlement letter to the policy holder. Subtract the deductible. "
            "The last line must be 'SETTLEMENT: <number> EUR' (0 if refused)."
        ),
        *state["messages"],
    ]).content
    m = re.search(r"SETTLEMENT:\s*([\d.,]+)", letter)
    amount = float(m.group(1).replace(",", "")) if m else 0.0
    return {"letter": letter, "amount": amount}


def approval(state: ClaimState):
    if state["amount"] <= APPROVAL_ABOVE:
        return {"approved": True}
    answer = interrupt({"letter": state["letter"], "amount": state["amount"]})
    return {"approved": str(answer).lower().startswith("y")}


def payout(state: ClaimState):
    if not state["approved"] or state["amount"] <= 0:
        return {}
    import sqlite3

    conn = sqlite3.connect(DB_PATH)
    iban = conn.execute(f"SELECT iban FROM policies WHERE number = '{state['policy_number']}'").fetchone()[0]
    conn.close()
    requests.post(f"{PAYMENTS_URL}/transfers", json={"iban": iban, "amount": state["amount"],
                                                     "text": f"Claim {state['policy_number']}"})
    return {}


def build():
    g = StateGraph(ClaimState)
    g.add_node("supervisor", supervisor)
    g.add_node("policy_agent", _worker("policy_agent", policy_agent))
    g.add_node("damage_agent", _worker("damage_agent", damage_agent))
    g.add_node("fraud_agent", _worker("fraud_agent", fraud_agent))
    g.add_node("writer", writer)
    g.add_node("approval", approval)
    g.add_node("payout", payout)
    g.add_edge(START, "supervisor")
    g.add_edge("writer", "approval")
    g.add_edge("approval", "payout")
    g.add_edge("payout", END)
    return g.compile(checkpointer=MemorySaver())
