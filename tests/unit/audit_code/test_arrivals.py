"""Values that arrive, and those that do not: each program that loses something has a twin that loses nothing."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from pmagent.actors.audit.detectors.code.flows import works
from pmagent.actors.audit.detectors.code.parse import parsed
from pmagent.actors.audit.detectors.code.reach import ReachReader
from pmagent.actors.audit.detectors.code.scopes import module_of
from pmagent.actors.audit.detectors.code.survey import survey_code
from pmagent.contracts.audit_facts import History
from tests.support.detected import source

MAIN = '\nif __name__ == "__main__":\n    run(input())\n'
HISTORY = History(total=0, shown=[], span_s=0, burst=0.0)


def lost(text: str) -> list[str]:
    """The names of values that are lost in a program."""
    program, reach = dedent(text) + MAIN, ReachReader()
    reach.take(source(program))
    reach.settle(["app/main.py"], lambda _: program.encode())
    return [one.name for one in reach.lost if one.name != "log"]


def found(text: str) -> set[str]:
    """The goals of what can run in a program."""
    content = dedent(text).encode()
    facts = survey_code([parsed("main.py", content)], ["main.py"], lambda _: content, HISTORY)
    return {one.goal for one in facts.findings if one.reached}


@pytest.mark.parametrize(("body", "names"), [
    ("text = render(x)\nreturn x", ["text"]),
    ("text = render(x)\nreturn text", []),
    ("spread = max(x) - min(x)\nwide = spread > 2\nreturn sum(x)", ["spread", "wide"]),
    ("score = rules(x)\nscore = 4 * len(x)\nreturn score", ["score"]),
    ("score = rules(x)\nscore = score * 2\nreturn score", []),
    ("score = rules(x)\nif x:\n    score = len(x)\nreturn score", []),
    ("total = start(x)\nfor one in x:\n    total += one\nreturn x", ["total"]),
    ("text = render(x)\nreturn lambda: text", []),
    ("text = render(x)\nreturn locals()", []),
    ("global text\ntext = render(x)", []),
    ("_ = render(x)\nname = 'constant'", []),
    ("wanted = render(x)\nlog.info(wanted)\nreturn x", []),
])
def test_variables_that_nothing_uses(body: str, names: list[str]) -> None:
    assert lost(f"def run(x):\n    print(of(x))\n\n\ndef of(x):\n{indent(body, '    ')}\n") == names


@pytest.mark.parametrize("body", [
    "wide = spread(x) > 2\n    if wide:\n        print(x)",
    "rows = fetch(x)\n    first = rows[0]\n    first.name = x\n    rows.save()",
    "kept = []\n    seen = fetch(x)\n    kept.append(seen)\n    print(kept)",
    "limit = asyncio.Semaphore(3)\n    with limit:\n        print(x)",
    "best = max(x)\n    def tell(): print(best)\n    tell()",
    "command = parser.add_parser('go')\n    command.add_argument('x')",
])
def test_values_that_decide_or_change_something_are_used(body: str) -> None:
    assert lost(f"def run(x):\n    {body}\n") == []


def test_results_that_are_dropped_and_functions_that_do_more_than_return_one() -> None:
    rules = """
        def capped(score): return min(score, 3)
        def run(x):
            score = float(x)
            HOLE
            print(score)
    """
    assert lost(rules.replace("HOLE", "capped(score)")) == ["capped"]
    assert lost(rules.replace("HOLE", "score = capped(score)")) == []
    checked = rules.replace("return min(score, 3)", "raise ValueError(score)").replace("HOLE", "capped(score)")
    assert lost(checked) == []


STATE = """
    import logging
    from typing import TypedDict
    from langgraph.graph import END, START, StateGraph
    log = logging.getLogger()
    class State(TypedDict):
        topic: str
        ranking: list
        winner: str
    def rank(state: State): return {"ranking": sorted(state["topic"])}
    def choose(state: State):
        HOLE
    def run(x):
        graph = StateGraph(State)
        graph.add_node("rank", rank)
        graph.add_node("choose", choose)
        graph.add_edge(START, "rank")
        graph.add_edge("rank", "choose")
        graph.add_edge("choose", END)
        end = graph.compile().invoke({"topic": x})
        print(END)
"""


@pytest.mark.parametrize(("choose", "printed", "names"), [
    ('return {"winner": state["ranking"][0]}', 'end["winner"]', []),
    ('return {"winner": state["topic"]}', 'end["winner"]', ["ranking"]),
    ('return {"winner": state["topic"]}', "end", []),
    ('log.info(state["ranking"])\n        return {"winner": state["topic"]}', 'end["winner"]', ["ranking"]),
    ('return {"winner": state["topic"] if state["ranking"] else ""}', 'end["winner"]', []),
])
def test_keys_of_a_state_that_nobody_takes(choose: str, printed: str, names: list[str]) -> None:
    assert lost(STATE.replace("HOLE", choose).replace("print(END)", f"print({printed})")) == names


@pytest.mark.parametrize(("body", "forgets"), [
    ("return new or old or []", True),
    ("return new", True),
    ("return old + new", False),
    ("return [*old, *new]", False),
    ("after = dict(old)\n    after.update(new)\n    return after", False),
    ("old.extend(new)\n    return old", False),
])
def test_a_reducer_that_forgets_joins_nothing(body: str, forgets: bool) -> None:
    program = f"""
from typing import Annotated, TypedDict
from langgraph.graph import END, START, StateGraph
def joined(old, new):
    {body}
class State(TypedDict):
    notes: Annotated[list[str], joined]
def left(state: State): return {{"notes": ["left"]}}
def right(state: State): return {{"notes": ["right"]}}
graph = StateGraph(State)
graph.add_node(left)
graph.add_node(right)
graph.add_edge(START, "left")
graph.add_edge(START, "right")
graph.add_edge(["left", "right"], END)
if __name__ == "__main__":
    print(graph.compile().invoke({{}})["notes"])
"""
    assert ("state.parallel_writes" in found(program)) is forgets


@pytest.mark.parametrize(("edges", "unasked"), [
    ('("draft", "review"), ("review", "send")', False),
    ('("draft", "review"), ("draft", "send"), ("review", "send")', True),
])
def test_no_way_leads_past_who_asks_to_what_sends(edges: str, unasked: bool) -> None:
    program = f"""
import smtplib
from typing import TypedDict
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
class State(TypedDict):
    text: str
def mail(text): smtplib.SMTP("mail").send_message(text)
def draft(state: State): return {{"text": input()}}
def review(state: State): return {{"text": interrupt(state["text"])}}
def send(state: State): mail(state["text"])
graph = StateGraph(State)
for node in (draft, review, send):
    graph.add_node(node.__name__, node)
for one, other in ({edges}, (START, "draft"), ("send", END)):
    graph.add_edge(one, other)
if __name__ == "__main__":
    graph.compile().invoke({{}})
""".replace("return {\"text\": input()}", 'return {"text": "dear"}')
    assert ("agent.unasked" in found(program)) is unasked


def test_an_approval_by_its_name_asks_somebody() -> None:
    program = """
        import logging
        from langgraph.graph import START, StateGraph
        log = logging.getLogger()
        def human_review(state):
            HOLE
            return {"approved": True}
        graph = StateGraph(dict)
        graph.add_node(human_review)
        graph.add_edge(START, "human_review")
        if __name__ == "__main__": graph.compile().invoke({})
    """
    assert "agent.approval" not in found(program.replace("HOLE", "log.info(state)"))
    assert "agent.approval" in found(program.replace("HOLE", "desk.wait(state)"))


def test_each_call_of_a_long_chain_is_read_once_and_a_deep_expression_by_its_names() -> None:
    program = f"def f(g, x):\n    g{'.add_node(x)' * 30}\n    return {'-(' * 60}x{')' * 60}\n"
    module = module_of(source(program))
    assert module is not None
    first = next(works(module))
    assert len(first.calls) == 30
    assert (first.given("x"), first.result) in first.flows
