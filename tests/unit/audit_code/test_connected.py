"""Code that the program reaches and uses counts; the twin with the same names, in which it does not, counts nothing."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from pmagent.actors.audit.detectors.code.parse import parsed
from pmagent.actors.audit.detectors.code.survey import survey_code
from pmagent.actors.audit.detectors.code.usage import is_stub
from pmagent.contracts.audit_facts import History

HISTORY = History(total=0, shown=[], span_s=0, burst=0.0)
COURT = '''
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel
from pathlib import Path
import operator
from typing import Annotated, TypedDict

class Opinion(BaseModel):
    score: int
    argument: str

class Court(TypedDict):
    topic: str
    opinions: Annotated[list[Opinion], operator.add]
    score: float

ATTACK = "You attack. Name the worst defect and its place, and give points unwillingly; silence is guilt."
DEFEND = "You defend. Look for effort, growth and good ideas, and explain each gap by what came first."

def ask(creed, case):
    llm = ChatOpenAI(timeout=30).with_structured_output(Opinion)
    opinion = llm.invoke([("system", creed), ("human", case["topic"])])
    return {"opinions": [opinion]}

def prosecutor(case: Court): return ask(ATTACK, case)
def defense(case: Court): return ask(DEFEND, case)

def capped(score, case):
    return min(score, 3) if "os.system" in case["topic"] else score

def chief(case: Court):
    scores = [one.score for one in case["opinions"]]
    score = sum(scores) / len(scores)
    wide = max(scores) - min(scores) > 2
    if wide:
        score = min(scores)
    score = capped(score, case)
    Path("verdict.md").write_text(f"# {score}")
    return {"score": score}

def build():
    g = StateGraph(Court)
    for node in (prosecutor, defense, chief):
        g.add_node(node)
    g.add_edge(START, "prosecutor")
    g.add_edge(START, "defense")
    g.add_edge(["prosecutor", "defense"], "chief")
    g.add_edge("chief", END)
    return g.compile()

if __name__ == "__main__":
    print(build().invoke({"topic": "x"})["score"])
'''


def counts(text: str) -> dict[str, int]:
    """How often each goal is met in a program of one file."""
    files = {"main.py": text}
    return survey_code(
        [parsed("main.py", text.encode())], list(files), lambda path: files[path].encode(), HISTORY
    ).counts


SOUND = {
    "graph.run", "graph.fan_in", "output.structured", "output.validated", "judges.personas", "judges.parallel",
    "justice.rules", "justice.variance", "justice.report_file", "outcome.delivered",
}  # fmt: skip


@pytest.mark.parametrize(
    ("sound", "faulty", "missing", "flaws"),
    [
        ("build().invoke({\"topic\": \"x\"})[\"score\"]", "4.7", SOUND, {"graph.idle"}),
        ('opinion = llm.invoke([("system", creed), ("human", case["topic"])])',
         "opinion = Opinion(score=4, argument=creed)", {"output.structured", "output.validated"},
         {"output.unused_schema"}),
        ("    score = capped(score, case)", "    capped(score, case)", set(),
         {"justice.without_effect", "outcome.unused"}),
        ("    if wide:\n        score = min(scores)\n", "", {"justice.variance"},
         {"justice.without_effect", "outcome.unused"}),
        ('    Path("verdict.md").write_text(f"# {score}")', '    text = f"# {score}".strip()', {"justice.report_file"},
         {"justice.without_effect", "outcome.unused"}),
        ('["prosecutor", "defense"], "chief")', '["prosecutor", "defense"], END)',
         {"justice.variance"}, {"graph.dead_nodes"}),
        ('g.add_edge(START, "defense")\n    g.add_edge(["prosecutor", "defense"], "chief")',
         'g.add_edge("prosecutor", "defense")\n    g.add_edge("defense", "chief")',
         {"judges.parallel", "graph.fan_in"}, {"judges.in_sequence"}),
        ("Annotated[list[Opinion], operator.add]", "list[Opinion]", {"state.reducers"}, {"state.parallel_writes"}),
        ("    score: float", "    grade: float", set(), {"state.undeclared"}),
        ("return ask(ATTACK, case)", 'return ask("Judge it.", case)', set(), set()),
    ],
)  # fmt: skip
def test_twins_of_the_same_names(sound: str, faulty: str, missing: set[str], flaws: set[str]) -> None:
    assert sound in COURT
    good, bad = counts(COURT), counts(COURT.replace(sound, faulty))
    assert {goal for goal in SOUND if not good.get(goal)} == set()
    assert {goal for goal in missing if bad.get(goal)} == set()
    assert {goal for goal in flaws if not bad.get(goal)} == set()
    assert {goal for goal in flaws if good.get(goal)} == set()


def test_a_stub_meets_no_goal() -> None:
    told = "def dissent(case): return {}\n\ndef chief"
    court = COURT.replace("def chief", told)
    assert counts(court.replace("    wide =", "    dissent(case)\n    wide ="))["justice.rules"]
    assert not counts(court).get("justice.dissent")
    assert not counts(court.replace("    wide =", "    note(dissent(case))\n    wide =")).get("justice.dissent")


def function(text: str) -> ast.FunctionDef:
    (found,) = ast.parse(dedent(text)).body
    assert isinstance(found, ast.FunctionDef)
    return found


@pytest.mark.parametrize(("text", "stub"), [
    ("def f(): pass", True),
    ("def f():\n    '''To come.'''", True),
    ("def f(): raise NotImplementedError('soon')", True),
    ("def f(): return {}", True),
    ("def f(): return {'score': 4}", True),
    ("def f(): return True", False),
    ("def f(x): return x", False),
    ("def f(): raise ValueError('x')", False),
    ("@abstractmethod\ndef f(): ...", False),
    ("def f():\n    work()\n    return {}", False),
])
def test_a_stub_does_nothing_or_always_the_same(text: str, stub: bool) -> None:
    assert is_stub(function(text)) is stub
