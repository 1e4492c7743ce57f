"""Daemons that hold the line to a device, to be killed; each is a process of its own, made by fork so that many take
seconds.

Started by ``test_pla_kill.py`` as ``python -m tests.crash.kill_pla WORKSPACE``. For each line on stdin, ``never``,
``KILL TYPE:N`` or ``STOP TYPE:N``, a daemon serves the workspace until it is ended. It sends itself that signal when
its Nth event of this type has become durable, before anything that the event leads to is begun. On stdout come, a line
each: ``up`` and its process id when it answers commands, the type of each event that has become durable since it was
opened, and ``ended`` with its exit code.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pmagent.actors.kernel import reader
from pmagent.events.event import Event
from pmagent.service import daemon
from pmagent.service.host import Host


def tell(line: str) -> None:
    """A line on stdout, whole."""
    os.write(1, f"{line}\n".encode())


def serve(workspace: Path, what: str) -> None:
    """Be a daemon."""
    name, _, moment = what.partition(" ")
    kind, _, count = moment.partition(":")
    left = int(count or 0)

    def hear(events: Sequence[Event], _sums: Any) -> None:
        nonlocal left
        for event in events:
            tell(event.type)
            if event.type == kind:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.Signals[f"SIG{name}"])

    def ready(host: Host) -> None:
        host.runtime.listen(hear)
        tell(f"up {os.getpid()}")

    daemon.serve(workspace, ready)


def play(workspace: Path, what: str) -> int:
    """Fork, and wait for its end: its exit code."""
    child = os.fork()
    if child == 0:
        reader.QUIET_S = 0.0  # nobody writes surfaces here
        try:
            serve(workspace, what)
            os._exit(0)
        finally:  # it never returns
            traceback.print_exc()
            os._exit(70)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def main() -> None:
    """See the module."""
    for line in sys.stdin:
        tell(f"ended {play(Path(sys.argv[1]), line.strip())}")


if __name__ == "__main__":
    main()
