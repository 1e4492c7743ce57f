import os

from openai import AsyncOpenAI

from .types import Ballot, Exhibit

PROMPT = """You are a {mood} judge of a hackathon. Read the exhibits and score the criterion from 1 to 5.
Name the exhibits on which your score rests.

Criterion: {criterion}

Exhibits:
{exhibits}"""

MOODS = {"prosecutor": "strict", "defence": "lenient", "tech_lead": "balanced"}

_client = None


def client() -> AsyncOpenAI:
    global _client
    if _client is None:
        _client = AsyncOpenAI(timeout=60, max_retries=2)
    return _client


async def vote(judge: str, criterion: str, exhibits: list[Exhibit]) -> Ballot:
    lines = "\n".join(f"- [{'ok' if e.ok else 'bad'}] {e.kind}: {e.claim} ({e.where})" for e in exhibits)
    answer = await client().beta.chat.completions.parse(
        model=os.getenv("QUORUM_MODEL", "gpt-4o-mini"),
        messages=[{"role": "user", "content": PROMPT.format(mood=MOODS[judge], criterion=criterion, exhibits=lines)}],
        response_format=Ballot,
        temperature=0.3,
    )
    ballot = answer.choices[0].message.parsed
    if ballot is None:
        raise ValueError(f"{judge} refused: {answer.choices[0].message.refusal}")
    return ballot
