from statistics import mean

from .types import Ballot, Docket


def decide(docket: Docket, criterion: str, ballots: dict[str, Ballot]) -> float:
    score = mean(b.score for b in ballots.values())
    if criterion == "security" and any(e.kind in ("danger", "secret") for e in docket.exhibits):
        score = min(score, 3.0)
    return round(score, 1)


def spread(ballots: dict[str, Ballot]) -> int:
    scores = [b.score for b in ballots.values()]
    return max(scores) - min(scores)


def dissent(docket: Docket) -> list[str]:
    lines = []
    for criterion, ballots in docket.ballots.items():
        scores = {judge: b["score"] for judge, b in ballots.items()}
        if max(scores.values()) - min(scores.values()) > 2:
            lines.append(f"{criterion}: " + ", ".join(f"{j} {s}" for j, s in scores.items()))
    return lines


def markdown(docket: Docket) -> str:
    out = [f"# Verdict: {docket.url}", ""]
    for criterion, score in docket.final.items():
        out.append(f"## {criterion}: {score}")
        for judge, ballot in docket.ballots[criterion].items():
            out.append(f"- **{judge}** ({ballot['score']}): {ballot['argument']}")
        out.append("")
    if docket.errors:
        out += ["## Not available", *[f"- {e}" for e in docket.errors]]
    return "\n".join(out)
