"""A station for tests with a browser: a workspace, a pretended device, a real daemon with its console."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pmagent.console.auth.operators import add
from pmagent.console.paths import ConsolePaths
from pmagent.workspace.layout import Layout
from tests.conftest import fresh_example
from tests.support.commands import SECONDS, Ran, pmagent, spawn
from tests.support.daemons import Daemon
from tests.support.pla_live import Device, await_event, configure

ASKING: Final = "ada"
"""The operator who asks for things on the command line."""
APPROVING: Final = "bert"
LOOKING: Final = "vera"
"""The operator who may only look."""


def employ(workspace: Path) -> None:
    """Make the three operators."""
    file = ConsolePaths(Layout(workspace)).operators
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ASKING, APPROVING:
        add(file, name, "approve", None)
    add(file, LOOKING, "view", None)


def command(workspace: Path, *arguments: str, expect: int = 0) -> Ran:
    """A command on the workspace, in this process, from whatever thread; it has to end so."""
    with ThreadPoolExecutor(1) as thread:  # commands run event loops, and the browser's thread has one already
        done = thread.submit(pmagent, workspace, *arguments).result()
    assert done.code == expect, (arguments, done.text, done.errors)
    return done


def entrance(workspace: Path, operator: str) -> str:
    """A one-time address for ``operator``."""
    return command(workspace, "console", "--operator", operator).text.strip()


def reserved() -> socket.socket:
    """A loopback port that stays free for the console while it is open, also while no console is there: a browser comes
    back to the same port. The kernel gives it to nobody who takes any, and to who asks for it as the console does."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


class Station:
    """``device``: whether there is one."""

    def __init__(self, folder: Path, *, device: bool = True) -> None:
        self.folder = folder
        self.workspace = fresh_example(folder / "workspace")
        link = folder / "device"
        configure(self.workspace, **({"device": str(link)} if device else {}))
        employ(self.workspace)
        self._port = reserved()
        self.device = Device(link, folder / "typed.txt") if device else None
        self.daemon = self._start()
        if device:
            self.until("hid.linked")

    def close(self) -> None:
        """End everything."""
        try:
            if self.daemon.process.poll() is None:
                code, errors = self.daemon.end()
                assert code == 0, errors
                assert "Traceback" not in errors, errors
        finally:
            if self.daemon.process.poll() is None:
                self.daemon.end(signal.SIGKILL)
            if self.device is not None:
                self.device.close()
            self._port.close()

    def kill(self) -> None:
        """The daemon dies, as in a power cut."""
        self.daemon.end(signal.SIGKILL)

    @contextmanager
    def hung(self, *, console: bool = False) -> Iterator[None]:
        """The daemon, or its console, does nothing for the length of a block."""
        pid = self.daemon.process.pid
        if console:
            pid = json.loads(ConsolePaths(Layout(self.workspace)).address.read_text("utf-8"))["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def start(self) -> None:
        """The daemon comes back."""
        self.daemon = self._start()

    def _start(self) -> Daemon:
        daemon = Daemon(self.workspace, console=True, port=self._port.getsockname()[1])
        daemon.wait_ready()
        return daemon

    # --- commands, from whatever thread -----------------------------------------------------------------------------

    def pmagent(self, *arguments: str, expect: int = 0) -> Ran:
        """See ``command``."""
        return command(self.workspace, *arguments, expect=expect)

    def document(self, *arguments: str, expect: int = 0) -> Any:
        """Its answer with ``--format json``."""
        return self.pmagent(*arguments, "--format", "json", expect=expect).document

    def process(self, *arguments: str, expect: int = 0) -> Ran:
        """A command as a process of its own (what takes signals can be run in the main thread alone); it has to end
        so."""
        done = spawn(*arguments, cwd=self.workspace)
        assert done.code == expect, (arguments, done.text, done.errors)
        return done

    def settings(self, **more: object) -> None:
        """Settings of [pla], beside those of the device."""
        configure(self.workspace, **({"device": str(self.folder / "device")} if self.device else {}), **more)

    def until(self, type: str, *conditions: str, after: int = 0) -> None:
        """Return when the log holds such an event behind position ``after``."""
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: await_event(self.workspace, type, *conditions, after=after)).result(SECONDS)

    def entrance(self, operator: str) -> str:
        """See ``entrance``."""
        return entrance(self.workspace, operator)

    def position(self) -> int:
        """The log's end."""
        position: int = self.document("status")["log"]["position"]
        return position

    def events(self, type: str) -> list[dict[str, Any]]:
        """The payloads of all events of this type."""
        return [line["data"] for line in self.lines("--type", type)]

    def lines(self, *filters: str, after: int = 0) -> list[dict[str, Any]]:
        """The events behind position ``after``."""
        done = self.pmagent("log", "tail", "-n", "all", "--after", str(after), *filters, "--format", "json")
        return [json.loads(line) for line in done.out.splitlines()]

    # --- the lab assistant ------------------------------------------------------------------------------------------

    def mode(self, *modes: str) -> None:
        """Set one after the other."""
        for mode in modes:
            self.pmagent("pla", "mode", mode, "--operator", ASKING)

    def armed(self) -> None:
        """In EXECUTE and armed, with nothing open, whatever was before."""
        self.mode("OBSERVE", "SUGGEST", "EXECUTE")
        self.pmagent("pla", "arm", "--operator", ASKING)

    def proposed(self, goal: str, *more: str, by: str = ASKING) -> dict[str, Any]:
        """An open proposal."""
        document: dict[str, Any] = self.document("pla", "propose", goal, "--operator", by, *more)
        return document
