"""How long the console takes for a page, at three lengths of log: answered in process, without network and guard.

Each length is a process of its own. A page that has to look through the log does so for a bounded time, and says where
it stopped; so no page may take much longer than that, however long the log is.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import msgspec

from benchmarks.harness import Bench, Row, Spread, child, peak_memory
from benchmarks.workload import write_steps
from pmagent.console.auth.entrance import Visitor
from pmagent.events.evidence import evidence

BOUND_SECONDS = 4.0
"""No page may take longer: two looks of two seconds, and making it."""
QUICK_SECONDS = 0.25
"""So long at most may take what needs not look through the log."""
QUICK = ("the newest events", "events since a position", "an event by its id, a decision", "integrity")

FIRST = "the first page, with figures of a week"
SHORT = 1_000
FIRST_TIMES = 2.0
"""So many times the time of the shortest log may the first page take."""

Send = Callable[[dict[str, Any]], Awaitable[None]]


def run(bench: Bench) -> list[Row]:
    """Three lengths of log, each page so and so often."""
    found: dict[int, dict[str, list[float]]] = {}
    memory: dict[int, float] = {}
    sizes = (SHORT, *bench.sizes)
    for size in sizes:
        write_steps(evidence(bench.folder / f"w-{size}").log, size)
        told = child("console_pages", bench.folder / f"w-{size}", size, bench.runs)
        found[size], memory[size] = told["pages"], told["memory"]
    rows = []
    largest = bench.sizes[-1]
    for name in found[largest]:
        limit = 1000 * (QUICK_SECONDS if name in QUICK else BOUND_SECONDS)
        figures = {size: Spread.of([1000 * seconds for seconds in found[size][name]]) for size in bench.sizes}
        shorter = ", ".join(f"of {size:,}: {figures[size].median:.0f} ms" for size in bench.sizes[:-1])
        rows.append(
            Row(
                what=f"console: {name}, log of {largest:,} events", figure=figures[largest], unit="ms",
                target=f"<= {limit:.0f} ms", reached=figures[largest].median <= limit, note=shorter,
            )
        )  # fmt: skip
    first = {size: Spread.of([1000 * seconds for seconds in found[size][FIRST]]).median for size in sizes}
    ratio = first[largest] / first[SHORT]
    rows.append(
        Row(
            what=f"console: {FIRST}, log of {largest:,} events against one of {SHORT:,}",
            figure=Spread.of([ratio]), unit="times", target=f"<= {FIRST_TIMES:g} times", reached=ratio <= FIRST_TIMES,
            note=", ".join(f"of {size:,}: {median:.1f} ms" for size, median in first.items()),
        )
    )  # fmt: skip
    peak = Spread.of([memory[largest] / 2**20])
    shorter = ", ".join(f"of {size:,}: {memory[size] / 2**20:.0f} MiB" for size in bench.sizes[:-1])
    growth = memory[largest] / memory[bench.sizes[0]]
    rows.append(
        Row(
            what=f"console: peak memory of these, log of {largest:,} events", figure=peak, unit="MiB",
            target="<= 1.5 times that of the shortest", reached=growth <= 1.5, note=shorter,
        )
    )  # fmt: skip
    return rows


def _addresses(size: int) -> dict[str, str]:
    middle = size // 2
    return {
        "the newest events": "/log",
        "events of a type that is rare": "/log?type=log.created",
        "events with a text that is rare": "/log?grep=step+of+nobody",
        "events since a position": f"/log?after={middle}&n=500",
        "an event in the middle": f"/log/{middle}",
        "the first event, and all that may have come of it": "/log/2",
        "an event by its id, a decision": f"/log/find?id={middle // 6 * 6 + 2}.steps.0",
        "an event by its id, a fact": f"/log/find?id=step-{middle // 6}",
        "sessions": "/sessions",
        "runs": "/runs",
        "audits": "/audits",
        "integrity": "/integrity",
    }


async def _seconds(app: Any, address: str) -> float:
    """How long the answer to a GET takes, with all requests that it leads on to; it has something to say."""
    whole = 0.0
    while True:
        took, further = await _asked(app, address)
        whole += took
        if not further.startswith("/log/find"):
            return whole
        address = further


async def _asked(app: Any, address: str) -> tuple[float, str]:
    """How long one answer takes, and where it leads to."""
    status, size, further = 0, 0, ""
    path, _, query = address.partition("?")

    async def send(message: dict[str, Any]) -> None:
        nonlocal status, size, further
        status = message.get("status", status)
        further = dict(message.get("headers", ())).get(b"location", further.encode()).decode()
        size += len(message.get("body", b""))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
        "headers": [(b"host", b"127.0.0.1")], "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1),
        "state": {"visitor": Visitor("ada", "approve", "s" * 64, "token", "2026-11-22T12:00:00.000000Z")},
    }  # fmt: skip
    start = time.perf_counter()
    await app(scope, receive, send)
    took = time.perf_counter() - start
    assert status in (200, 303), f"{address}: {status}"
    return took, further


async def _measure(workspace: Path, size: int, runs: int) -> dict[str, Any]:
    from pmagent.console.app import Positioned, application
    from pmagent.console.pages.context import PageContext

    context = PageContext(workspace)
    app = Positioned(application(context), context)
    await _seconds(app, "/log")  # modules and templates are loaded once
    pages: dict[str, list[float]] = {}
    for name, address in _addresses(size).items():
        pages[name] = [await _seconds(app, address) for _ in range(runs)]
    pages[FIRST] = await _first_page(workspace, runs)
    return {"pages": pages, "memory": peak_memory()}


async def _first_page(workspace: Path, runs: int) -> list[float]:
    """The first page with a daemon's answers: what it says is of one size however long the log is, as the projection of
    figures and the status are. So each look costs what the console itself does."""
    from pmagent.console.app import Positioned, application
    from pmagent.console.pages.context import PageContext
    from pmagent.events.errors import PmagentError
    from pmagent.events.log import now
    from pmagent.projections.figures import HOURS_MAX, Hour
    from pmagent.service.answer import Answer

    last = datetime.fromisoformat(now()[:13] + ":00:00")
    hours = [(last - timedelta(hours=back)).isoformat()[:13] for back in range(HOURS_MAX)]
    figures = [msgspec.to_builtins(Hour(hour=name, tasks=9, jobs=3, failed=1, job_s=40.0)) for name in hours[::-1]]

    class Told(PageContext):
        async def standing(self, operation: str) -> Answer:
            """The figures; nothing else is told."""
            if operation != "figures":
                raise PmagentError("nobody says it here")
            return Answer(document={"hours": figures})

    context = Told(workspace)
    app = Positioned(application(context), context)
    await _seconds(app, "/?span=7d")
    return [await _seconds(app, "/?span=7d") for _ in range(max(runs, 5))]


if __name__ == "__main__":
    print(json.dumps(anyio.run(_measure, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
