"""Evidence says what the survey says, and nothing else, whatever was found where."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.audit.detectors.evidence.repo import repo_evidence
from pmagent.actors.audit.goals import GOALS, goal_id
from pmagent.actors.audit.rubric import Dimension
from pmagent.contracts.audit_events import EVIDENCE_MAX
from pmagent.contracts.audit_facts import Finding, RepoSurvey, Term, Unparsed
from tests.support.audits import survey
from tests.support.effort import examples
from tests.support.hostile import CORPUS

LOOKED_FOR = [goal.id for goal in GOALS.values() if goal.id.partition(".")[0] not in ("report", "images", "repo")]
TEXTS = st.sampled_from(["os.system(x)", "no os.system here", "", *(text[:300] for text in CORPUS.values())])
FINDINGS = st.builds(
    Finding, goal=st.sampled_from(LOOKED_FOR), path=st.sampled_from(["a.py", "src/b.py"]), line=st.integers(0, 9),
    text=TEXTS, confidence=st.sampled_from([0.3, 0.8, 1.0]),
)  # fmt: skip
BROKEN = st.builds(Unparsed, path=st.just("x.py"), line=st.integers(0, 9), reason=TEXTS)
TERMS = ("AgentState", "src/b.py", "tests/")


@st.composite
def surveys(draw: st.DrawFn) -> RepoSurvey:
    found = draw(st.lists(FINDINGS, max_size=12))
    broken = draw(st.lists(BROKEN, max_size=3))
    counts: dict[str, int] = {}
    for one in found:
        counts[one.goal] = counts.get(one.goal, 0) + 1
    terms = [Term(term=term, count=draw(st.integers(0, 3)), places=[]) for term in TERMS]
    more: dict[str, Any] = {"examined": {"python_files": 4, "parsed": 4 - len(broken), "unparsed": len(broken)}}
    return survey(findings=found, counts=counts, unparsed=broken, terms=terms, files=["a.py", "src/b.py"], **more)


@st.composite
def dimensions(draw: st.DrawFn) -> Dimension:
    goals = draw(st.lists(st.sampled_from([*LOOKED_FOR, "repo.term"]), max_size=20, unique=True))
    return Dimension(
        id="one", name="One", target_artifact="github_repo", forensic_instruction="", success_pattern="",
        failure_pattern="", goals=tuple(goals), explicit=True, terms=TERMS,
    )  # fmt: skip


@given(dimensions(), surveys())
@settings(max_examples=examples(150), deadline=None)
def test_a_goal_is_found_where_there_is_a_finding_and_a_flaw_is_told_only_then(
    wanted: Dimension, seen: RepoSurvey
) -> None:
    items = repo_evidence(wanted, seen)
    assert goal_id(items[0].goal) == "repo.scope"
    assert len(items) <= EVIDENCE_MAX
    told = {goal_id(one.goal): one for one in items if goal_id(one.goal) in LOOKED_FOR}
    found = {one.goal for one in seen.findings}
    for goal in wanted.goals:
        kind = "asset" if goal == "repo.term" else GOALS[goal].kind
        if goal in found:
            assert told[goal].found
        elif goal in told:
            assert kind == "asset"
            assert not told[goal].found
        else:
            assert kind != "asset" or goal == "repo.term"
    assert set(told) <= set(wanted.goals), "nobody asked for the rest"


@given(dimensions(), surveys(), FINDINGS)
@settings(max_examples=examples(100), deadline=None)
def test_a_further_finding_changes_the_items_of_its_goal_and_the_program_at_large_alone(
    wanted: Dimension, seen: RepoSurvey, further: Finding
) -> None:
    counts = {**seen.counts, further.goal: seen.counts.get(further.goal, 0) + 1}
    more = msgspec.structs.replace(seen, findings=[*seen.findings, further], counts=counts)
    before = {one.goal: one for one in repo_evidence(wanted, seen)}
    after = {one.goal: one for one in repo_evidence(wanted, more)}
    changed = {goal_id(goal) for goal in before.keys() | after.keys() if before.get(goal) != after.get(goal)}
    assert changed <= {further.goal, "repo.flaws", "repo.care"}


@given(dimensions(), surveys())
@settings(max_examples=examples(50), deadline=None)
def test_files_that_do_not_parse_never_make_an_absence_surer(wanted: Dimension, seen: RepoSurvey) -> None:
    whole = msgspec.structs.replace(seen, unparsed=[], examined={"python_files": 4, "parsed": 4, "unparsed": 0})
    surest = {one.goal: one.confidence for one in repo_evidence(wanted, whole)}
    for one in repo_evidence(wanted, seen):
        if goal_id(one.goal) not in ("repo.unparsed", "repo.scope"):
            assert one.confidence <= surest[one.goal]
