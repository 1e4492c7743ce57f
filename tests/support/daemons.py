"""Real daemons for tests: started as processes of their own, and known to be up because they say so."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pmagent.service import liveness
from tests.support import warm
from tests.support.commands import SECONDS, accepted, clean_environment

_SERVE = """
import resource, sys
from pathlib import Path
from pmagent.cli.messages import log_through
from pmagent.cli.output import Output
from pmagent.service.daemon import serve
log_through(Output.standard())
limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
def ready(host):
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
try:
    code = serve(Path(sys.argv[1]), ready)
except Exception as error:
    sys.stderr.write(f"{type(error).__name__}: {error}\\n")
    code = getattr(error, "exit_code", 99)
sys.exit(code)
"""


class Daemon:
    """A running daemon process on ``workspace``; ``console``: it serves one, at ``port`` (0: any); ``changed``: Python
    that it runs first."""

    def __init__(
        self, workspace: Path, file_bytes_max: int = 0, *, console: bool = False, port: int = 0, changed: str = ""
    ) -> None:
        accepted(workspace)
        self.process = warm.Popen(
            [sys.executable, "-I", "-c", f"{changed}\n{_SERVE}", str(workspace), str(file_bytes_max)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
            env=clean_environment(PMAGENT_CONSOLE_ENABLED=str(console).lower(), PMAGENT_CONSOLE_PORT=str(port)),
        )

    def wait_ready(self) -> None:
        """Return when it answers commands."""
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], SECONDS)
        line = self.process.stdout.readline() if readable else b""
        if line != b"ready\n":
            self.process.kill()
            _, errors = self.process.communicate(timeout=SECONDS)
            raise AssertionError(f"the daemon did not start: {errors.decode()}")

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; the exit code, and what it wrote to stderr."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, str]:
        """Wait for its end; the exit code, and what it wrote to stderr."""
        _, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, errors.decode()


@contextmanager
def running(workspace: Path, file_bytes_max: int = 0, *, changed: str = "") -> Iterator[Daemon]:
    """A daemon for the length of a block; killed at its end if it still runs."""
    daemon = Daemon(workspace, file_bytes_max, changed=changed)
    try:
        daemon.wait_ready()
        yield daemon
    finally:
        if daemon.process.poll() is None:
            daemon.process.kill()
            daemon.process.communicate(timeout=SECONDS)


@contextmanager
def hurried() -> Iterator[None]:
    """Commands of this process wait next to no time for a daemon that says nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(liveness, "SILENT_SECONDS", 0.3)
        yield


@contextmanager
def stopped(daemon: Daemon) -> Iterator[None]:
    """The daemon does nothing for the length of a block, and nobody waits long for it."""
    daemon.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, daemon.process.pid, os.WSTOPPED | os.WNOWAIT)
    try:
        with hurried():
            yield
    finally:
        daemon.process.send_signal(signal.SIGCONT)
