"""The alderman rules."""
from __future__ import annotations

from pathlib import Path

from langchain_anthropic import ChatAnthropic
from pydantic import BaseModel, Field

from .state import TOPICS, Ballot, Exhibit, Hall, Ruling


class Sentence(BaseModel):
    score: int = Field(ge=1, le=5)
    grounds: str


def weigh(ballots: list[Ballot], exhibits: list[Exhibit]) -> tuple[int, list[str]]:
    """Evidence above opinion, the craftsman twice, a cap at 3 for a danger."""
    known = {exhibit.number: exhibit for exhibit in exhibits}
    grounds, much, points = [], 0, 0
    for ballot in ballots:
        if not any(number in known for number in ballot.vote.exhibits):
            grounds.append(f"{ballot.master} cites nothing and is not heard")
            continue
        factor = 2 if ballot.master == "craftsman" else 1
        much, points = much + factor, points + factor * ballot.vote.score
    score = round(points / much) if much else 1
    if any(exhibit.danger for exhibit in exhibits) and score > 3:
        score = 3
        grounds.append("capped at 3 for a danger")
    return score, grounds


async def alderman(hall: Hall) -> dict:
    model = ChatAnthropic(model="claude-sonnet-4-5", temperature=0, max_tokens=600).with_structured_output(Sentence)
    rulings = []
    for topic in TOPICS:
        ballots = [ballot for ballot in hall.ballots if ballot.topic == topic]
        exhibits = [exhibit for exhibit in hall.exhibits if exhibit.topic == topic]
        if not ballots:
            continue
        score, grounds = weigh(ballots, exhibits)
        heard = "\n".join(f"{b.master} gives {b.vote.score}: {b.vote.argument}" for b in ballots)
        sentence = await model.ainvoke(
            f"You are the alderman. Topic: {topic}. The masters say:\n{heard}\n\n"
            "Think it over and give the final score from 1 to 5 with your grounds."
        )
        scores = [ballot.vote.score for ballot in ballots]
        dissent = heard if max(scores) - min(scores) > 2 else ""
        rulings.append(Ruling(topic=topic, score=sentence.score, grounds=[sentence.grounds], dissent=dissent))
    return {"rulings": rulings}


async def scribe(hall: Hall) -> dict:
    lines = [f"# Ruling on {hall.url}", ""]
    for ruling in hall.rulings:
        lines += [f"## {ruling.topic}: {ruling.score}", *(f"- {ground}" for ground in ruling.grounds)]
        if ruling.dissent:
            lines += ["", "The masters disagree:", "", ruling.dissent]
        lines.append("")
    if not hall.rulings:
        lines += ["No ruling was given.", ""]
    lines += [f"- complaint: {complaint}" for complaint in hall.complaints]
    Path("ruling.md").write_text("\n".join(lines), "utf-8")
    return {}
