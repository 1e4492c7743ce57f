"""Hosts that carry out an audit, to be killed; each is a process of its own, made by fork so that many take seconds.

Started by ``test_audit_kill.py`` as ``python -m tests.crash.kill_audit WORKSPACE REPOSITORY PDF RUBRIC``. For each line
``AUDIT MODEL KILL`` on stdin a host opens, asks for the audit or takes it up, and waits for its end; it is killed
(``KILL``)

``never``     not at all
``SECONDS``   so long after its request for a clone was durable, or was taken up
``TYPE:N``    by itself, when its Nth event of this type has become durable

``MODEL`` ``-`` stands for the rules. One line on stdout says how it ended (its exit code), and how many processes it
left; they have ended by themselves since, else this program does not go on.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
import langchain_openai  # noqa: F401 - imported once, and not by each host

from pmagent.actors.audit import progress  # noqa: F401 - the graph, the same
from pmagent.actors.kernel import reader
from pmagent.audit.request import AuditOptions, as_request
from pmagent.events.event import Event
from pmagent.jobs.kinds import Source
from pmagent.service.host import open_host
from pmagent.workspace.settings import AuditSettings
from tests.support.forked import Fork, serve, signal_at
from tests.support.planners import all_end, is_cut_off

ENDS = {"audit.concluded", "audit.failed"}
SECONDS = 60.0
ORPHANS_SECONDS = 120.0
PR_SET_CHILD_SUBREAPER = 36


async def carry_out(workspace: Path, sources: Sequence[str], audit_id: str, model: str, kill: str, told: int) -> None:
    """Open a host, and wait for the audit's end."""
    async with open_host(workspace, "daemon") as host:

        def note(event: Event) -> None:
            if event.type == "audit.clone_requested":
                os.write(told, b"began\n")

        host.runtime.listen(signal_at(kill, note))
        if any(event.type == "audit.clone_requested" for event in host.runtime.engine.effects.open.values()):
            os.write(told, b"began\n")  # what the one before was killed in is taken up
        await host.ready()
        repository, report, rubric = sources
        content = await anyio.Path(rubric).read_bytes()
        options = AuditOptions(
            repo_url=repository, pdf_path=report, rubric=Source("rubric.json", content),
            outputs=[str(workspace / "audit" / f"{audit_id}.md")], model="" if model == "-" else model,
        )  # fmt: skip
        asked = as_request(options, AuditSettings(), workspace, Path("/"), audit_id).request
        await host.ask(asked, audit_id, ENDS, SECONDS)


def play(workspace: Path, sources: Sequence[str], line: str) -> str:
    """Fork, kill, and say how it ended."""
    audit_id, model, kill = line.split()
    reader.QUIET_S = 0.0  # nobody writes surfaces here
    host = Fork(lambda told: anyio.run(carry_out, workspace, sources, audit_id, model, kill, told))
    if kill[:1].isdigit() and host.has_reported(1):  # else it has ended without a clone
        host.kill(float(kill))
    return f"{host.end()[0]} {orphans()}"


def orphans() -> int:
    """Wait until all that hosts left has ended; how many processes that were. Of a sandbox that was only being built
    the inner half may stay, which waits for ever and starts nothing (docs/threat-model.md): such are ended here.
    Raises AssertionError when something else goes on."""
    me, count, deadline = os.getpid(), 0, time.monotonic() + ORPHANS_SECONDS
    while left := children(me):
        assert time.monotonic() < deadline, f"processes {left} go on"
        all_end([os.pidfd_open(pid) for pid in left], 0.2)
        for pid in left:  # nobody else waits for them, so their numbers are their own
            if os.waitpid(pid, os.WNOHANG)[0]:
                count += 1
            elif is_cut_off(pid, me):
                os.kill(pid, signal.SIGKILL)
    return count


def children(pid: int) -> list[int]:
    """The processes that have this one as their parent, also those that have ended and were not waited for."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def main() -> None:
    """See the module."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "nobody would see what a killed host leaves")
    workspace, *sources = sys.argv[1:]
    serve(partial(play, Path(workspace), sources))


if __name__ == "__main__":
    main()
