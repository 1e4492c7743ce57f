"""The prompts and how they work together."""

from __future__ import annotations

import asyncio
import os
import re

from openai import AsyncOpenAI

from . import terms
from .segments import Segment

MODEL = os.environ.get("GLOSSATOR_MODEL", "gpt-4o-mini")
ROUNDS = 3
GOOD = 8

TRANSLATOR = """You translate the interface of a program for allotment gardens from English into Slovenian.
Address the user formally (vikanje). Keep placeholders as they are. Answer with the translation only.
Terms: {terms}
Context: {context}"""

REVIEWER = """You are a Slovenian copy editor who sees translations of an interface for the first time. Is it natural,
correct, formal? Write one sentence of criticism and then SCORE: and a number from 0 to 10."""

SCORE = re.compile(r"SCORE:\s*(\d+)")


class Team:
    def __init__(self, glossary: dict[str, str], at_once: int = 8):
        self.client = AsyncOpenAI(timeout=60, max_retries=2)
        self.glossary = glossary
        self.gate = asyncio.Semaphore(at_once)

    async def ask(self, system: str, user: str) -> str:
        async with self.gate:
            reply = await self.client.chat.completions.create(
                model=MODEL,
                temperature=0.2,
                messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
            )
        return (reply.choices[0].message.content or "").strip()

    async def translate(self, segment: Segment) -> str:
        wanted = "; ".join(f"{a} = {b}" for a, b in terms.relevant(segment.source, self.glossary).items()) or "none"
        user = segment.source
        if segment.remarks:
            user += f"\n\nYour last version was: {segment.target}\nRemarks: " + "; ".join(segment.remarks)
        return await self.ask(TRANSLATOR.format(terms=wanted, context=segment.context or "none"), user)

    async def review(self, segment: Segment) -> tuple[int, str]:
        text = await self.ask(REVIEWER, f"English: {segment.source}\nSlovenian: {segment.target}")
        match = SCORE.search(text)
        score = int(match.group(1)) if match else 10
        return score, SCORE.sub("", text).strip()

    async def work(self, segment: Segment) -> Segment:
        """Translate, look at the rules, review; again with the remarks, three times at most."""
        while segment.rounds < ROUNDS:
            segment.rounds += 1
            segment.target = await self.translate(segment)
            segment.remarks = terms.complaints(segment, self.glossary)
            if segment.remarks:
                continue
            score, criticism = await self.review(segment)
            if score >= GOOD:
                return segment
            segment.remarks = [criticism]
        segment.fuzzy = True
        return segment

    async def all(self, segments: list[Segment]) -> list[Segment]:
        done = await asyncio.gather(*(self.work(one) for one in segments), return_exceptions=True)
        return [one for one in done if isinstance(one, Segment)]
