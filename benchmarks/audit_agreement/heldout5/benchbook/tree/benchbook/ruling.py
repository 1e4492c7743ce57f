"""The presiding judge is arithmetic."""

from __future__ import annotations

from .records import Case, Criterion, Finding, Opinion, Ruling

WEIGHT = {"prosecutor": 1.0, "defence": 1.0, "engineer": 2.0}
CAP = 3
APART = 2


def rule(criterion: Criterion, opinions: list[Opinion], findings: list[Finding]) -> Ruling:
    mine = [one for one in opinions if one.criterion == criterion.id]
    seen = [one for one in findings if one.criterion == criterion.id]
    notes: list[str] = []
    holding = {one.id for one in seen if one.holds}
    weights = {}
    for one in mine:
        weights[one.role] = WEIGHT[one.role]
        if one.vote.score >= 4 and not holding & set(one.vote.cites):
            weights[one.role] = 0.0
            notes.append(f"The {one.role} gives {one.vote.score} without a finding that holds; it does not count.")
    counted = [(one, weights[one.role]) for one in mine if weights[one.role]]
    if not counted:
        score = 1 if seen and not holding else 2
        notes.append("No vote counts: the score follows from the findings alone.")
    else:
        score = round(sum(one.vote.score * weight for one, weight in counted) / sum(weight for _, weight in counted))
    votes = {one.role: one.vote.score for one in mine}
    if votes and max(votes.values()) - min(votes.values()) > APART:
        low, high = min(votes, key=votes.__getitem__), max(votes, key=votes.__getitem__)
        share = len(holding) / len(seen) if seen else 0.0
        score = min(score, 3) if share < 0.5 else score
        notes.append(f"Dissent: {high} gives {votes[high]}, {low} gives {votes[low]}; looked at again, "
                     f"{len(holding)} of {len(seen)} findings hold.")
        notes += [f"{one.role}: {one.vote.reason}" for one in mine if one.role in (low, high)]
    flaws = [one.place for one in seen if one.flaw]
    if flaws and score > CAP:
        score = CAP
        notes.append(f"Capped at {CAP}: {', '.join(flaws)}.")
    return Ruling(criterion=criterion, score=score, votes=votes, notes=notes)


def overall(rulings: list[Ruling]) -> float:
    return sum(one.score * one.criterion.weight for one in rulings) / sum(one.criterion.weight for one in rulings)


def written(case: Case) -> str:
    lines = [f"# Verdict on {case.address}", "", f"Overall {overall(case.rulings):.1f} of 5", ""]
    lines += [f"Not investigated: {one}" for one in case.silent]
    for one in case.rulings:
        lines += ["", f"## {one.criterion.name}: {one.score}", ""]
        lines += [f"- {role}: {score}" for role, score in one.votes.items()]
        lines += [f"- {note}" for note in one.notes]
        lines += [f"- [{found.id}] {found.statement} ({found.place}): {'yes' if found.holds else 'no'}"
                  for found in case.findings if found.criterion == one.criterion.id]
    return "\n".join(lines) + "\n"
