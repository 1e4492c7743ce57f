"""The course of an examination."""
from __future__ import annotations

import asyncio
from pathlib import Path

from openai import AsyncOpenAI

from . import samples as take
from .examiners import QUESTIONS, examine
from .forms import Grade, Role, Sample, Signed
from .grading import grade_all


async def gather_samples(lib: Path, paper: Path | None) -> list[Sample]:
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(take.from_log(lib)),
            group.create_task(take.from_code(lib)),
            group.create_task(take.from_paper(paper)),
        ]
    return [sample for task in tasks for sample in task.result()]


async def gather_ballots(client: AsyncOpenAI, found: list[Sample]) -> dict[str, Signed]:
    ballots: dict[str, Signed] = {}
    seats = asyncio.Semaphore(6)

    async def one(role: Role, question: str) -> None:
        async with seats:
            ballots[question] = await examine(client, role, question, found)

    async with asyncio.TaskGroup() as group:
        for question in QUESTIONS:
            for role in Role:
                group.create_task(one(role, question))
    return ballots


async def examination(place: str, paper: Path | None) -> list[Grade]:
    async with take.checkout(place) as lib:
        found = await gather_samples(lib, paper)
    ballots = await gather_ballots(AsyncOpenAI(max_retries=2), found)
    return grade_all(list(ballots.values()), found)
