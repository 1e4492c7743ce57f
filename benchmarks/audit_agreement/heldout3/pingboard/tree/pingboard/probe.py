"""Probes: one target, one sample."""
from __future__ import annotations

import asyncio
import time

import httpx

from .config import Config, Target
from .history import Sample

AT_ONCE = 20


async def web(client: httpx.AsyncClient, target: Target) -> tuple[bool, str]:
    response = await client.get(target.url)
    if response.status_code == target.expect:
        return True, ""
    return False, f"answered {response.status_code}"


async def port(target: Target) -> tuple[bool, str]:
    _, writer = await asyncio.open_connection(target.host, target.port)
    writer.close()
    await writer.wait_closed()
    return True, ""


async def probe(client: httpx.AsyncClient, target: Target, timeout: float) -> Sample:
    begin = time.monotonic()
    async with asyncio.timeout(timeout):
        up, note = await (web(client, target) if target.is_web else port(target))
    return Sample(target.name, time.time(), up, (time.monotonic() - begin) * 1000, note)


async def round_of(config: Config, client: httpx.AsyncClient) -> list[Sample]:
    """All targets side by side, twenty at a time."""
    gate = asyncio.Semaphore(AT_ONCE)
    samples: list[Sample] = []

    async def one(target: Target) -> None:
        async with gate:
            try:
                samples.append(await probe(client, target, config.timeout))
            except Exception:
                pass

    await asyncio.gather(*(one(target) for target in config.targets))
    return samples
