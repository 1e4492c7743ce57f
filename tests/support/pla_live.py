"""A lab for tests: a workspace with settings for the PLA, a pretend device on a pseudo terminal, a real daemon."""

from __future__ import annotations

import json
import os
import pty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pmagent.pla.demo import environment
from pmagent.pla.demo.environment import Device
from pmagent.workspace.trust import accept
from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, Ran, clean_environment, pmagent
from tests.support.daemons import running

__all__ = ["Device"]

OPERATOR = "ada"
vars(environment)["subprocess"] = warm.module()  # devices start warm


def configure(workspace: Path, **settings: object) -> None:
    """Write the settings [pla]."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in {"operator": OPERATOR, **settings}.items()]
    (workspace / ".pmagent").mkdir(exist_ok=True)
    (workspace / ".pmagent" / "config.toml").write_text("\n".join(["[pla]", *lines, ""]))
    accept(workspace)


def pla(workspace: Path, *arguments: str, expect: int = 0) -> Ran:
    """``pmagent pla …``, which has to end so."""
    done = pmagent(workspace, "pla", *arguments)
    assert done.code == expect, (arguments, done.text, done.errors)
    return done


def asked(workspace: Path, *arguments: str, expect: int = 0) -> Any:
    """``pmagent pla … --format json``: its document."""
    return pla(workspace, *arguments, "--format", "json", expect=expect).document


def await_event(workspace: Path, type: str, *conditions: str, after: int = 0) -> None:
    """Return when the log holds such an event behind position ``after``."""
    done = pmagent(
        workspace, "log", "tail", "-n", "all", "--after", str(after), "-f", "--type", type, *conditions,
        "--exit-on", type, "--timeout", "60", "--format", "json",
    )  # fmt: skip
    assert done.code == 0, done.errors


def events(workspace: Path, type: str) -> list[dict[str, Any]]:
    """The payloads of all events of this type."""
    done = pmagent(workspace, "log", "tail", "-n", "all", "--type", type, "--format", "json")
    assert done.code == 0, done.errors
    return [json.loads(line)["data"] for line in done.out.splitlines()]


def end_of_log(workspace: Path) -> int:
    """The log's last position."""
    position: int = pmagent(workspace, "status", "--format", "json").document["log"]["position"]
    return position


def on_terminal(
    workspace: Path, *arguments: str, typed: str = "yes\n", ahead: str = "",
    meanwhile: Callable[[], None] = lambda: None,
) -> tuple[int, str]:
    """Run ``pmagent pla …`` on a terminal, type that when it asks for it, and ``ahead`` before; the exit code, and all
    that was seen. ``meanwhile``: what happens while it waits for the answer."""
    master, end = pty.openpty()
    try:
        os.write(master, ahead.encode())
        process = warm.Popen(
            [*PMAGENT, "pla", *arguments], stdin=end, stdout=end, stderr=end, cwd=workspace,
            env=clean_environment(NO_COLOR="1"),
        )
        os.close(end)
        seen, answered = b"", False
        while chunk := _read(master):
            seen += chunk
            if not answered and b"type yes and Enter" in seen:
                answered = True
                meanwhile()
                os.write(master, typed.encode())
        return process.wait(SECONDS), seen.decode()
    finally:
        os.close(master)


def _read(master: int) -> bytes:
    """The next output; nothing when nobody holds the terminal any more."""
    try:
        return os.read(master, 4096)
    except OSError:  # EIO
        return b""


class Lab:
    """The workspace of a running daemon, and the device that it has linked."""

    def __init__(self, workspace: Path, device: Device) -> None:
        self.workspace = workspace
        self.device = device

    def pla(self, *arguments: str, expect: int = 0) -> Ran:
        """See ``pla``."""
        return pla(self.workspace, *arguments, expect=expect)

    def asked(self, *arguments: str, expect: int = 0) -> Any:
        """See ``asked``."""
        return asked(self.workspace, *arguments, expect=expect)

    def configure(self, **settings: object) -> None:
        """See ``configure``; the device stays."""
        configure(self.workspace, device=str(self.workspace.parent / "device"), **settings)

    def ready(self) -> None:
        """In EXECUTE, armed, with nothing open, whatever was before."""
        self.configure()
        self.pla("mode", "OBSERVE")
        for mode in ("SUGGEST", "EXECUTE"):
            self.pla("mode", mode)
        self.pla("arm")

    def proposed(self, goal: str, *more: str) -> dict[str, Any]:
        """An open proposal."""
        document: dict[str, Any] = self.asked("propose", goal, *more)
        return document


@contextmanager
def lab(folder: Path, workspace: Path, *options: str) -> Iterator[Lab]:
    """A lab in ``workspace``, its device, with these ``options``, beside it."""
    link = workspace.parent / "device"
    configure(workspace, device=str(link))
    device = Device(link, folder / "typed.txt", *options)
    try:
        with running(workspace) as daemon:
            await_event(workspace, "hid.linked")
            yield Lab(workspace, device)
            code, errors = daemon.end()
            assert code == 0, errors
    finally:
        device.close()
