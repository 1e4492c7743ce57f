"""Hanging up a line that another process holds: the device sees it, and nothing is written into the line."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pmagent.actors.pla.line.discovery import PortUnusable
from pmagent.actors.pla.line.hangup import hang_up
from pmagent.pla.device import Terminal
from tests.support.cases import each

_HOLD = """
import os, sys
held = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
os.write(held, b"not taken yet")
sys.stdout.write("held\\n")
sys.stdout.flush()
sys.stdin.read()
"""
_HANG_UP = """
import os, sys
user = int(sys.argv[1])
from pmagent.actors.pla.line.hangup import hang_up
from pmagent.actors.pla.line.discovery import PortUnusable
os.setgroups([])
os.setgid(user)
os.setuid(user)
try:
    hang_up(sys.argv[2], int(sys.argv[3]))
    print("down")
except PortUnusable as trouble:
    print("held", trouble.message)
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """The terminal of a device to try things with."""
    made = Terminal(tmp_path / "device")
    yield made
    made.close()


@contextmanager
def holder(path: Path, *command: str) -> Iterator[int]:
    """Another process that holds the line, with something on its way; its id."""
    with subprocess.Popen(
        [*command, sys.executable, "-I", "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process.pid


def test_the_device_sees_the_line_closed_and_nothing_is_written_into_it(terminal: Terminal, tmp_path: Path) -> None:
    with holder(tmp_path / "device") as process:
        assert terminal.is_open()
        assert hang_up(str(tmp_path / "device"), process) == terminal.name
        assert not terminal.is_open()
        assert terminal.read() in (b"", b"not taken yet"), "nothing was written into it"


def test_who_opens_the_line_anew_opens_it_again(terminal: Terminal, tmp_path: Path) -> None:
    with holder(tmp_path / "device") as process:
        hang_up(str(tmp_path / "device"), process)
        again = os.open(terminal.name, os.O_RDWR | os.O_NOCTTY)
        try:
            mode = termios.tcgetattr(again)
            mode[4:6] = [termios.B115200, termios.B115200]
            termios.tcsetattr(again, termios.TCSANOW, mode)
            assert terminal.is_open()
        finally:
            os.close(again)


def test_a_terminal_that_the_process_does_not_hold_is_left_alone(terminal: Terminal, tmp_path: Path) -> None:
    other = Terminal(tmp_path / "other")
    try:
        with holder(tmp_path / "device") as process, holder(tmp_path / "other"):
            with pytest.raises(PortUnusable) as caught:
                hang_up(str(tmp_path / "other"), process)
            assert caught.value.code == "another"
            assert other.is_open()
            assert terminal.is_open()
    finally:
        other.close()


@each("path", ["missing", "file", "/dev/null"])
def test_what_is_no_terminal_of_its_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PortUnusable):
        hang_up(str(tmp_path / path), os.getpid())


def test_a_process_that_has_ended_holds_nothing(terminal: Terminal, tmp_path: Path) -> None:
    with holder(tmp_path / "device") as process:
        pass
    with pytest.raises(PortUnusable):
        hang_up(str(tmp_path / "device"), process)
    with pytest.raises(PortUnusable):
        hang_up(str(tmp_path / "device"), 0)
    del terminal


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_line_locked_by_an_ordinary_user_comes_down_or_that_is_said(tmp_path: Path) -> None:
    """TIOCEXCL keeps an ordinary user out; the holder's own descriptor is had only where the kernel lets us."""
    user = 54321
    master, end = os.openpty()
    try:
        tty.setraw(end)
        name = os.ttyname(end)
        os.chown(name, user, user)
        as_user = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")
        with holder(Path(name), *as_user) as process:
            fcntl.ioctl(end, termios.TIOCEXCL)
            done = subprocess.run(
                [sys.executable, "-I", "-c", _HANG_UP, str(user), name, str(process)],
                capture_output=True, text=True, check=True, cwd=tmp_path,
            )  # fmt: skip
            speed = termios.tcgetattr(master)[5]
        said, _, why = done.stdout.strip().partition(" ")
        assert (said == "down") == (speed == termios.B0)
        assert said == "down" or "locked" in why
    finally:
        os.close(end)
        os.close(master)
