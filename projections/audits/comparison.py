"""The reports of two audits held against each other: criteria that went up or down, evidence that changed; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pmagent.actors.audit.goals import GOALS, goal_id
from pmagent.contracts.audit import AuditReport, Evidence


def compared(a: AuditReport, b: AuditReport) -> dict[str, Any]:
    """The differences in ``b``. ``criteria`` holds only those with another score, or other evidence."""
    names = {one.dimension_id: one.dimension_name for report in (a, b) for one in _all(report)}
    scores_a, scores_b = _scores(a), _scores(b)
    criteria = []
    for name, title in names.items():
        gone, new = _changed(a.evidence.get(name, ()), b.evidence.get(name, ()))
        change = _change(name, scores_a, scores_b)
        if change != "equal" or gone or new:
            criteria.append({
                "dimension_id": name, "name": title, "change": change,
                "a": scores_a.get(name), "b": scores_b.get(name), "gone": gone, "new": new,
            })  # fmt: skip
    same_rubric = (a.rubric_name, a.rubric_version) == (b.rubric_name, b.rubric_version)
    return {
        "equal": not criteria and a.overall_score == b.overall_score,
        "a": _head(a), "b": _head(b), "same_rubric": same_rubric, "criteria": criteria,
    }  # fmt: skip


def _all(report: AuditReport) -> Iterator[Any]:
    yield from report.criteria
    yield from report.not_judged


def _head(report: AuditReport) -> dict[str, Any]:
    return {
        "audit_id": report.audit_id, "repo_url": report.repo_url, "commit": report.commit, "engine": report.engine,
        "overall_score": report.overall_score,
    }  # fmt: skip


def _scores(report: AuditReport) -> dict[str, int | None]:
    return {one.dimension_id: getattr(one, "final_score", None) for one in _all(report)}


def _change(name: str, a: dict[str, int | None], b: dict[str, int | None]) -> str:
    """up, down, equal; added, removed: of the rubric; judged, not judged: only one of the audits could."""
    if name not in a or name not in b:
        return "added" if name in b else "removed"
    before, after = a[name], b[name]
    if before is None or after is None:
        return "equal" if before == after else "judged" if before is None else "not judged"
    return "equal" if before == after else "up" if after > before else "down"


def _changed(a: Sequence[Evidence], b: Sequence[Evidence]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The evidence that only one of them has."""
    known_a, known_b = _known(a), _known(b)
    gone = [_shown(item) for key, item in known_a.items() if key not in known_b]
    return gone, [_shown(item) for key, item in known_b.items() if key not in known_a]


def _known(items: Sequence[Evidence]) -> dict[tuple[str, bool, str], Evidence]:
    """The evidence of a goal, by what must be equal. A commit is another one each time, and is left out."""
    found = {}
    for item in items:
        goal = GOALS.get(goal_id(item.goal))
        if goal is None or goal.kind != "context":
            path, _, line = item.location.rpartition(":")
            place = path if line.isdecimal() else item.location
            is_commit = len(place) in (40, 64) and set(place) <= set("0123456789abcdef")
            found[item.goal, item.found, "" if is_commit else place] = item
    return found


def _shown(item: Evidence) -> dict[str, Any]:
    return {"goal": item.goal, "found": item.found, "location": item.location}
