"""Rules. The order matters: evidence, weights, dissent, alarm."""
from __future__ import annotations

from collections.abc import Sequence

from .examiners import QUESTIONS
from .forms import Grade, Role, Sample, Signed

ALARM_CAP = 3
DISSENT = 2


def weight(role: Role, question: str) -> int:
    return 3 if role is Role.TECH_LEAD and question in ("safety", "quality") else 1


def with_evidence(votes: Sequence[Signed], samples: Sequence[Sample]) -> list[Signed]:
    known = {s.id for s in samples}
    return [v for v in votes if known & set(v.ballot.samples)]


def grade(question: str, votes: Sequence[Signed], samples: Sequence[Sample]) -> Grade:
    counted = with_evidence(votes, samples)
    if not counted:
        return Grade(question, 1, ["no vote is backed by a sample"])
    total = sum(weight(v.role, question) for v in counted)
    result = Grade(question, round(sum(weight(v.role, question) * v.ballot.grade for v in counted) / total))
    grades = [v.ballot.grade for v in counted]
    if max(grades) - min(grades) > DISSENT:
        # far apart: leave the extremes out and look again
        middle = sorted(grades)[1:-1] or [min(grades)]
        result.value = round(sum(middle) / len(middle))
        result.remarks += [f"{v.role} ({v.ballot.grade}): {v.ballot.reason}" for v in counted]
    if question == "safety" and any(s.alarm for s in samples) and result.value > ALARM_CAP:
        result.value = ALARM_CAP
        result.remarks.append("capped: unsafe calls")
    return result


def grade_all(votes: Sequence[Signed], samples: Sequence[Sample]) -> list[Grade]:
    return [grade(question, [v for v in votes if v.question == question], samples) for question in QUESTIONS]
