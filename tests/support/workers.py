"""Real workers for tests: processes that share no file with the daemon whose attempts they make."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from tests.support import daemons, warm
from tests.support.commands import SECONDS, accepted, clean_environment
from tests.support.daemons import Daemon
from tests.support.postgres import Server

HANDS = "hands"
"""The role of workers."""

LOG = "lab"


def joined(server: Server) -> None:
    """Let there be a role of workers."""
    from pmagent.events.postgres.schema import prepare

    server.sql(f"CREATE ROLE {HANDS} LOGIN")
    prepare(server.address(role="postgres"), [], [], workers=[HANDS])


class Worker:
    """A worker in the folder ``home``; ``hidden``: a folder that is empty for it, as on another host."""

    def __init__(self, server: Server, home: Path, hidden: Path, address: str = "", **settings: object) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.log = home / "worker.log"
        given = {
            "name": home.name, "labels": ["linux"], "logs": [LOG], "tools": ["sh", "python3", "sleep", "cat", "echo"],
            "folder": str(home / "work"), "replicated": False,
            "database": address or str(server.address(role=HANDS)), **settings,
        }
        (home / "worker.toml").write_text("".join(f"{key} = {_toml(value)}\n" for key, value in given.items()))
        command = [sys.executable, "-I", "-m", "pmagent", "worker", "--config", str(home / "worker.toml")]
        if os.getuid() == 0:  # a network and mounts of its own: the daemon's workspace is not there
            within = 'mount --make-rprivate / && mount -t tmpfs none "$0" && exec "$@"'
            command = ["unshare", "--mount", "--net", "--", "sh", "-c", within, str(hidden), *command]
        with self.log.open("wb") as file:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=home, env=clean_environment(),
                start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        """Kill it, as a power cut would: its boxes die with it."""
        self.process.kill()
        self.process.wait(SECONDS)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Let it end in order."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(SECONDS)

    def claims(self) -> int:
        """How many attempts it has claimed."""
        return self.said().count(" claimed claim=")

    def said(self) -> str:
        """Its output so far."""
        return self.log.read_text("utf-8", "replace")


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return str(value) if isinstance(value, int) else f'"{value}"'


@contextmanager
def working(server: Server, home: Path, hidden: Path, **settings: object) -> Iterator[Worker]:
    """A worker for the length of a block, which is there when it begins."""
    worker = Worker(server, home, hidden, **settings)  # type: ignore[arg-type]
    try:
        there = f"SELECT count(*) FROM pm.worker WHERE worker = '{home.name}' AND seen > now() - interval '9 s'"
        until(lambda: worker.process.poll() is not None or server.sql(there) == "1", "the worker is there")
        assert worker.process.poll() is None, worker.said()
        yield worker
    finally:
        if worker.process.poll() is None:
            worker.process.send_signal(signal.SIGCONT)
            worker.kill()


class ShortLease(Daemon):
    """A daemon whose claims live for ``seconds``."""

    def __init__(self, workspace: Path, seconds: float) -> None:
        accepted(workspace)
        change = f"from pmagent.workers import placing\nplacing.LEASE = {int(seconds * 1e9)}\n"
        self.process = warm.Popen(
            [sys.executable, "-I", "-c", change + daemons._SERVE, str(workspace), "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", env=clean_environment(),
        )


@contextmanager
def short_lease(workspace: Path, seconds: float = 30) -> Iterator[Daemon]:
    """A daemon for the length of a block."""
    daemon = ShortLease(workspace, seconds)
    try:
        daemon.wait_ready()
        yield daemon
    finally:
        if daemon.process.poll() is None:
            daemon.process.kill()
            daemon.process.communicate(timeout=SECONDS)


def until(holds: Callable[[], bool], what: str) -> None:
    """Look until it ``holds``."""
    end = monotonic() + 2 * SECONDS
    while not holds():
        assert monotonic() < end, f"not in time: {what}"
        os.sched_yield()


