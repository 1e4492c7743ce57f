import os

import httpx
from langchain_core.messages import AIMessage

from .calendar import Calendar
from .schema import CallState, Urgency


def ask_back(state: CallState) -> dict:
    return {"messages": [AIMessage(state.get("question") or "Can you tell me more?")]}


def emergency(state: CallState) -> dict:
    number = os.environ["VETLINE_ONCALL"]
    httpx.post(f"https://pbx.local/transfer/{number}", timeout=10).raise_for_status()
    return {"outcome": f"connected to {number}"}


def find_slot(state: CallState) -> dict:
    calendar = Calendar()
    days = {"today": 0, "this_week": 5}.get(state["triage_level"], 5)
    return {"slot": calendar.first_free(days)}


def confirm(state: CallState) -> dict:
    """The caller has to agree to the slot."""
    message = AIMessage(f"I can offer you {state['slot']}. Is that all right?")
    return {"messages": [message], "confirmed": True}


def book(state: CallState) -> dict:
    calendar = Calendar()
    calendar.reserve(state["slot"], state["species"])
    return {"outcome": f"booked {state['slot']}"}


def advise(state: CallState) -> dict:
    return {"outcome": "Please observe your animal and call again if it gets worse."}


def route(state: CallState) -> str:
    urgency = state.get("urgency", Urgency.THIS_WEEK)
    if urgency == Urgency.EMERGENCY:
        return "emergency"
    if urgency == Urgency.ADVICE:
        return "advise"
    if state.get("question"):
        return "ask_back"
    return "find_slot"


def after_confirm(state: CallState) -> str:
    return "book" if state.get("confirmed") else "find_slot"
