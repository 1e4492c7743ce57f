"""Classify every position, show them, correct, declare."""

from __future__ import annotations

import re
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from . import choose, customs, tariff
from .records import Branch, Desk, Line

ROUNDS = 5
CORRECTION = re.compile(r"(\d{1,3})\s*=\s*(\d{10})")


def spread(desk: Desk) -> list[Send]:
    return [Send("classify", {"position": one}) for one in desk["invoice"].positions]


def classify(branch: Branch) -> dict[str, Any]:
    position = branch["position"]
    found = tariff.candidates(position.text)
    if not found:
        return {"lines": [Line(position=position, code="", duty=0, reason="no candidate in the tariff", sure=False)]}
    choice = choose.choose(position, found)
    duty = next(one.duty for one in found if one.code == choice.code)
    return {"lines": [Line(position=position, code=choice.code, duty=duty, reason=choice.reason, sure=choice.sure)]}


def shown(desk: Desk) -> list[dict[str, Any]]:
    rows = []
    for line in sorted(desk["lines"], key=lambda one: (one.sure, one.position.number)):
        code = desk.get("corrections", {}).get(line.position.number, line.code)
        rows.append({"position": line.position.number, "text": line.position.text, "code": code,
                     "duty": str(tariff.duty_of(code) or 0), "reason": line.reason, "sure": line.sure})
    return rows


def review(desk: Desk) -> Command[Literal["review", "declare", "stop"]]:
    """The officer's word. "ok" declares, "2=8471300000" corrects, "no" stops."""
    if desk.get("rounds", 0) >= ROUNDS:
        return Command(goto="stop", update={"problem": "too many rounds of correction"})
    answer = str(interrupt({"lines": shown(desk)})).strip()
    rounds = desk.get("rounds", 0) + 1
    if answer.lower() == "no":
        return Command(goto="stop", update={"problem": "the officer stopped it"})
    corrections = dict(desk.get("corrections", {}))
    numbers = {one.number for one in desk["invoice"].positions}
    for position, code in CORRECTION.findall(answer):
        if int(position) in numbers and tariff.duty_of(code) is not None:
            corrections[int(position)] = code
    empty = [one.position.number for one in desk["lines"]
             if not corrections.get(one.position.number, one.code)]
    if answer.lower() == "ok" and not empty:
        return Command(goto="declare")
    return Command(goto="review", update={"corrections": corrections, "rounds": rounds})


def declare(desk: Desk) -> Command[Literal["stop", "__end__"]]:
    try:
        reference = customs.submit(desk["invoice"], sorted(desk["lines"], key=lambda one: one.position.number))
    except customs.CustomsError as error:
        return Command(goto="stop", update={"problem": str(error)})
    return Command(goto=END, update={"reference": reference})


def stop(desk: Desk) -> dict[str, Any]:
    with (tariff.home() / "stopped.log").open("a", encoding="utf-8") as log:
        log.write(f"{desk['invoice'].number}\t{desk['problem']}\n")
    return {}


def build(checkpointer: Any) -> Any:
    graph = StateGraph(Desk)
    graph.add_node("classify", classify)
    graph.add_node("review", review)
    graph.add_node("declare", declare)
    graph.add_node("stop", stop)
    graph.add_conditional_edges(START, spread, ["classify"])
    graph.add_edge("classify", "review")
    graph.add_edge("stop", END)
    return graph.compile(checkpointer=checkpointer)
