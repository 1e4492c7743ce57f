"""A daemon in the background, and under a service manager."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from pmagent.service.background import NOTIFY, OUTPUT, Notifier, StillThere, stop, unit, unit_file, unit_name
from pmagent.workspace.layout import Layout, reachable
from tests.support.cases import each
from tests.support.commands import PMAGENT, SECONDS, clean_environment, spawn

pytestmark = pytest.mark.slow


def daemon_pid(workspace: Path) -> int:
    """The process that holds the log."""
    return Layout(workspace).store.holder().pid


def test_it_starts_answers_restarts_and_stops(workspace: Path) -> None:
    assert spawn("down", cwd=workspace).code == 0, "where none runs there is nothing to do"
    started = spawn("up", "--detach", cwd=workspace)
    try:
        first = daemon_pid(workspace)
        assert (started.code, str(first) in started.text) == (0, True)
        assert json.loads(spawn("status", "--json", cwd=workspace).text)["running"]
        assert os.getsid(first) == first, "it does not end with the terminal"
        output = Layout(workspace).home / OUTPUT
        output.write_text("from before\n" + output.read_text())
        said = output.stat().st_size
        again = spawn("up", "--detach", cwd=workspace)
        assert (again.code, str(first) in again.errors) == (1, True)
        assert "daemon.out" not in again.errors
        assert output.stat().st_size == said, "the running daemon's messages are kept"
        assert spawn("restart", cwd=workspace).code == 0
        assert daemon_pid(workspace) != first
    finally:
        stopped = spawn("down", cwd=workspace)
    assert (stopped.code, Layout(workspace).store.holder().live) == (0, False)


def test_one_that_hangs_is_waited_for_no_longer_than_it_was_asked_for(workspace: Path) -> None:
    assert spawn("up", "--detach", cwd=workspace).code == 0
    pid = daemon_pid(workspace)
    os.kill(pid, signal.SIGSTOP)
    try:
        assert spawn("down", "--timeout", "0.1", cwd=workspace).code == 6
    finally:
        os.kill(pid, signal.SIGCONT)
    assert spawn("down", cwd=workspace).code == 0
    assert not Layout(workspace).store.holder().live


def test_a_daemon_that_accepts_no_connection_is_not_reported_as_absent(workspace: Path) -> None:
    layout = Layout(workspace)
    layout.prepare()
    with ExitStack() as held:
        line = held.enter_context(socket.socket(socket.AF_UNIX))
        with reachable(layout.socket) as address:
            line.bind(address)
            line.listen(0)
            with suppress(BlockingIOError):  # as many as the system lets wait
                while True:
                    client = held.enter_context(socket.socket(socket.AF_UNIX))
                    client.settimeout(0)
                    client.connect(address)
        with pytest.raises(StillThere):
            stop(workspace, 0.0)


@each("address", ["file", "abstract"])
def test_it_tells_its_manager_that_it_is_ready_and_that_it_stops(workspace: Path, address: str) -> None:
    bound = str(workspace.parent / "notify") if address == "file" else f"@pmagent-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(f"\0{bound[1:]}" if bound.startswith("@") else bound)
        line.settimeout(SECONDS)
        daemon = subprocess.Popen(
            [*PMAGENT, "up"], cwd=workspace, env=clean_environment(**{NOTIFY: bound}), stderr=subprocess.DEVNULL
        )
        try:
            assert line.recv(100) == b"READY=1"
            assert json.loads(spawn("status", "--json", cwd=workspace).text)["running"]
            daemon.terminate()
            assert line.recv(100) == b"STOPPING=1"
        finally:
            daemon.terminate()
            daemon.wait(SECONDS)


def test_no_child_of_the_daemon_may_speak_for_it() -> None:
    environ = {NOTIFY: "/nowhere"}
    Notifier(environ)
    assert environ == {}


NAMES = ("plain", "two words", "100%", "a$HOME", 'quo"te', "back\\slash", "umläut", ".hidden", "dash-ed")


@each("name", NAMES)
def test_the_unit_is_one_that_systemd_takes(tmp_path: Path, name: str) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    workspace = tmp_path / name
    workspace.mkdir(exist_ok=True)
    escaped = subprocess.run(["systemd-escape", "--path", str(workspace)], capture_output=True, text=True, check=True)
    assert unit_name(workspace) == f"pmagent-{escaped.stdout.strip()}.service"
    file = unit_file(workspace, {"XDG_CONFIG_HOME": str(tmp_path / "config")})
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(unit(workspace, "--standby"))
    assert " up --standby\n" in file.read_text()
    checked = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(file)], capture_output=True, text=True, check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )  # fmt: skip
    assert (checked.returncode, checked.stderr) == (0, "")
