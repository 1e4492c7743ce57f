"""A thousand tasks that run ``true``, each in a real sandbox, through the daemon's parts; and how a start compares.

The engine's share is the processor time of this process (engine, log, blobs, documents, and the look at the machine
before each sandbox) in all that was spent; the rest is bubblewrap and the program.
"""

from __future__ import annotations

import asyncio
import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from benchmarks.harness import ROOT, Bench, Row, Spread, alternate, child
from benchmarks.plans import apart, request
from pmagent.actors.sandbox.runner import run as run_sandboxed
from pmagent.actors.sandbox.spec import SandboxSpec
from pmagent.service.daemon import spare_collector
from pmagent.service.host import open_host
from pmagent.workspace.trust import accept

WORKERS = 4
_BWRAP = (
    "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv",
    "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
    "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--", "/usr/bin/true",
)  # fmt: skip


def run(bench: Bench) -> list[Row]:
    """The run, and one start beside bare bubblewrap and a plain process."""
    if shutil.which("bwrap") is None:
        return []
    tasks = bench.count(1_000, 8)
    rates, share = [], []
    for turn in range(bench.runs):
        found = child("true_tasks", bench.folder / f"true-{turn}", tasks)
        rates.append(tasks / found["seconds"])
        share.append(found["own"] / (found["own"] + found["theirs"]))
    rate = Spread.of(rates)
    row = Row(
        what=f"{tasks:,} tasks that run `true`, each in its sandbox, {WORKERS} at once", figure=rate, unit="tasks/s",
        note=f"{Spread.of(share).median:.0%} of the processor time is ours, the rest bubblewrap's and the program's",
    )
    return [row, *_starts(bench)]


def _starts(bench: Bench) -> list[Row]:
    """Milliseconds of one `true`: in our sandbox, in a bare one, and without."""
    artifacts = bench.folder / "artifacts"
    artifacts.mkdir()
    spec = SandboxSpec(argv=("true",), artifacts=str(artifacts))

    async def sandboxed() -> None:
        outcome = await run_sandboxed(spec)
        assert outcome.exit_code == 0, outcome

    async def bare(command: tuple[str, ...]) -> None:
        done = await anyio.run_process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={})
        assert done.returncode == 0, done

    count = bench.count(40, 2)

    def timed(once: Callable[[], Any]) -> Callable[[], float]:
        async def several() -> float:
            start = time.perf_counter()
            for _ in range(count):
                await once()
            return (time.perf_counter() - start) / count * 1e3

        return lambda: asyncio.run(several())

    ours, bwrap, plain = map(Spread.of, alternate(
        bench.runs, timed(sandboxed), timed(lambda: bare(_BWRAP)), timed(lambda: bare(("/usr/bin/true",)))
    ))
    return [
        Row(what="one `true` in a sandbox, look at the machine and limits included", figure=ours, unit="ms",
            beside=beside, limit=limit, ratio=ours.median / limit.median)
        for beside, limit in (("bare bwrap", bwrap), ("a plain process", plain))
    ]


async def _measure(folder: Path, tasks: int) -> dict[str, Any]:
    shutil.copytree(ROOT / "examples" / "workspace", folder)
    accept(folder)
    asked = request(apart(tasks, "true"), WORKERS, "true")
    async with open_host(folder, "orchestra.run") as host:
        await host.ready()
        spare_collector()
        before = (_used(resource.RUSAGE_SELF), _used(resource.RUSAGE_CHILDREN))
        start = time.perf_counter()
        ended = await host.ask(asked, asked.run_id, {"run.ended", "run.refused"}, 600.0)
        took = time.perf_counter() - start
        own, theirs = _used(resource.RUSAGE_SELF) - before[0], _used(resource.RUSAGE_CHILDREN) - before[1]
    assert (ended.type, ended.data.state, ended.data.done) == ("run.ended", "done", tasks), ended.data
    return {"seconds": took, "own": own, "theirs": theirs}


def _used(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure(Path(sys.argv[1]), int(sys.argv[2])))))
