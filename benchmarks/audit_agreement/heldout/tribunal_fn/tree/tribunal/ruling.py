"""Rules only. If you find yourself importing a model here, stop."""
import json
from pathlib import Path

from .schemas import Ballot, Exhibit, Role, Verdict

CAP = 3
WIDE = 2
WEIGHTS = {Role.PROSECUTOR: 1.0, Role.DEFENDER: 1.0, Role.ENGINEER: 1.5}


def weighted(ballots: list[Ballot]) -> float:
    total = sum(WEIGHTS[b.role] for b in ballots)
    return sum(WEIGHTS[b.role] * b.vote.score for b in ballots) / total


def supported(ballots: list[Ballot], known: set[str]) -> list[Ballot]:
    """Fact supremacy: a vote counts when at least one exhibit it names exists."""
    return [b for b in ballots if known & set(b.vote.exhibits)] or ballots


def spread(ballots: list[Ballot]) -> int:
    votes = [b.vote.score for b in ballots]
    return max(votes) - min(votes)


def rule(criterion: str, ballots: list[Ballot], exhibits: list[Exhibit], reheard: bool, verdict: Verdict) -> None:
    remarks = verdict.remarks.setdefault(criterion, [])
    kept = supported(ballots, {e.name for e in exhibits})
    score = weighted(kept)
    if reheard:
        remarks.append("heard twice because the first votes were far apart")
    if spread(ballots) > WIDE:
        score = min(score, weighted([b for b in kept if b.role is not Role.DEFENDER] or kept))
        for b in ballots:
            remarks.append(f"{b.role.value} ({b.vote.score}): {b.vote.argument}")
    if any(e.name == "danger" and not e.ok for e in exhibits) and score > CAP:
        remarks.append(f"unsafe calls: capped at {CAP}")
        score = CAP
    verdict.scores[criterion] = max(1, min(5, int(score + 0.5)))


def write(verdict: Verdict, exhibits: list[Exhibit], folder: Path = Path("out")) -> None:
    folder.mkdir(exist_ok=True)
    lines = ["# Verdict", ""]
    for criterion, score in verdict.scores.items():
        lines += [f"## {criterion}: {score}/5", *[f"- {r}" for r in verdict.remarks.get(criterion, [])], ""]
    lines += ["## Exhibits that failed", *[f"- {e.name}: {e.text}" for e in exhibits if not e.ok]]
    (folder / "verdict.md").write_text("\n".join(lines))
    (folder / "verdict.json").write_text(json.dumps(verdict.scores, indent=1))
