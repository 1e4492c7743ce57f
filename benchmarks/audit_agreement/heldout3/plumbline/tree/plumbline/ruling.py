"""The ruling: rules only. No model is asked."""
from __future__ import annotations

import json
from pathlib import Path

from .records import Case, Criterion, Finding, Mark, Opinion

CAP = 3
APART = 2


def weight(opinion: Opinion, criterion: Criterion, findings: dict[str, Finding]) -> float:
    """An opinion without a finding that holds counts nothing; the engineer counts double on technical matters."""
    if not any(key in findings and (findings[key].found or findings[key].flaw) for key in opinion.cites):
        return 0.0
    return 2.0 if criterion.technical and opinion.seat == "engineer" else 1.0


def rule(criterion: Criterion, opinions: list[Opinion], findings: dict[str, Finding]) -> Mark | None:
    mine = [one for one in opinions if one.criterion == criterion.id]
    if not mine:
        return None
    weights = [weight(one, criterion, findings) for one in mine]
    reasons = [f"{one.seat}: not counted, cites nothing that was found"
               for one, much in zip(mine, weights, strict=True) if not much]
    if not any(weights):
        return Mark(criterion=criterion.id, score=1, reasons=[*reasons, "no opinion rests on evidence"])
    counted = [(one, much) for one, much in zip(mine, weights, strict=True) if much]
    scores = [one.score for one, _ in counted]
    dissent = ""
    if max(scores) - min(scores) > APART:
        # far apart: the middle one decides, and the outer two are quoted
        scores.sort()
        score = scores[len(scores) // 2] if len(scores) > 2 else min(scores)
        dissent = " / ".join(f"{one.seat} {one.score}: {one.argument}" for one, _ in counted)
        reasons.append("the judges were far apart; the middle score stands")
    else:
        score = round(sum(one.score * much for one, much in counted) / sum(much for _, much in counted))
    flaws = [one for one in findings.values() if one.flaw and any(one.key in each.cites for each, _ in counted)]
    if flaws and score > CAP:
        score = CAP
        reasons.append("capped: " + "; ".join(f"{one.what} ({one.place})" for one in flaws))
    return Mark(criterion=criterion.id, score=score, reasons=reasons, dissent=dissent)


def total(marks: list[Mark], criteria: list[Criterion]) -> float:
    much = {one.id: one.weight for one in criteria}
    whole = sum(much[mark.criterion] for mark in marks)
    return sum(mark.score * much[mark.criterion] for mark in marks) / whole if whole else 0.0


def chief(case: Case) -> Case:
    ruled = [rule(one, case.get("opinions", []), case["findings"]) for one in case["criteria"]]
    marks = [mark for mark in ruled if mark is not None]
    missing = [one.id for one, mark in zip(case["criteria"], ruled, strict=True) if mark is None]
    return {"marks": marks, "exit_code": 0, "troubles": [f"not judged: {', '.join(missing)}"] if missing else []}


def publish(case: Case) -> Case:
    out = Path(case["out"])
    out.mkdir(parents=True, exist_ok=True)
    marks, troubles = case.get("marks", []), case.get("troubles", [])
    mean = total(marks, case["criteria"])
    lines = [f"# Marks for {case['url']}", "", f"Overall: {mean:.1f} of 5", ""]
    for mark in marks:
        lines += [f"## {mark.criterion}: {mark.score}", "", *(f"- {reason}" for reason in mark.reasons), ""]
        if mark.dissent:
            lines += [f"Dissent: {mark.dissent}", ""]
    if troubles:
        lines += ["## Troubles", "", *(f"- {trouble}" for trouble in troubles), ""]
    (out / "marks.md").write_text("\n".join(lines), "utf-8")
    (out / "marks.json").write_text(json.dumps(
        {"url": case["url"], "overall": mean, "marks": [mark.model_dump() for mark in marks], "troubles": troubles},
        indent=2), "utf-8")
    return {}
