"""The course of a case."""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from . import clients, post, reading, rules
from .records import Case, Remark, Review

ROUNDS = 3


def after_reading(case: Case) -> list[str]:
    return ["refuse"] if case.get("refused") else ["conflicts", "terms", "precedents"]


def conflicts(case: Case) -> Case:
    try:
        references = clients.represented(case["facts"].landlord)
    except clients.Unavailable as error:
        return {"remarks": [Remark(source="conflicts", text=f"not excluded: {error}", blocks=True)]}
    if references:
        text = f"the clinic represents the landlord in {', '.join(references)}"
        return {"remarks": [Remark(source="conflicts", text=text, blocks=True)]}
    return {"remarks": [Remark(source="conflicts", text="none found")]}


def terms(case: Case) -> Case:
    found = rules.terms(case["facts"])
    text = "; ".join(f"{one.what} until {one.ends:%d.%m.%Y} ({one.rule})" for one in found) or "no term known"
    return {"terms": found, "remarks": [Remark(source="terms", text=text)]}


def precedents(case: Case) -> Case:
    try:
        found = clients.precedents(case["facts"].area)
    except clients.Unavailable as error:
        return {"remarks": [Remark(source="precedents", text=f"not looked up: {error}")]}
    return {"remarks": [Remark(source="precedents", text=one) for one in found]}


def weigh(case: Case) -> Case:
    blocking = [one.text for one in case["remarks"] if one.blocks]
    return {"refused": "; ".join(blocking)} if blocking else {}


def after_weighing(case: Case) -> str:
    return "refuse" if case.get("refused") else "draft"


def draft(case: Case) -> Case:
    change = f"\nThe lawyer asks for this change: {case['review'].change}" if case.get("review") else ""
    remarks = "\n".join(f"{one.source}: {one.text}" for one in case["remarks"])
    text = reading.model().invoke(
        "Draft a letter of at most 200 words to a tenant. Name each term with its date, promise nothing, and name the "
        f"documents to bring.\nFacts: {case['facts'].model_dump_json()}\n{remarks}{change}"
    ).text()
    return {"draft": text, "rounds": case.get("rounds", 0) + 1}


def review(case: Case) -> Case:
    """A lawyer reads the draft. Nothing leaves the clinic unsigned."""
    answer = interrupt({"number": case["number"], "draft": case["draft"], "terms": [str(t) for t in case["terms"]]})
    return {"review": Review.model_validate(answer)}


def after_review(case: Case) -> str:
    if case["review"].signed:
        return "dispatch"
    return "draft" if case["rounds"] < ROUNDS else "refuse"


def dispatch(case: Case) -> Case:
    try:
        post.send(case["mail"], f"Your request, number {case['number']}", case["draft"])
    except post.NotSent as error:
        return {"refused": f"signed, but not sent: {error}"}
    return {"sent": [case["mail"]]}


def refuse(case: Case) -> Case:
    """The desk calls the person instead."""
    return {"draft": f"Please call the tenant. {case.get('refused', 'No draft was signed.')}"}


def build(checkpointer: Any) -> Any:
    graph = StateGraph(Case)
    graph.add_node("read", reading.build())
    for node in (conflicts, terms, precedents, weigh, draft, review, dispatch, refuse):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "read")
    graph.add_conditional_edges("read", after_reading, ["conflicts", "terms", "precedents", "refuse"])
    graph.add_edge(["conflicts", "terms", "precedents"], "weigh")
    graph.add_conditional_edges("weigh", after_weighing, ["draft", "refuse"])
    graph.add_edge("draft", "dispatch")
    graph.add_edge("draft", "review")
    graph.add_conditional_edges("review", after_review, ["dispatch", "draft", "refuse"])
    graph.add_edge("dispatch", END)
    graph.add_edge("refuse", END)
    return graph.compile(checkpointer=checkpointer)
