"""Somebody looks for everything that a rubric may ask for: no goal is 'not found' only because nobody ever finds it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from pmagent.actors.audit.detectors.code.parse import parsed
from pmagent.actors.audit.detectors.code.survey import CodeFacts, survey_code
from pmagent.actors.audit.detectors.evidence.repo import absence_of
from pmagent.actors.audit.goals import GOALS
from pmagent.contracts.audit_facts import Changes, Commit, History
from tests.support.audits import survey

STATE = """
import operator
from typing import Annotated, TypedDict

from pydantic import BaseModel


class Verdict(BaseModel):
    judge: str
    score: int
    evidence: list[str] = []


class State(TypedDict):
    question: str
    verdicts: Annotated[list[Verdict], operator.add]
    approved: bool
"""
GRAPH = """
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from src.judges import defense, prosecutor
from src.justice import decide
from src.state import State
from src.tools import collect, fetch, read


def route(state: State) -> str:
    return "failed" if not state["verdicts"] else "judge"


def approve(state: State) -> dict:
    return {"approved": interrupt("publish?")}


def build(path: str) -> object:
    builder = StateGraph(State)
    for node in (read, fetch, collect, prosecutor, defense, decide):
        builder.add_node(node)
    builder.add_node("approve", approve)
    builder.add_edge(START, "read")
    builder.add_edge(START, "fetch")
    builder.add_edge(["read", "fetch"], "collect")
    builder.add_edge("collect", "prosecutor")
    builder.add_edge("collect", "defense")
    builder.add_edge(["prosecutor", "defense"], "decide")
    builder.add_conditional_edges("decide", route, {"failed": END, "judge": "approve"})
    builder.add_edge("approve", END)
    return builder.compile(checkpointer=SqliteSaver.from_conn_string(path), interrupt_before=["approve"])


if __name__ == "__main__":
    print(build("runs.db").invoke({"question": "why"}, {"recursion_limit": 30}))
"""
TOOLS = """
import subprocess
import tempfile
from urllib.parse import urlsplit


class FetchFailed(Exception):
    pass


def read(state: dict) -> dict:
    return {"verdicts": [cloned(state["question"])]}


def fetch(state: dict) -> dict:
    return {"verdicts": [cloned(state["question"])]}


def collect(state: dict) -> dict:
    return {}


def cloned(url: str) -> str:
    if urlsplit(url).scheme != "https":
        raise ValueError(f"not an https address: {url}")
    folder = tempfile.mkdtemp()
    try:
        subprocess.run(
            ["git", "clone", "--", url, folder], check=True, capture_output=True, text=True, timeout=60
        )
    except subprocess.TimeoutExpired as error:
        raise FetchFailed(f"{url} took too long") from error
    except subprocess.CalledProcessError as error:
        raise FetchFailed(f"{url} cannot be cloned: {error.stderr}") from error
    return folder
"""
JUDGES = '''
import os

from langchain_openai import ChatOpenAI
from pydantic import ValidationError

from src.state import State, Verdict

PROSECUTOR_PROMPT = """You are the Prosecutor. Trust no one and assume the worst: hunt for gaps, missing pieces and
laziness, attack every claim that the evidence does not carry, and charge what is broken."""
DEFENSE_PROMPT = """You are the Defense attorney. Reward effort, creativity and intent; give credit to understanding
even where the code is rough, and explain in good faith what the authors were after."""
TECH_LEAD_PROMPT = """You are the Tech Lead. Be pragmatic: does it work, can it be maintained, is the architecture
sound? Weigh practical cost of repair against technical debt and say what to do next."""


def judge(persona: str, case: str) -> Verdict:
    model = ChatOpenAI(api_key=os.environ["OPENAI_API_KEY"], timeout=30, max_retries=2)
    bound = model.with_structured_output(Verdict)
    for attempt in range(3):
        try:
            return Verdict.model_validate(bound.invoke([("system", persona), ("user", case)]))
        except ValidationError as error:
            case = f"{case} That did not fit: {error}"
    raise RuntimeError("no verdict that fits")


def prosecutor(state: State) -> dict:
    return {"verdicts": [judge(PROSECUTOR_PROMPT, state["question"]), judge(TECH_LEAD_PROMPT, state["question"])]}


def defense(state: State) -> dict:
    return {"verdicts": [judge(DEFENSE_PROMPT, state["question"])]}
'''
JUSTICE = """
from pathlib import Path
from statistics import median

from src.state import State, Verdict

SECURITY_CAP = 3


def decide(state: State) -> dict:
    score, dissent = chief_justice(state["verdicts"], True, {"prosecutor"})
    write_report(score, dissent)
    return {"question": f"{score}"}


def chief_justice(verdicts: list[Verdict], security_flaw: bool, facts: set[str]) -> tuple[int, str]:
    scores = [one.score for one in verdicts if facts & set(one.evidence)]
    lead = [one.score for one in verdicts if one.judge == "tech_lead"]
    final_score = round(median([*scores, *lead]))
    dissent = ""
    if max(scores) - min(scores) > 2:
        final_score = lead[0]
        dissent = f"The judges disagree: {scores}"
    if security_flaw:
        final_score = min(final_score, SECURITY_CAP)
    return final_score, dissent


def write_report(score: int, dissent: str) -> None:
    text = f"# Audit Report\\n\\nFinal score: {score}\\n\\nDissent: {dissent}\\n"
    Path("audit/report.md").write_text(text)
"""
TESTS = "from src import graph, judges, justice\nfrom src.tools import cloned\n\ndef test():\n    assert cloned('x')\n"
GOOD: Mapping[str, str] = {
    "src/state.py": STATE, "src/graph.py": GRAPH, "src/tools.py": TOOLS, "src/judges.py": JUDGES,
    "src/justice.py": JUSTICE,
    "tests/test_tools.py": TESTS,
    "README.md": "# Judge\n\n## Run\n\n```\nuv run python -m src.graph\n```\n",
    "LICENSE": "MIT License\n\nPermission is hereby granted, free of charge, to any person\n",
    ".env.example": "OPENAI_API_KEY=\n",
    "pyproject.toml": "[project]\nname = 'judge'\n[tool.ruff]\nline-length = 100\n[tool.pytest.ini_options]\n",
    "uv.lock": "version = 1\n",
    ".github/workflows/ci.yml": "on: push\njobs:\n  test:\n    steps:\n      - run: uv run pytest\n",
}  # fmt: skip

BAD: Mapping[str, str] = {
    "app.py": '''
import os
import pickle
import subprocess
from pathlib import Path

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

OPENAI_API_KEY = "sk-proj-Qm3nV8xT1bK7wZ5cR9dL2fH6jP4sG0aY"
PROSECUTOR = "You are the prosecutor of this court. Read the code, weigh the evidence, and give it a score from 1 to 5."
DEFENSE = "You are the defense of this court. Read the code, weigh the evidence, and give it a score from 1 to 5."
builder = StateGraph(dict)
builder.add_node("prosecutor", str)
builder.add_node("defense", str)
builder.add_node("three", str)
builder.add_edge(START, "prosecutor")
builder.add_edge("prosecutor", "defense")
builder.add_edge("defense", "three")
builder.add_edge("three", END)



def fetch(url, data):
    os.system("git pull " + url)
    subprocess.run(f"git log {url}", shell=True)
    subprocess.run(["git", "clone", url])
    connection.execute(f"SELECT * FROM pages WHERE url = '{url}'")
    eval(url)
    try:
        return pickle.loads(data)
    except Exception:
        pass


def verdict(case):
    bound = ChatOpenAI().with_structured_output(dict)
    reply = ChatOpenAI().invoke([("system", PROSECUTOR), ("user", case)])
    return int(reply.content)


def final_verdict(scores):
    spread = max(scores) - min(scores)
    answer = ChatOpenAI().invoke(f"You are the chief justice. Combine {scores} into the final score.")
    final_score = int(answer.content)
    Path("report.md").write_text("# Report\\n\\nFinal score: 4 of 5\\n")
    return final_score


if __name__ == "__main__":
    fetch("x", b"")
    print(final_verdict([verdict("a")]))
''',
    "more.py": "def one():\n    return work()\n", "other.py": "def two():\n    return work()\n",
    "loose.py": "".join(f"def f{number}(row):\n    return row['a'] + row['b']\n" for number in range(5)),
    "tests/test_app.py": "import os\n\ndef test_it(x):\n    os.system(x)\n    assert x\n",
}  # fmt: skip

BROKEN: Mapping[str, str] = {
    "graph.py": '''
from typing import TypedDict

import requests
from langgraph.graph import START, StateGraph

class Case(TypedDict):
    topic: str
    score: int


def begin(case: Case): return {"topic": case["topic"], "mood": case["topic"]}
def left(case: Case): return {"score": 5}
def right(case: Case): return {"score": len(case["topic"]) + 1}
def again(case: Case):
    requests.post("https://example.org/mood", json=case, timeout=10)
    return {"topic": case["topic"] + "!"}
def lost(case: Case): pass
def choose(case: Case): return "nowhere" if case["topic"] else "again"


faulty = StateGraph(Case)
for node in (begin, left, right, again, lost):
    faulty.add_node(node)
faulty.add_edge(START, "begin")
faulty.add_edge("begin", "left")
faulty.add_edge("begin", "right")
faulty.add_edge("left", "again")
faulty.add_edge("right", "again")
faulty.add_conditional_edges("again", choose, {"again": "again"})
''',
}

ELSEWHERE = (
    "repo.scope", "repo.unparsed", "repo.unreadable", "repo.flaws", "repo.idle", "repo.term", "tools.reported",
    "repo.tested", "repo.structure", "repo.care",
)  # fmt: skip
"""Told by the evidence itself, from the survey's counts and terms, of any code, or from another tool's findings."""
WANTED = [goal for goal in GOALS if goal.partition(".")[0] not in ("report", "images") and goal not in ELSEWHERE]

MESSAGES = (
    "Set up the project and its dependencies", "Add typed state and its reducers", "Add tools that clone and read",
    "Wire the graph with parallel detectives", "Add judges and the chief justice", "Document how to run it",
)  # fmt: skip
HISTORY = History(
    total=len(MESSAGES), span_s=(len(MESSAGES) - 1) * 86_400, burst=1 / len(MESSAGES),
    shown=[
        Commit(commit=f"{day:040x}", message=message, timestamp=f"2026-11-{day:02}T12:00:00+00:00")
        for day, message in enumerate(MESSAGES, 1)
    ],
    changes=Changes(added=900, largest=0.3, first_hour=0.1, empty=0, growing=6),
)  # fmt: skip


def surveyed(files: Mapping[str, str], history: History) -> CodeFacts:
    sources = [parsed(path, files[path].encode()) for path in sorted(files) if path.endswith(".py")]
    return survey_code(sources, sorted(files), lambda path: files[path].encode(), history)


@pytest.fixture(scope="module")
def good() -> CodeFacts:
    """The survey of a project that has everything that is good."""
    return surveyed(GOOD, HISTORY)


@pytest.fixture(scope="module")
def bad() -> CodeFacts:
    """The survey of one that has everything that is bad."""
    upload = Changes(added=900, largest=1.0, first_hour=1.0, empty=0, growing=1)
    found = surveyed(BAD, History(total=1, shown=HISTORY.shown[:1], span_s=0, burst=1.0, changes=upload))
    coarse = Changes(added=900, largest=0.4, first_hour=0.1, empty=0, growing=3)
    broken = surveyed(BROKEN, msgspec.structs.replace(HISTORY, total=4, changes=coarse))
    return msgspec.structs.replace(found, counts={**broken.counts, **found.counts})


@pytest.fixture(scope="module")
def little() -> CodeFacts:
    """The survey of one that has nothing to speak of."""
    return surveyed({"main.py": "print('hello')\n"}, History(total=0, shown=[], span_s=0, burst=0.0))


@pytest.mark.parametrize("goal", [goal for goal in WANTED if GOALS[goal].kind == "asset"])
def test_what_is_good_is_found_where_it_is_and_only_there(goal: str, good: CodeFacts, little: CodeFacts) -> None:
    assert (good.counts.get(goal, 0) > 0, little.counts.get(goal, 0) > 0) == (True, False)


@pytest.mark.parametrize("goal", [goal for goal in WANTED if GOALS[goal].kind == "asset"])
def test_nobody_is_surer_of_an_absence_than_of_a_presence(goal: str, good: CodeFacts) -> None:
    whole = survey(examined={"parsed": 9}, history=HISTORY)
    assert absence_of(goal, whole) <= max(one.confidence for one in good.findings if one.goal == goal)


@pytest.mark.parametrize("goal", [goal for goal in WANTED if GOALS[goal].kind != "asset"])
def test_what_is_bad_is_found_where_it_is_and_only_there(goal: str, good: CodeFacts, bad: CodeFacts) -> None:
    assert (goal in bad.counts, goal in good.counts) == (True, False)
