from pathlib import Path

from langchain_openai import ChatOpenAI
from pydantic import BaseModel


class Final(BaseModel):
    score: float


def ask_model(opinions):
    """A second view, for comparison in experiments."""
    return ChatOpenAI(model="gpt-4o").with_structured_output(Final).invoke(str(opinions)).score


def by_rules(opinions, clues):
    backed = [o for o in opinions if set(o.places) & {c.place for c in clues}] or opinions
    scores = {o.judge: o.score for o in backed}
    if max(scores.values()) - min(scores.values()) > 2:
        score = scores.get("tech_lead", min(scores.values()))
    else:
        score = (sum(scores.values()) + scores.get("tech_lead", 0)) / (len(scores) + ("tech_lead" in scores))
    return min(score, 3) if any("os.system(" in c.text for c in clues) else score


def chief_justice(state):
    score = by_rules(state["opinions"], state["clues"])
    lines = [f"# {state['url']}", f"Score {score:.1f}"] + [f"- {o.judge} ({o.score}): {o.argument}" for o in state["opinions"]]
    Path("verdict.md").write_text("\n".join(lines))
    return {"score": score}
