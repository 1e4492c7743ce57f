"""A daemon that appends on demand: ``python -m benchmarks.console_daemon WORKSPACE``, for ``console_load``.

It is the daemon that ``pmagent up`` is, console and all. Each line of its input is JSON: ``{"offer": COUNT, "rate": PER
SECOND}`` appends so many facts, evenly, each answered by itself, and answers with the seconds that each took and with
the log's last position; rate 0: as fast as they go in.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

from benchmarks.workload import Noted, note
from pmagent.cli.messages import log_through
from pmagent.cli.output import Output
from pmagent.service.daemon import serve
from pmagent.service.host import Host

AT_ONCE = 512


def main(workspace: str) -> int:
    """Serve until the input ends."""
    log_through(Output.standard())  # to stderr, as pmagent up does
    tasks: list[asyncio.Task[None]] = []
    return serve(Path(workspace), lambda host: tasks.append(asyncio.get_running_loop().create_task(_obey(host))))


async def _obey(host: Host) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    _say({"position": host.tail.position})
    count = 0
    while line := await reader.readline():
        asked = json.loads(line)
        times = await _offer(host, count, asked["offer"], asked["rate"])
        count += asked["offer"]
        _say({"times": times, "position": host.tail.position})
    os.kill(os.getpid(), signal.SIGTERM)


async def _offer(host: Host, start: int, count: int, rate: float) -> list[float]:
    if not rate:
        for first in range(start, start + count, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, start + count))
            await asyncio.gather(*(_append(host, n) for n in numbers))
        return []
    begin = time.perf_counter() + 0.01
    appends = []
    for n in range(count):
        await asyncio.sleep(max(0.0, begin + n / rate - time.perf_counter()))
        appends.append(asyncio.create_task(_append(host, start + n)))
    return await asyncio.gather(*appends)


async def _append(host: Host, n: int) -> float:
    called = time.perf_counter()
    await host.runtime.append(Noted(n=n, note=note(n)), f"bench-{n}", "bench")
    return time.perf_counter() - called


def _say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
