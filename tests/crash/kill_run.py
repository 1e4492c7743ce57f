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
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from pmagent.actors.kernel import reader
from pmagent.contracts.orchestra import PlanText
from pmagent.contracts.orchestra_events import RunRequested
from pmagent.events.event import Event
from pmagent.service.host import open_host
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
    kind, _, count = kill.partition(":")
    left = int(count or 0)
    async with open_host(workspace, "daemon") as host:

        def hear(events: Sequence[Event], _sums: Any) -> None:
            nonlocal left
            for event in events:
                if event.type == "task.attempt_requested":
                    os.write(told, b"began\n")
                if event.type == kind:
                    left -= 1
                    if left == 0:
                        os.kill(os.getpid(), signal.SIGKILL)

        host.runtime.listen(hear)
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


def play(workspace: Path, run_id: str, retries: int, kill: str) -> str:
    """Fork, kill, and say how it ended."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        reader.QUIET_S = 0.0  # nobody writes surfaces here
        try:
            anyio.run(carry_out, workspace, run_id, retries, kill, write_end)
            os._exit(0)
        finally:  # it never returns
            traceback.print_exc()
            os._exit(70)
    os.close(write_end)
    seen: list[int] = []
    if kill[:1].isdigit() and os.read(read_end, 1):  # nothing: it has ended without an attempt
        time.sleep(float(kill))
        seen = working(run_id)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(read_end)
    return f"{os.waitstatus_to_exitcode(status)} {len(seen)}"


def main() -> None:
    """See the module."""
    for line in sys.stdin:
        run_id, retries, kill = line.split()
        os.write(1, f"{play(Path(sys.argv[1]), run_id, int(retries), kill)}\n".encode())


if __name__ == "__main__":
    main()
