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
from functools import partial
from pathlib import Path

from pmagent.actors.kernel import reader
from pmagent.service import daemon
from pmagent.service.host import Host
from tests.support.forked import Fork, serve, signal_at


def tell(line: str) -> None:
    """A line on stdout, whole."""
    os.write(1, f"{line}\n".encode())


def serve_as_daemon(workspace: Path, what: str) -> None:
    """Be a daemon."""
    name, _, moment = what.partition(" ")
    number = signal.SIGSTOP if name == "STOP" else signal.SIGKILL

    def ready(host: Host) -> None:
        host.runtime.listen(signal_at(moment, lambda event: tell(event.type), number))
        tell(f"up {os.getpid()}")

    daemon.serve(workspace, ready)


def play(workspace: Path, what: str) -> str:
    """Fork, and wait for its end."""
    reader.QUIET_S = 0.0  # nobody writes surfaces here
    return f"ended {Fork(lambda _: serve_as_daemon(workspace, what)).end()[0]}"


if __name__ == "__main__":
    serve(partial(play, Path(sys.argv[1])))
