"""Hosts that carry out a run, to be killed; each is a process of its own, made by fork so that many take seconds.

Started by ``test_run_kill.py`` as ``python -m tests.crash.kill_run WORKSPACE``. For each line ``RUN RETRIES KILL`` on
stdin a host opens, asks for the run or takes it up, and waits for its end; it is killed (``KILL``)

``never``     not at all
``SECONDS``   so long after the first attempt of its own was durable
``TYPE:N``    by itself, when its Nth event of this type has become durable

and one line on stdout says how it ended (its exit code), and how many processes of the run worked when it was killed
after so many seconds. Their command lines hold ``RUN``.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path

import anyio

from pmagent.actors.kernel import reader
from pmagent.contracts.orchestra import PlanText
from pmagent.contracts.orchestra_events import RunRequested
from pmagent.events.event import Event
from pmagent.service.host import open_host
from tests.support.forked import Fork, serve, signal_at
from tests.support.orchestra import config, plan
from tests.support.planners import command_line

ENDS = {"run.ended", "run.refused"}
WAITS = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": []}
SECONDS = 60.0


def given(run_id: str) -> PlanText:
    """Tasks that take a moment, and leave a file each; ``d`` reads those of two others."""
    script = (
        f': {run_id}; '
        'sleep 0.1; echo "$0" > "$ARTIFACTS/left"; '
        'for one in "$@"; do test "$(cat "/inputs/$one/left")" = "$one"; done'
    )
    return plan(WAITS, **{
        name: {"tools": ["sh"], "inputs": {"args": ["-ec", script, name, *waits]}}
        for name, waits in WAITS.items()
    })


async def carry_out(workspace: Path, run_id: str, retries: int, kill: str, told: int) -> None:
    """Open a host, and wait for the run's end."""
    async with open_host(workspace, "daemon") as host:

        def note(event: Event) -> None:
            if event.type == "task.attempt_requested":
                os.write(told, b"began\n")

        host.runtime.listen(signal_at(kill, note))
        await host.ready()
        settings = "whitelist_tools: [sh]\n"
        asked = RunRequested(
            run_id=run_id, intent="be killed", plan=given(run_id), config=config(settings, retries=retries, workers=3)
        )
        await host.ask(asked, run_id, ENDS, SECONDS)


def working(run_id: str) -> list[int]:
    """The processes that work for the run, or are being made to."""
    pids = [int(process.name) for process in Path("/proc").iterdir() if process.name.isdigit()]
    return [pid for pid in pids if any(run_id in word for word in command_line(pid))]


def play(workspace: Path, line: str) -> str:
    """Fork, kill, and say how it ended."""
    run_id, retries, kill = line.split()
    reader.QUIET_S = 0.0  # nobody writes surfaces here
    host = Fork(lambda told: anyio.run(carry_out, workspace, run_id, int(retries), kill, told))
    seen: list[int] = []
    if kill[:1].isdigit() and host.has_reported(1):  # else it has ended without an attempt
        time.sleep(float(kill))
        seen = working(run_id)
        host.kill(0.0)
    return f"{host.end()[0]} {len(seen)}"


if __name__ == "__main__":
    serve(partial(play, Path(sys.argv[1])))
