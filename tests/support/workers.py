"""Real workers for tests: processes that share no file with the daemon whose attempts they make."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from tests.support.commands import SECONDS, Ran, accepted, clean_environment, spawn
from tests.support.daemons import Daemon, running
from tests.support.postgres import Server

HANDS = "hands"
"""The role of workers."""

LOG = "lab"

CONFIG = """\
version: "1.0"
whitelist_tools: [sh, sleep, cat, echo, python]
"""


def joined(server: Server) -> None:
    """Let there be a role of workers."""
    from pmagent.events.postgres.schema import prepare

    server.sql(f"CREATE ROLE {HANDS} LOGIN")
    prepare(server.address(role="postgres"), [], [], workers=[HANDS])


class Worker:
    """A worker in the folder ``home``; ``hidden``: a folder that is empty for it, as on another host; ``changed``:
    Python that it runs first."""

    def __init__(
        self, server: Server, home: Path, hidden: Path, address: str = "", changed: str = "", **settings: object
    ) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.log = home / "worker.log"
        given = {
            "name": home.name, "labels": ["linux"], "logs": [LOG], "tools": ["sh", "python3", "sleep", "cat", "echo"],
            "folder": str(home / "work"), "replicated": False,
            "database": address or str(server.address(role=HANDS)), **settings,
        }
        (home / "worker.toml").write_text("".join(f"{key} = {_toml(value)}\n" for key, value in given.items()))
        run = ["-c", f"{changed}\nfrom pmagent.__main__ import main\nmain()"] if changed else ["-m", "pmagent"]
        command = [sys.executable, "-I", *run, "worker", "--config", str(home / "worker.toml")]
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


def short_lease(workspace: Path, seconds: float = 30) -> AbstractContextManager[Daemon]:
    """A daemon for the length of a block, whose workers' claims live for ``seconds``."""
    return running(workspace, changed=f"from pmagent.workers import placing\nplacing.LEASE = {int(seconds * 1e9)}")


def until(holds: Callable[[], bool], what: str) -> None:
    """Look until it ``holds``."""
    end = monotonic() + 2 * SECONDS
    while not holds():
        assert monotonic() < end, f"not in time: {what}"
        os.sched_yield()


def made_lab(workspace: Path, server: Server) -> Path:
    """``workspace``, whose log lies there from now on; no worker is there."""
    server.sql("TRUNCATE pm.worker")
    server.sql(f"UPDATE pm.log SET name = 'old-' || log_no WHERE name = '{LOG}'")
    (workspace / ".pmagent").mkdir(exist_ok=True)
    with (workspace / ".pmagent/config.toml").open("a") as file:
        file.write(f'\n[storage]\nlog = "{server.address(LOG)}"\nreplicated = false\n')
    (workspace / "orchestra.config.yaml").write_text(CONFIG)
    (workspace / "notes.txt").write_text("a file of the workspace\n")
    return accepted(workspace)


def task(name: str, script: str, **more: Any) -> dict[str, Any]:
    """A task of a plan: a script of sh, for a worker."""
    made = {"task_id": name, "intent": name, "tools": ["sh"], "inputs": {"args": ["-c", script]}, "labels": ["linux"]}
    return {**made, **more}


def ran(lab: Path, *tasks: dict[str, Any]) -> Ran:
    """Run a plan to its end."""
    plan = lab.parent / "plan.json"
    plan.write_text(json.dumps(list(tasks)))
    return spawn("run", "tests", "--plan", str(plan), "--retries", "0", "--format", "json", cwd=lab)


@contextmanager
def running_plan(lab: Path, *tasks: dict[str, Any]) -> Iterator[Future[Ran]]:
    """A plan that runs for the length of a block."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(ran, lab, *tasks)


def logged(lab: Path, kind: str) -> list[dict[str, Any]]:
    """The data of all events of a type."""
    text = spawn("log", "tail", "-n", "500", "--type", kind, "--format", "json", cwd=lab).text
    return [json.loads(line)["data"] for line in text.splitlines() if line.startswith("{")]


def rows(server: Server, what: str = "state") -> list[str]:
    """One column of the attempts of this log."""
    return server.sql(
        f"SELECT a.{what} FROM pm.attempt a JOIN pm.log USING (log_no) WHERE name = '{LOG}' ORDER BY a.position"
    ).splitlines()


def sleepers(mark: str) -> list[int]:
    """The processes that sleep for so long: the mark of an attempt's box."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", mark.encode()]:
            found.append(int(path.parent.name))
    return found
