"""The scores become one by rules, not by another model."""

from statistics import median_low

from depcheck.state import State, Verdict

NO_LICENCE_CAP = 2
SPREAD = 2


def decide(state: State) -> dict:
    """Median of the reviews; no licence caps it; a wide spread is told."""
    scores = {name: review.score for name, review in state["reviews"].items()}
    score = median_low(scores.values())
    rules = ["median"]
    if any(fact.inspector == "licence" and not fact.good for fact in state["facts"]) and score > NO_LICENCE_CAP:
        score = NO_LICENCE_CAP
        rules.append("no_licence_cap")
    dissent = None
    if max(scores.values()) - min(scores.values()) > SPREAD:
        low, high = min(scores, key=scores.__getitem__), max(scores, key=scores.__getitem__)
        dissent = f"the {low} gave {scores[low]}, the {high} {scores[high]}"
        rules.append("dissent")
    return {"verdict": Verdict(score=score, rules=rules, dissent=dissent)}


def markdown(state: State) -> str:
    """The verdict as a page."""
    verdict = state["verdict"]
    lines = [f"# {state['url']}", "", f"**{verdict.score}/5** ({', '.join(verdict.rules)})", ""]
    lines += [f"- {fact.inspector}: {fact.text}" for fact in state["facts"]]
    lines += [f"- {name}: {review.score}, {'; '.join(review.reasons)}" for name, review in state["reviews"].items()]
    return "\n".join([*lines, "", f"Dissent: {verdict.dissent or 'none'}", ""])
