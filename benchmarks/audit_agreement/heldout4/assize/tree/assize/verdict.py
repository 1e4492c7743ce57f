"""The ruling: rules only, no model."""

from .state import Case, Criterion, Exhibit, Opinion, Verdict

CAP = 3
WIDE = 2


def weight(opinion: Opinion) -> float:
    """The engineer counts double; an opinion that cites nothing counts a quarter."""
    return (2.0 if opinion.judge == "engineer" else 1.0) * (1.0 if opinion.finding.cites else 0.25)


def rule(criterion: Criterion, opinions: list[Opinion], exhibits: list[Exhibit]) -> Verdict:
    mine = [one for one in opinions if one.criterion == criterion.id]
    if not mine:
        return Verdict(criterion=criterion, score=1, reasons=["no judge gave a valid opinion"])
    total = sum(weight(one) for one in mine)
    score = round(sum(one.finding.score * weight(one) for one in mine) / total)
    reasons = [f"weighted mean of {len(mine)} opinions: {score}"]
    low = min(mine, key=lambda one: one.finding.score)
    high = max(mine, key=lambda one: one.finding.score)
    dissent = ""
    if high.finding.score - low.finding.score > WIDE:
        dissent = (f"{low.judge} gave {low.finding.score} ({low.finding.argument}); "
                   f"{high.judge} gave {high.finding.score} ({high.finding.argument})")
        grounded = [one for one in mine if one.finding.cites]
        if grounded:
            best = max(grounded, key=lambda one: len(set(one.finding.cites)))
            score = round((score + best.finding.score) / 2)
            reasons.append(f"far apart, so drawn towards {best.judge}, whose opinion cites most: {score}")
    flaws = [one.place for one in exhibits if one.criterion == criterion.id and one.flaw]
    if flaws and score > CAP:
        score = CAP
        reasons.append(f"capped at {CAP} by {', '.join(flaws[:5])}")
    return Verdict(criterion=criterion, score=score, reasons=reasons, dissent=dissent)


def ruling(case: Case) -> dict:
    return {"verdicts": [rule(one, case["opinions"], case["exhibits"]) for one in case["criteria"]]}


def as_markdown(case: Case) -> str:
    verdicts = case["verdicts"]
    whole = sum(one.score * one.criterion.weight for one in verdicts) / sum(one.criterion.weight for one in verdicts)
    lines = [f"# Verdict on {case['url']}", "", f"Overall {whole:.1f} of 5", ""]
    for one in verdicts:
        lines += [f"## {one.criterion.title}: {one.score}", "", *[f"- {reason}" for reason in one.reasons]]
        if one.dissent:
            lines += ["", f"Dissent: {one.dissent}"]
        lines += ["", *[f"> {opinion.judge}: {opinion.finding.argument} {opinion.finding.cites}"
                        for opinion in case["opinions"] if opinion.criterion == one.criterion.id], ""]
    return "\n".join(lines)
