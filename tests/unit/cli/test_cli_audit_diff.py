"""The differences told between the reports of two audits."""

from __future__ import annotations

from typing import Any

from pmagent.contracts.audit import AuditReport, Evidence
from pmagent.projections.audits.comparison import compared
from tests.support.cases import each
from tests.support.verdicts import bench, case, item, judged, scoped

COMMIT = "c0ffee" * 6 + "abcd"


def report(*items: Evidence, score: int = 4, ids: tuple[str, ...] = ("one",)) -> AuditReport:
    """A report whose first criterion has this evidence and score."""
    others = ids[1:]
    evidences = {"one": scoped(*items), **{name: scoped() for name in others}}
    opinions = [*bench(score, score, score), *(opinion for name in others for opinion in bench(4, 4, 4, name))]
    return judged(case(*ids), evidences, opinions)


@each(
    "before, after",
    [
        (item(location="a.py:3"), item(location="a.py:90", content="moved")),
        (item("history.commits", location="a" * 40), item("history.commits", location=COMMIT)),
    ],
)
def test_a_line_that_moved_and_another_commit_are_no_difference(before: Evidence, after: Evidence) -> None:
    assert compared(report(before), report(after))["equal"]


@each("scores, change", [((2, 4), "up"), ((4, 2), "down"), ((3, 3), "equal")])
def test_a_criterion_goes_up_or_down_with_the_evidence_that_changed(scores: tuple[int, int], change: str) -> None:
    absent, there = item(found=False), item(location="a.py:3")
    found = compared(report(absent, score=scores[0]), report(there, score=scores[1]))
    (one,) = found["criteria"]
    assert (found["equal"], one["change"], (one["a"], one["b"])) == (False, change, scores)
    assert [places(one[key]) for key in ("gone", "new")] == [[(False, ".")], [(True, "a.py:3")]]


def test_a_criterion_of_one_rubric_alone_is_added_or_removed() -> None:
    small, large = report(), report(ids=("one", "two"))
    assert [(one["dimension_id"], one["change"]) for one in compared(small, large)["criteria"]] == [("two", "added")]
    assert [(one["dimension_id"], one["change"]) for one in compared(large, small)["criteria"]] == [("two", "removed")]


def places(shown: list[dict[str, Any]]) -> list[tuple[bool, str]]:
    return [(one["found"], one["location"]) for one in shown]
