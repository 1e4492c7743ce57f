"""How the program at large is kept: flaws of any kind, dropped exceptions, idle things and bare functions."""

from __future__ import annotations

from pmagent.actors.audit.detectors.evidence.care import care
from pmagent.contracts.audit_facts import Finding
from tests.support.audits import finding, survey

TYPED = finding("project.types", text="12 of 12 functions have annotations (100%)")


def kept(*findings: Finding) -> tuple[int, str]:
    """Percent, and the reasons."""
    (one,) = care(survey(findings=list(findings), examined={"parsed": 1}))
    return int(one.goal.rpartition(": ")[2].partition(" of ")[0]), one.content or ""


def test_nothing_against_a_program_is_not_all_for_it() -> None:
    assert kept(TYPED) == (90, "nothing was found against the program at large")


def test_flaws_count_by_kind_whatever_a_rubric_asks_for_and_those_of_history_do_not() -> None:
    flaws = [finding("outcome.unused"), finding("outcome.unused", line=9), finding("graph.dead_nodes")]
    assert kept(TYPED, *flaws)[0] == 70
    assert kept(TYPED, *flaws, finding("history.bulk"))[0] == 70
    assert "graph.dead_nodes, outcome.unused" in kept(TYPED, *flaws)[1]


def test_dropped_exceptions_count_for_more_and_things_that_nothing_reaches_for_most() -> None:
    assert kept(TYPED, finding("project.swallowed"))[0] == 65
    idle = finding("output.structured", reached=False)
    assert kept(idle, *(finding(goal) for goal in ("project.tests", "project.types")))[0] < 35
    assert kept(idle, finding("output.structured"), TYPED)[0] == 90


def test_a_flaw_that_is_rare_in_large_code_costs_its_share() -> None:
    for lines, met in ((2_000, 65), (20_000, 87)):
        found = [TYPED, finding("project.swallowed")]
        (one,) = care(survey(findings=found, examined={"parsed": 1, "lines": lines}))
        assert f": {met} of 100" in one.goal
    often = survey(findings=found, counts={"project.swallowed": 10}, examined={"parsed": 1, "lines": 20_000})
    assert ": 65 of 100" in next(care(often)).goal


def test_bare_functions_count_a_little() -> None:
    assert kept(finding("project.types", text="3 of 12 functions have annotations (25%)"))[0] == 81


def test_of_code_that_nobody_read_nothing_is_said() -> None:
    assert list(care(survey(examined={}))) == []
