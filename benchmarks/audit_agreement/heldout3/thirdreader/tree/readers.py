"""Three readers, three chairs."""
import asyncio

from openai import AsyncOpenAI
from pydantic import BaseModel, Field

MODEL = "gpt-4o-mini"
client = None

CHAIRS = {
    "strict": "You are a strict reader. You look for everything that is missing.",
    "kind": "You are a kind reader. You look for everything that was meant well.",
    "practical": "You are a practical reader. You look at whether it would work.",
}


class Reading(BaseModel):
    score: int = Field(ge=1, le=5)
    reason: str


async def read(chair: str, question: str, facts: list) -> dict:
    global client
    if client is None:
        client = AsyncOpenAI(timeout=60)
    listing = "\n".join(f"- {f['what']} ({f['where']})" for f in facts)
    done = await client.beta.chat.completions.parse(
        model=MODEL,
        temperature=0.3,
        messages=[
            {"role": "system", "content": CHAIRS[chair]},
            {"role": "user", "content": f"{question}\n\nFacts:\n{listing}\n\nScore 1 to 5."},
        ],
        response_format=Reading,
    )
    reading = done.choices[0].message.parsed
    return {"chair": chair, "score": reading.score, "reason": reading.reason}


async def panel(question: str, facts: list) -> list:
    """All three at once, nobody sees the others."""
    async with asyncio.TaskGroup() as tg:
        tasks = [tg.create_task(read(c, question, facts)) for c in CHAIRS]
    return [t.result() for t in tasks]
