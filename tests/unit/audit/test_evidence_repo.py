"""Evidence about a repository: facts with places, and what was looked for in vain."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pmagent.actors.audit.detectors.evidence.items import judgeable, key_of
from pmagent.actors.audit.detectors.evidence.repo import ABSENCE, UNRESOLVED, at_boundary, repo_evidence
from pmagent.actors.audit.detectors.evidence.text import clean
from pmagent.actors.audit.goals import GOALS, goal_id
from pmagent.actors.audit.progress import as_item
from pmagent.actors.audit.rubric import Dimension, dimension_of
from pmagent.contracts.audit import Evidence
from pmagent.contracts.audit_events import EVIDENCE_MAX, AuditEvidenceFound
from pmagent.contracts.audit_facts import CodeGraph, GraphEdge, GraphNode, Term, Unparsed
from tests.support.audits import AUDIT, dimension, finding, survey
from tests.support.cases import each
from tests.support.hostile import CORPUS

GOALS_OF_CODE = [goal.id for goal in GOALS.values() if goal.id.partition(".")[0] not in ("report", "images", "repo")]


def about(*goals: str, terms: tuple[str, ...] = (), **more: Any) -> Dimension:
    """A dimension with these goals and terms."""
    return msgspec.structs.replace(dimension_of(dimension("one", goals=list(goals), **more)), terms=terms)


def named(found: list[Evidence]) -> dict[str, Evidence]:
    return {goal_id(one.goal): one for one in found}


def graph(**more: object) -> CodeGraph:
    fields: dict[str, object] = {
        "path": "src/graph.py", "line": 9, "name": "builder", "builder": "StateGraph", "state": "AgentState",
        "nodes": [GraphNode(name="a", line=10), GraphNode(name="b", line=11)],
        "edges": [
            GraphEdge(source="__start__", target="a", line=12),
            GraphEdge(source="a", target="b", line=13, kind="conditional", label="ok"),
        ],
        "parallel_sources": [], "fan_in_targets": [], "compiled": True, **more,
    }  # fmt: skip
    return CodeGraph(**fields)  # type: ignore[arg-type]


# --- what there is ---------------------------------------------------------------------------------------------------


def test_the_first_evidence_says_what_was_examined() -> None:
    found = repo_evidence(about("state.typed"), survey(notes=["3 files are larger than 8 MiB"]))
    assert goal_id(found[0].goal) == "repo.scope"
    assert found[0].found
    assert found[0].confidence == 1.0
    assert found[0].location == f"{5:040x}"
    content = found[0].content or ""
    assert "2 tracked files, 1 Python file, 40 lines" in content
    assert "5 commits over 4 days" in content
    assert "not looked at: 3 files are larger than 8 MiB" in content


def test_what_was_found_has_its_place_its_code_and_how_it_was_looked_for() -> None:
    found = named(
        repo_evidence(about("state.typed"), survey(finding("state.typed", "src/state.py", 7, text="class S")))
    )
    one = found["state.typed"]
    assert one.goal == GOALS["state.typed"].text
    assert (one.found, one.location, one.content) == (True, "src/state.py:7", "src/state.py:7: class S")
    assert one.rationale == "looked for in the syntax trees of 1 Python file: 1 place"


def test_of_many_findings_some_are_shown_and_the_rest_is_counted() -> None:
    many = [finding("state.models", line=number, text="class M(BaseModel): " + "x" * 300) for number in range(1, 41)]
    one = named(repo_evidence(about("state.models"), survey(*many, counts={"state.models": 95})))["state.models"]
    lines = (one.content or "").split("\n")
    assert len(one.content or "") <= 2_000
    shown = len(lines) - 1
    assert lines[-1] == f"and {95 - shown} more"
    assert one.rationale.endswith(": 95 places")


def test_the_confidence_is_that_of_the_surest_finding() -> None:
    weak, strong = finding("output.retried", confidence=0.5), finding("output.retried", line=9, confidence=0.8)
    assert named(repo_evidence(about("output.retried"), survey(weak, strong)))["output.retried"].confidence == 0.8


def test_what_was_not_found_says_so_and_where_it_was_looked_for() -> None:
    one = named(repo_evidence(about("state.reducers"), survey(finding("state.typed"))))["state.reducers"]
    assert (one.found, one.location, one.content, one.confidence) == (False, ".", None, ABSENCE)
    assert one.rationale == "looked for in the syntax trees of 1 Python file: not found"


def test_a_flaw_is_evidence_only_where_it_was_found() -> None:
    """A text that says that a flaw is absent is no evidence: who looks for its words would find them."""
    wanted = about("security.os_system", "security.shell", "project.swallowed")
    assert [goal_id(one.goal) for one in repo_evidence(wanted, survey())] == ["repo.scope", "repo.flaws"]
    found = repo_evidence(wanted, survey(finding("security.shell", text="run(cmd, shell=True)")))
    assert [goal_id(one.goal) for one in found] == ["repo.scope", "security.shell", "repo.flaws"]


def test_which_flaws_were_looked_for_is_told_by_their_ids() -> None:
    wanted = about("security.os_system", "security.shell")
    one = named(repo_evidence(wanted, survey(finding("security.shell"))))["repo.flaws"]
    assert one.content == "security.os_system: looked for\nsecurity.shell: found"
    assert one.found
    assert judgeable(repo_evidence(wanted, survey()), wanted), "that there is no flaw can be judged"
    broken = survey(
        unparsed=[Unparsed(path="a.py", line=1, reason="Python 2")], examined={"python_files": 1, "parsed": 0}
    )
    found = repo_evidence(wanted, broken)
    assert named(found)["repo.unreadable"].found, "where nothing parses, that is the flaw"
    assert judgeable(found, wanted)
    of_history = about("history.commits")
    assert "repo.unreadable" not in named(repo_evidence(of_history, broken))


@each("goal", GOALS_OF_CODE)
def test_no_word_of_the_rubric_becomes_evidence(goal: str) -> None:
    """The rubric has opinions of good and bad; evidence holds facts alone."""
    opinion = "Zweifelsfrei meisterhaft"
    texts: dict[str, Any] = dict.fromkeys(
        ("success_pattern", "failure_pattern", "forensic_instruction", "name"), opinion
    )
    for found in (survey(), survey(finding(goal))):
        for one in repo_evidence(about(goal, **texts), found):
            assert opinion not in f"{one.goal} {one.content} {one.location} {one.rationale}"


def test_nothing_is_found_in_a_repository_because_it_can_be_cloned() -> None:
    """Evidence about tools, judges and the like is of the audited code, never of the auditor's own."""
    for goal in GOALS_OF_CODE:
        items = repo_evidence(about(goal), survey(findings=[], counts={}))
        assert all(not one.found for one in items if GOALS[goal_id(one.goal)].kind != "context"), goal


# --- how sure an absence is ------------------------------------------------------------------------------------------


def test_files_that_do_not_parse_are_evidence_and_make_absence_less_sure() -> None:
    broken = Unparsed(path="src/old.py", line=3, reason="Python 2")
    seen = {"python_files": 4, "parsed": 3, "unparsed": 1}
    found = named(repo_evidence(about("state.typed", "history.commits"), survey(
        findings=[], counts={}, unparsed=[broken], examined=seen,
    )))  # fmt: skip
    assert found["repo.unparsed"].content == "src/old.py:3: Python 2"
    assert found["repo.unparsed"].location == "src/old.py:3"
    assert found["state.typed"].confidence == pytest.approx(ABSENCE * 3 / 4, abs=0.01)
    assert "1 do not parse" in found["state.typed"].rationale
    assert found["history.commits"].confidence == 1.0, "the history is not code"


def test_files_that_were_not_read_make_absence_less_sure() -> None:
    seen = {"python_files": 2, "parsed": 2, "unread": 6}
    one = named(repo_evidence(about("state.typed"), survey(findings=[], counts={}, examined=seen)))["state.typed"]
    assert one.confidence == pytest.approx(ABSENCE / 4, abs=0.01)
    assert "2 Python files (6 more were not read)" in one.rationale
    seen |= {"own_graphs": 0}
    where = dimension_of(dimension("one", goals=["state.typed"], where_applicable=True))
    told = named(repo_evidence(where, survey(findings=[], counts={}, examined=seen)))["state.typed"]
    assert (told.found, told.confidence) == (False, 0.0)
    assert told.rationale.endswith("whether there is an occasion in the rest is not known")


def test_what_is_known_by_names_alone_is_less_surely_absent() -> None:
    found = named(repo_evidence(about("state.typed", "agent.limits", "output.retried", "output.structured"), survey(
        findings=[], counts={},
    )))  # fmt: skip
    sure = {goal: one.confidence for goal, one in found.items() if not one.found}
    assert sure == {"state.typed": 0.95, "agent.limits": 0.7, "output.retried": 0.7, "output.structured": 0.95}


def test_where_nothing_parses_nothing_can_be_judged_by_its_absence() -> None:
    broken = [Unparsed(path=f"{n}.py", line=1, reason="Python 2") for n in range(3)]
    seen = {"python_files": 3, "parsed": 0, "unparsed": 3}
    wanted = about("state.typed", "project.types", "project.tests", "project.license")
    found = named(repo_evidence(wanted, survey(findings=[], counts={}, unparsed=broken, examined=seen)))
    assert [found[goal].confidence for goal in ("state.typed", "project.types", "project.tests")] == [0.0, 0.0, 0.0]
    assert "syntax trees" in found["project.types"].rationale
    assert found["project.license"].confidence == 1.0, "a file's name needs no parser"


def test_a_graph_that_cannot_be_read_in_full_makes_absence_less_sure() -> None:
    unsure = survey(findings=[], counts={}, graphs=[graph(unresolved=["12: the name is computed"])])
    one = named(repo_evidence(about("graph.fan_out"), unsure))["graph.fan_out"]
    assert one.confidence == UNRESOLVED
    assert "1 of which cannot be read in full" in one.rationale
    assert one.content is not None
    assert one.content.startswith("src/graph.py:9: 2 nodes, 2 edges: __start__ → a, a ?→ b (ok)")


# --- kinds of content ------------------------------------------------------------------------------------------------


def test_a_graph_is_shown_with_nodes_edges_and_joins() -> None:
    seen = survey(
        finding("graph.builder", "src/graph.py", 9), graphs=[graph(parallel_sources=["a"], fan_in_targets=["b"])]
    )
    content = named(repo_evidence(about("graph.builder"), seen))["graph.builder"].content
    assert content == (
        "src/graph.py:9: StateGraph builder, state AgentState, compiled\nnodes: a, b\n"
        "edges: __start__ → a, a ?→ b (ok)\nfan-out from: a\nfan-in at: b"
    )


def test_what_a_shallow_repository_keeps_back_is_not_held_to_be_absent() -> None:
    past = msgspec.structs.replace(survey().history, cut=True)
    goals = ("history.commits", "history.spread", "history.messages", "history.progression")
    scope, *items = repo_evidence(about(*goals), survey(findings=[], counts={}, history=past))
    assert "what there is of its history" in scope.rationale
    assert [one.confidence for one in items] == [0.0] * 4
    assert all(one.rationale.endswith("it is cut short, and what came before is not known") for one in items)
    found = named(repo_evidence(about("history.commits"), survey(finding("history.commits", "", 0), history=past)))
    assert found["history.commits"].found
    assert found["history.commits"].confidence == 1.0, "what there is of it is enough"


def test_history_is_shown_with_times_whether_it_is_good_or_not() -> None:
    for found in (survey(finding("history.spread", "", 0)), survey(findings=[], counts={})):
        one = named(repo_evidence(about("history.spread"), found))["history.spread"]
        lines = (one.content or "").split("\n")
        assert lines[0] == "5 commits over 4 days; at most 20 % of them within 30 minutes"
        assert lines[1] == "0000000000 2026-11-01T12:00:00+00:00 Step 1"
        assert len(lines) == 6
        assert one.location == f"{5:040x}"


def test_terms_are_found_in_code_and_by_path_at_a_slash() -> None:
    place = finding("repo.term", "src/app.py", 3, text="operator.add")
    seen = survey(
        files=["src/app.py", "src/agraph.py", "lib/src/graph.py"], file_count=3,
        terms=[
            Term(term="operator.add", count=12, places=[place]), Term(term="AgentState", count=0, places=[]),
            Term(term="src/graph.py", count=0, places=[]),
        ],
    )  # fmt: skip
    wanted = about("repo.term", terms=("operator.add", "AgentState", "src/graph.py", "graph.py", "never asked"))
    found = repo_evidence(wanted, seen)[1:]
    assert [(one.goal.rpartition(": ")[2], one.found, one.location, one.confidence) for one in found] == [
        ("operator.add", True, "src/app.py:3", 1.0),
        ("AgentState", False, ".", ABSENCE),
        ("src/graph.py", True, "lib/src/graph.py", 1.0),
        ("graph.py", True, "lib/src/graph.py", 1.0),
        ("never asked", False, ".", 0.0),
    ]
    assert found[0].content == "src/app.py:3: operator.add\nand 11 more"


@each(
    "path, term, meant",
    [
        ("src/graph.py", "src/graph.py", True), ("a/src/graph.py", "src/graph.py", True),
        ("src/graph.py", "raph.py", False), ("src/graph.pyc", "graph.py", False),
        ("src/tools/x.py", "src/tools/", True),
        ("mysrc/tools/x.py", "src/tools/", False), ("a/src/tools/x.py", "src/tools/", True),
        ("src/score.py", "score", False), ("score", "score", False),
    ],
)  # fmt: skip
def test_a_path_is_meant_only_at_slashes(path: str, term: str, meant: bool) -> None:
    assert at_boundary(path, term) is meant


def test_terms_are_left_out_where_the_rubric_does_not_ask_for_them() -> None:
    assert len(repo_evidence(about("state.typed", terms=("x.py",)), survey())) == 2


# --- bounds ----------------------------------------------------------------------------------------------------------


@each("text", [text[:4_000] for text in CORPUS.values()])
def test_whatever_stands_in_the_repository_the_log_takes_the_evidence(text: str) -> None:
    seen = survey(
        finding("state.typed", text[:3_000], text=text[:2_000]), branch=text, notes=[text] * 30,
        graphs=[graph(name=text, path=text, unresolved=[text] * 50)],
        unparsed=[Unparsed(path=text, line=1, reason=text)] * 50,
        terms=[Term(term=f"{number}{text}", count=1, places=[]) for number in range(80)],
    )  # fmt: skip
    wanted = about(
        "state.typed", "graph.builder", "graph.fan_in", "repo.term", terms=tuple(one.term for one in seen.terms)
    )
    found = repo_evidence(wanted, seen)
    assert len(found) == EVIDENCE_MAX
    event = AuditEvidenceFound(audit_id=AUDIT, dimension_id="one", evidences=[as_item(one) for one in found])
    assert msgspec.json.decode(msgspec.json.encode(event), type=AuditEvidenceFound) == event
    for one in found:
        for shown in (one.goal, one.content or "", one.location, one.rationale):
            assert clean(shown, 10_000) == shown, "nothing is hidden in it"
        assert "\n" not in one.goal + one.location + one.rationale


def test_keys_count_from_one() -> None:
    assert key_of("graph_orchestration", 1) == "graph_orchestration#1"


def test_a_scope_alone_is_nothing_to_judge() -> None:
    assert not judgeable(repo_evidence(about("state.typed"), survey())[:1])
    assert judgeable(repo_evidence(about("state.typed"), survey()))


def test_the_lines_of_an_excerpt_are_set_in_below_its_place() -> None:
    two = [
        finding("state.typed", line=1, text="class A:\n    x: int"),
        finding("state.typed", line=9, text="class B: ..."),
    ]
    content = named(repo_evidence(about("state.typed"), survey(*two)))["state.typed"].content
    assert content == "src/app.py:1: class A:\n        x: int\nsrc/app.py:9: class B: ..."
