import logging
from typing import Literal

from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END
from langgraph.types import Command, interrupt

from . import orders
from .settings import settings
from .state import Desk, Intent

log = logging.getLogger("deskhelp")


def llm():
    return ChatOpenAI(model=settings.model, temperature=0, timeout=30, max_retries=2)


def sort_out(state: Desk) -> Command[Literal["answer", "look_up", "human"]]:
    """Find out what the customer wants and go there."""
    asker = llm().with_structured_output(Intent)
    try:
        intent = Intent.model_validate(asker.invoke(state["messages"]))
    except ValueError:
        log.warning("no intent, handing over")
        return Command(goto="human", update={"needs_human": True})
    if intent.kind == "angry":
        return Command(goto="human", update={"intent": intent, "needs_human": True})
    if intent.kind == "question" or intent.order_number is None:
        return Command(goto="answer", update={"intent": intent})
    return Command(goto="look_up", update={"intent": intent})


def look_up(state: Desk) -> dict:
    number = state["intent"].order_number
    try:
        order = orders.find(number)
    except orders.UnknownOrder as exc:
        return {"order_text": str(exc), "lookup_failed": True}
    return {"order_text": f"order {order.number}: {order.total:.2f} EUR, {order.status}"}


def after_look_up(state: Desk) -> str:
    # neither key is a channel, they never arrive here
    if state.get("lookup_failed") or state.get("needs_human"):
        return "human"
    if state["intent"].kind == "refund":
        return "refund"
    return "answer"


def refund(state: Desk) -> dict:
    order = orders.find(state["intent"].order_number)
    if order.total > settings.max_refund:
        return {"messages": [AIMessage("That is more than I may refund. A colleague will write to you.")]}
    decision = interrupt({"order": order.number, "total": order.total, "question": "Refund this order?"})
    if decision != "yes":
        return {"messages": [AIMessage("The office has declined the refund.")]}
    orders.refund(order.number)
    return {"messages": [AIMessage(f"Order {order.number} is refunded.")]}


def answer(state: Desk) -> dict:
    facts = state.get("order_text", "")
    reply = llm().invoke([("system", f"You help customers of a bicycle shop. Be brief. {facts}"), *state["messages"]])
    return {"messages": [reply], "rounds": state.get("rounds", 0) + 1}


def human(state: Desk) -> dict:
    return {"messages": [AIMessage("I will fetch a colleague.")]}
