"""The way from a wish to a booking. Each node says where it goes next."""

from __future__ import annotations

import json
import os
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from . import rail, rank, wish
from .state import Journey

QUESTIONS = 4
WIDER = 2
"""Days that a journey may be later than wished, if nothing is free."""


def home() -> Path:
    folder = Path(os.environ.get("FERNWEH_HOME", Path.home() / ".fernweh"))
    (folder / "bookings").mkdir(parents=True, exist_ok=True)
    return folder


def read(journey: Journey) -> Command[Literal["ask", "search", "give_up"]]:
    try:
        read_wish = wish.read(journey["texts"], date.today())
    except wish.Unreadable as error:
        return Command(goto="give_up", update={"problem": str(error)})
    return Command(goto="ask" if read_wish.missing() else "search", update={"wish": read_wish, "widened": 0})


def ask(journey: Journey) -> Command[Literal["read", "give_up"]]:
    asked = journey.get("questions", 0)
    if asked >= QUESTIONS:
        return Command(goto="give_up", update={"problem": "the wish stays unclear"})
    answer = interrupt({"question": "Please tell me: " + ", ".join(journey["wish"].missing())})
    return Command(goto="read", update={"texts": [str(answer)], "questions": asked + 1})


def search(journey: Journey) -> Command[Literal["search", "offer", "give_up"]]:
    wanted, widened = journey["wish"], journey["widened"]
    try:
        found = rail.search(wanted.origin, wanted.destination, wanted.day + timedelta(days=widened))
    except rail.RailError as error:
        return Command(goto="give_up", update={"problem": str(error)})
    options = rank.best(found, wanted)
    if options:
        return Command(goto="offer", update={"options": options})
    if widened < WIDER:
        return Command(goto="search", update={"widened": widened + 1})
    return Command(goto="give_up", update={"problem": f"nothing fits from {wanted.day} on"})


def offer(journey: Journey) -> Command[Literal["offer", "read", "book", "give_up"]]:
    """The customer's number is the yes to a booking; other words change the wish."""
    asked = journey.get("questions", 0)
    if asked >= QUESTIONS:
        return Command(goto="give_up", update={"problem": "no option was chosen"})
    answer = str(interrupt({"options": [one.model_dump(mode="json") for one in journey["options"]]})).strip()
    if answer.isdecimal():
        if 1 <= int(answer) <= len(journey["options"]):
            return Command(goto="book", update={"chosen": journey["options"][int(answer) - 1]})
        return Command(goto="offer", update={"questions": asked + 1})
    if answer.lower() in ("no", "nothing", "stop"):
        return Command(goto="give_up", update={"problem": "the customer wants none of the options"})
    return Command(goto="read", update={"texts": [answer], "questions": asked + 1})


def book(journey: Journey) -> Command[Literal["keep", "give_up"]]:
    try:
        booking = rail.book(journey["chosen"], journey["wish"].travellers, journey["number"])
    except rail.RailError as error:
        return Command(goto="give_up", update={"problem": str(error)})
    return Command(goto="keep", update={"booking": booking})


def keep(journey: Journey) -> dict[str, Any]:
    target = home() / "bookings" / f"{journey['number']}.json"
    target.write_text(json.dumps(journey["booking"].model_dump(mode="json"), indent=2), "utf-8")
    return {}


def give_up(journey: Journey) -> dict[str, Any]:
    with (home() / "given_up.log").open("a", encoding="utf-8") as log:
        log.write(f"{date.today()} {journey['number']} {journey['problem']}\n")
    return {}


def build(checkpointer: Any) -> Any:
    graph = StateGraph(Journey)
    for node in (read, ask, search, offer, book, keep, give_up):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "read")
    graph.add_edge("keep", END)
    graph.add_edge("give_up", END)
    return graph.compile(checkpointer=checkpointer)
