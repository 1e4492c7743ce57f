"""A repository loses nothing by a thing that it has no occasion for, where a rubric says so; and only there."""

from __future__ import annotations

from pmagent.actors.audit.detectors.code.parse import parsed
from pmagent.actors.audit.detectors.code.survey import survey_code
from pmagent.actors.audit.detectors.evidence.items import judgeable
from pmagent.actors.audit.detectors.evidence.repo import repo_evidence
from pmagent.actors.audit.goals import GOALS
from pmagent.actors.audit.occasions import no_occasion
from pmagent.actors.audit.rubric import Dimension, dimension_of
from pmagent.audit.rubrics import default_rubric
from pmagent.contracts.audit import Evidence
from pmagent.contracts.audit_facts import History
from tests.support.audits import dimension, finding, survey
from tests.support.cases import each

NEEDS = {goal.id: goal.needs for goal in GOALS.values() if goal.needs}
NOTHING = {name: 0 for needs in NEEDS.values() for name in needs}


def about(*goals: str, where_applicable: bool = True) -> Dimension:
    return dimension_of(dimension("one", goals=list(goals), where_applicable=where_applicable))


def test_only_assets_need_an_occasion_and_it_is_something_that_is_counted() -> None:
    assert {GOALS[goal].kind for goal in NEEDS} == {"asset"}
    history = History(total=0, shown=[], span_s=0, burst=0.0)
    assert set(NOTHING) <= set(survey_code([], [], lambda _: None, history).examined)


@each("goal", NEEDS)
def test_there_is_an_occasion_where_one_of_the_things_is_there_or_nobody_counted(goal: str) -> None:
    assert no_occasion(goal, NOTHING).startswith("no ")
    for name in NEEDS[goal]:
        assert no_occasion(goal, NOTHING | {name: 1}) == ""
        assert no_occasion(goal, {other: 0 for other in NOTHING if other != name}) == ""


def test_other_goals_need_none() -> None:
    assert no_occasion("project.tests", NOTHING) == ""


def test_what_there_is_no_occasion_for_counts_neither_way_where_the_rubric_says_so() -> None:
    bare = survey(examined=NOTHING | {"python_files": 3, "parsed": 3})
    scope, tests, limits, _ = repo_evidence(about("project.tests", "tools.time_limits"), bare)
    assert (scope.found, tests.found, limits.found) == (True, False, False)
    assert tests.confidence > 0
    assert limits.confidence == 0
    assert "no processes started, no requests sent, no clones in 3 Python files" in limits.rationale
    strict = repo_evidence(about("project.tests", "tools.time_limits", where_applicable=False), bare)
    assert strict[2].confidence > 0


def test_what_was_found_counts_whatever_was_counted() -> None:
    odd = survey(examined=NOTHING, findings=[finding("tools.time_limits")])
    assert repo_evidence(about("tools.time_limits"), odd)[1].found


def test_a_project_without_models_graphs_and_processes_is_judged_on_the_rest() -> None:
    """Nobody who starts no process is told by the default rubric that its tools are unsafe."""
    bare = survey(examined=NOTHING | {"python_files": 3, "parsed": 3}, findings=[], graphs=[])
    judged = {
        one.id: judgeable(repo_evidence(one, bare), one)
        for one in default_rubric().dimensions
        if one.target_artifact == "github_repo"
    }
    assert judged == {
        "history": True, "typed_data": True, "orchestration": False, "safe_tools": False,
        "structured_answers": False, "decisions": False, "engineering": True, "handover": True,
    }  # fmt: skip


def test_a_criterion_without_occasion_for_most_of_it_does_not_apply_as_a_whole() -> None:
    goals = ("state.typed", "state.reducers", "state.models", "state.undeclared")
    bare = survey(finding("project.tests"), examined=NOTHING | {"python_files": 3, "parsed": 3})
    assert not judgeable(repo_evidence(about(*goals), bare), about(*goals))
    assert judgeable(repo_evidence(about(*goals, where_applicable=False), bare))
    found = survey(finding("state.models"), examined=NOTHING)
    assert judgeable(repo_evidence(about(*goals), found)), "what is there counts"
    flawed = survey(finding("state.undeclared"), examined=NOTHING)
    missing = [one for one in repo_evidence(about(*goals), flawed) if one.goal.startswith("state.models")]
    assert [one.confidence > 0 for one in missing] == [True], "what does wrong has an occasion"
    agents = survey(examined=NOTHING | {"python_files": 3, "parsed": 3, "model_calls": 2})
    assert judgeable(repo_evidence(about(*goals), agents), about(*goals)), "it has a state in another shape"
    tools = ("tools.time_limits", "tools.checked_processes")
    assert not judgeable(repo_evidence(about(*tools), agents), about(*tools)), "it starts no process in any shape"


HEAD = """
from langgraph.graph import END, START, StateGraph
from langchain_openai import ChatOpenAI
g = StateGraph(State)
g.add_node("ask", ask)
g.add_edge(START, "ask")
"""
PLAIN, CYCLE = 'g.add_edge("ask", END)\n', 'g.add_conditional_edges("ask", again, {"more": "ask", "done": END})\n'


@each("program, loops, sends", [
    (HEAD + PLAIN, 0, 0),
    (HEAD + CYCLE, 1, 0),
    ("from langgraph.prebuilt import create_react_agent\nagent = create_react_agent(model, tools)\n", 1, 0),
    (HEAD + PLAIN + "while True:\n    ChatOpenAI().invoke('again')\n", 1, 0),
    (HEAD + PLAIN + "for _ in range(3):\n    ChatOpenAI().invoke('again')\n", 0, 0),
    ("import requests\nrequests.get('https://a')\n", 0, 0),
    ("import requests\nrequests.post('https://a', json={})\n", 0, 1),
    ("def tell(client):\n    client.chat_postMessage(text='done')\n", 0, 1),
    ("@app.post('/orders')\ndef order(): ...\n", 0, 0),
])
def test_limits_are_wanted_of_what_may_not_end_and_approval_of_what_changes_things(
    program: str, loops: int, sends: int
) -> None:
    history = History(total=0, shown=[], span_s=0, burst=0.0)
    examined = survey_code([parsed("main.py", program.encode())], ["main.py"], lambda _: None, history).examined
    assert (examined["loops"], examined["sends"]) == (loops, sends)


def test_a_library_that_touches_nothing_is_not_praised_for_being_safe() -> None:
    plain, opens = "def f(number):\n    return 2 * number\n", "def f(path):\n    return path.read_text().upper()\n"
    for program, judged in ((plain, False), (opens, True)):
        assert judgeable(*safety_of(program)) is judged


def safety_of(program: str) -> tuple[list[Evidence], Dimension]:
    history = History(total=0, shown=[], span_s=0, burst=0.0)
    code = survey_code([parsed("lib/__init__.py", program.encode())], ["lib/__init__.py"], lambda _: None, history)
    goals = ("tools.time_limits", "tools.checked_processes", "tools.no_unsafe_calls", "security.shell")
    seen = survey(*code.findings, examined={**code.examined, "files": 1}, graphs=[])
    return repo_evidence(about(*goals), seen), about(*goals)
