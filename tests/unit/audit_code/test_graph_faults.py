"""Faults of graphs: each is found, LangGraph really does what the rule says, and its sound twin has none."""

from __future__ import annotations

from textwrap import dedent
from typing import Any, NamedTuple

import pytest
from langgraph.errors import GraphRecursionError, InvalidUpdateError

from benchmarks.graph_accuracy import PROGRAMS, programs
from pmagent.actors.audit.graphs.faults import FAULTS_MAX
from tests.support.graphs import reader_of

HEAD = """
import operator
from typing import Annotated, TypedDict
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

class State(TypedDict):
    topic: str
    notes: Annotated[list, operator.add]
    score: int

def plan(state: State): return {"topic": state["topic"].strip()}
def read(state: State): return {"notes": [len(state["topic"])]}
def judge(state: State): return {"score": sum(state["notes"])}
def fail(state): return {"failed": len(state["topic"])}
g = StateGraph(State)
"""
GIVEN = {"topic": " a ", "notes": [], "score": 0}



class Twins(NamedTuple):
    """A program with a hole, and two lines for it: with the one it is sound, with the other it has a fault."""

    text: str
    sound: str
    faulty: str

    def with_fault(self) -> str:
        return self.text.replace("HOLE", self.faulty)


TWINS = {
    "unreachable-node": Twins(
        """
        for one in (plan, read, judge): g.add_node(one)
        g.add_edge(START, "plan").add_edge("plan", "read")
        HOLE
        """,
        'g.add_edge("read", "judge")', 'g.add_edge("read", END)',
    ),
    "endless-cycle": Twins(
        """
        def more(state): return "on" if len(state["notes"]) < 2 else "over"
        g.add_node(plan).add_node(read).add_edge(START, "plan").add_edge("plan", "read")
        HOLE
        """,
        'g.add_conditional_edges("read", more, {"on": "plan", "over": END})', 'g.add_edge("read", "plan")',
    ),
    "stuck-choice": Twins(
        """
        def grow(state: State): HOLE
        def more(state: State): return "on" if state["score"] < 2 else "over"
        g.add_node(grow).add_node(read).add_edge(START, "read").add_edge("read", "grow")
        g.add_conditional_edges("grow", more, {"on": "read", "over": END})
        """,
        'return {"score": state["score"] + 1}', 'return {"topic": state["topic"] + "!"}',
    ),
    "hollow-graph": Twins(
        """
        class Note(TypedDict): text: str
        def work(state: State): return {'notes': [Note(text='all is well')]}
        def judge(state: State): return {'score': HOLE}
        g.add_node(work).add_node(judge).add_node(read).add_edge(START, 'work').add_edge('work', 'judge')
        g.add_edge('judge', 'read')
        """,
        "len(state['notes'])", "5",
    ),
    "unmapped-route": Twins(
        """
        def more(state): return "go" if state["score"] else "stop"
        g.add_node(plan).add_node(read).add_edge(START, "plan")
        HOLE
        """,
        'g.add_conditional_edges("plan", more, {"go": "read", "stop": END})',
        'g.add_conditional_edges("plan", more, {"go": "read", "halt": END})',
    ),
    "undeclared-read": Twins(
        """
        HOLE
        for one in (fail, plan, read): g.add_node(one)
        g.add_edge(START, "fail").add_edge("fail", "plan").add_conditional_edges("plan", route)
        """,
        "def route(state): return END if state.get('score') else 'read'",
        "def route(state): return END if state.get('failed') else 'read'",
    ),
    "undeclared-write": Twins(
        """
        HOLE
        g.add_node(keep).add_edge(START, "keep")
        """,
        "def keep(state): return {'score': len(state)}", "def keep(state): return {'verdict': len(state)}",
    ),
    "parallel-write": Twins(
        """
        HOLE
        for one in (plan, judge, other): g.add_node(one)
        g.add_edge(START, "plan").add_edge("plan", "judge").add_edge("plan", "other")
        """,
        "def other(state: State): return {'notes': [state['score']]}",
        "def other(state: State): return {'score': state['score']}",
    ),
    "unknown-node": Twins(
        'g.add_node(plan).add_node(read).add_edge(START, "plan").add_edge("plan", HOLE)', '"read"', '"reed"'
    ),
    "no-entry": Twins("g.add_node(plan).add_edge(HOLE)", 'START, "plan"', '"plan", END'),
    "empty-node": Twins(
        "def work(state: State): HOLE\ng.add_node(work).add_edge(START, 'work')",
        "return {'score': state['score'] + 1}", "pass",
    ),
    "constant-node": Twins(
        "def work(state: State): return {'score': HOLE}\ng.add_node(work).add_edge(START, 'work')",
        "len(state['topic'])", "5",
    ),
}  # fmt: skip


def rules(body: str) -> list[str]:
    return [one.rule for one in reader_of({"program.py": HEAD + dedent(body) + "\napp = g.compile()\n"}).faults()]


def built(body: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(HEAD + dedent(body), "program.py", "exec", dont_inherit=True), names)
    return names["g"]


def steps(body: str) -> dict[str, Any]:
    """The update that each node of a program returns when it runs."""
    found: dict[str, Any] = {}
    for step in built(body).compile().stream(GIVEN, {"recursion_limit": 8}, stream_mode="updates"):
        found.update(step)
    return found


def test_each_fault_is_found_and_its_sound_twin_has_none() -> None:
    for rule, twins in TWINS.items():
        beside = {"undeclared-write"} | ({"constant-node"} if rule == "hollow-graph" else set())
        assert set(rules(twins.text.replace("HOLE", twins.sound))) - beside == set(), rule
        assert set(rules(twins.with_fault())) - beside == {rule} - beside
    assert rules(TWINS["undeclared-write"].with_fault()) == ["undeclared-write"]


def test_langgraph_does_what_the_rules_say() -> None:
    faulty = {rule: twins.with_fault() for rule, twins in TWINS.items()}
    assert "judge" not in steps(faulty["unreachable-node"])
    for rule in ("endless-cycle", "stuck-choice"):
        with pytest.raises(GraphRecursionError):
            steps(faulty[rule])
    with pytest.raises(KeyError, match="stop"):
        steps(faulty["unmapped-route"])
    with pytest.raises(InvalidUpdateError):
        steps(faulty["parallel-write"])
    for rule in ("unknown-node", "no-entry"):
        with pytest.raises(ValueError, match=r"reed|entrypoint"):
            built(faulty[rule]).compile()
    assert "verdict" not in built(faulty["undeclared-write"]).compile().invoke(GIVEN)
    assert "read" in steps(faulty["undeclared-read"])  # although fail has written "failed"
    for twins in TWINS.values():
        steps(twins.text.replace("HOLE", twins.sound))


def test_a_route_sees_what_its_own_node_has_written() -> None:
    body = """
        def look(state): return {"failed": len(state)}
        def route(state): return END if state.get("failed") else "read"
        g.add_node(look).add_node(read).add_edge(START, "look").add_conditional_edges("look", route)
        """
    assert "read" not in steps(body)
    assert rules(body) == ["undeclared-write"]


@pytest.mark.parametrize("body", [
    pytest.param(
        "def ask(state: State): return {'topic': interrupt('what?')}\n"
        "g.add_node(ask).add_node(read).add_edge(START, 'ask').add_edge('ask', 'read').add_edge('read', 'ask')",
        id="a talk that waits for a person in each round",
    ),
    pytest.param(
        "def spread(state): return [Send('one', {'item': 1})]\n"
        "def one(state): return {'notes': [state['item']]}\n"
        "g.add_node(one).add_conditional_edges(START, spread)",
        id="a packet has keys of its own",
    ),
    pytest.param(
        "class Own(TypedDict):\n    draft: str\n"
        "def write(state: State) -> Own: return {'draft': state['topic']}\n"
        "def check(state: Own): return {'score': len(state['draft'])}\n"
        "g.add_node(write).add_node(check).add_edge(START, 'write').add_edge('write', 'check')",
        id="a node's own schema declares keys too",
    ),
    pytest.param(
        "import importlib\nState = importlib.import_module('elsewhere').State\ng = StateGraph(State)\n"
        "def work(state): return {'anything': state['something']}\ng.add_node(work).add_edge(START, 'work')",
        id="a state that cannot be read accuses nobody",
    ),
    pytest.param(
        "from random import choice\ng.add_node(plan).add_node(read).add_edge(START, 'plan')\n"
        "g.add_conditional_edges('plan', lambda state: choice(['read']))",
        id="a route that cannot be read may lead anywhere",
    ),
    pytest.param(
        "def sorry(state: State): return {'topic': 'sorry'}\n"
        "g.add_node(plan).add_node(sorry).add_edge(START, 'plan')\n"
        "g.add_conditional_edges('plan', lambda state: 'sorry' if state['score'] else END, ['sorry', END])",
        id="a fixed reply is the other way of a choice",
    ),
    pytest.param(
        "def gather(state): return {}\nfor one in (plan, read, gather): g.add_node(one)\n"
        "for one in ('plan', 'read'): g.add_edge(START, one).add_edge(one, 'gather')",
        id="a node where branches meet may do nothing",
    ),
])
def test_sound_programs_are_not_accused(body: str) -> None:
    assert rules(body) == []


def test_no_correct_program_of_the_accuracy_set_is_accused() -> None:
    files = {str(path.relative_to(PROGRAMS)): path.read_text() for path in PROGRAMS.rglob("*.py")}
    found = [one for one in reader_of(files).faults() if one.severity != "note"]
    assert len(programs()) >= 57
    assert found == []


def test_many_writers_are_told_once_each_and_not_in_pairs() -> None:
    nodes = "".join(f"g.add_node('n{at}', judge)\ng.add_edge(START, 'n{at}')\n" for at in range(90))
    found = [one for one in reader_of({"a.py": HEAD + nodes}).faults() if one.rule == "parallel-write"]
    assert [one.node for one in found] == [f"n{at}" for at in range(1, 90)]


def test_a_flood_of_faults_is_cut_and_says_so() -> None:
    keys = ", ".join(f"'k{at}': 1" for at in range(FAULTS_MAX + 7))
    text = f"{HEAD}\ndef all(state): return {{{keys}}}\ng.add_node(all).add_edge(START, 'all')\n"
    found = reader_of({"a.py": text}).faults()
    assert len(found) == FAULTS_MAX + 1
    assert sum("more than" in one.text for one in found) == 1
