"""The console's process beside a real daemon: it comes with it, goes with it, and comes back."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from pmagent.console import address
from pmagent.console.paths import ConsolePaths
from pmagent.workspace.layout import Layout, reachable
from tests.conftest import fresh_example
from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, clean_environment, pmagent, spawn

pytestmark = pytest.mark.slow


class Up:
    """``pmagent up`` as a process, and what it says."""

    def __init__(self, workspace: Path, **settings: str) -> None:
        self.workspace = workspace
        self.said = ""
        self.process = warm.Popen(
            [*PMAGENT, "--workspace", str(workspace), "up"], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
            env=clean_environment(**{"PMAGENT_CONSOLE_ENABLED": "true", **settings}),
        )  # fmt: skip

    def until(self, words: str) -> str:
        """Read what it says until ``words`` come; the line."""
        assert self.process.stderr is not None
        while True:
            *lines, rest = self.said.split("\n")  # several may have come at once
            for at, line in enumerate(lines):
                if words in line:
                    self.said = "\n".join([*lines[at + 1 :], rest])
                    return line
            ready, _, _ = select.select([self.process.stderr], [], [], SECONDS)
            more = os.read(self.process.stderr.fileno(), 65_536).decode() if ready else ""
            assert more, f"{words!r} was not said: {self.said}"
            self.said += more

    def served(self) -> address.Address:
        """Its console, as soon as it is served."""
        self.until("the console is served")
        return self.console

    @property
    def console(self) -> address.Address:
        """Where it is served."""
        found = address.read(ConsolePaths(Layout(self.workspace)).address)
        assert found is not None
        return found

    def end(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=SECONDS)
        return self.process.returncode


@contextmanager
def up(workspace: Path, **settings: str) -> Iterator[Up]:
    """A daemon with a console, killed at the end of the block if it still runs."""
    daemon = Up(workspace, **settings)
    try:
        yield daemon
    finally:
        if daemon.process.poll() is None:
            daemon.process.kill()
        daemon.process.communicate(timeout=SECONDS)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return fresh_example(tmp_path / "workspace")


def gone(pid: int) -> bool:
    """Wait until no process ``pid`` is there any more."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], SECONDS)[0])
    finally:
        os.close(watched)


def entered(served: address.Address, workspace: Path) -> httpx2.Client:
    """A client that has signed in by the address that the command prints."""
    printed = spawn("--workspace", str(workspace), "console", cwd=workspace)
    assert printed.code == 0, printed.errors
    assert printed.lines[0].startswith(f"{served.url}/enter?token=")
    client = httpx2.Client(base_url=served.url, timeout=SECONDS)
    assert client.get(printed.lines[0]).status_code == 303
    return client


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A daemon whose console is served; it goes on."""
    with up(fresh_example(tmp_path_factory.mktemp("shared") / "workspace")) as daemon:
        daemon.served()
        yield daemon
        assert daemon.end() == 0


def test_a_new_user_comes_in_by_the_printed_address_once(shared: Up) -> None:
    printed = spawn("--workspace", str(shared.workspace), "console", cwd=shared.workspace)
    with httpx2.Client(base_url=shared.console.url, timeout=SECONDS) as client:
        assert client.get("/").headers["location"] == "/sign-in"
        assert client.get(printed.lines[0]).headers["location"] == "/"
        assert client.get("/").status_code == 200
    with httpx2.Client(base_url=shared.console.url, timeout=SECONDS) as another:
        assert another.get(printed.lines[0]).status_code == 403
        assert another.get("/").status_code == 303


def test_the_console_gives_way_to_its_daemon(shared: Up) -> None:
    console, theirs = shared.console.pid, shared.process.pid
    assert os.getpriority(os.PRIO_PROCESS, console) >= os.getpriority(os.PRIO_PROCESS, theirs) + 10
    assert os.getsid(console) == os.getsid(theirs), "else niceness would not count between them"
    assert os.getpgid(console) != os.getpgid(theirs), "Ctrl-C is the daemon's"


def test_a_console_that_is_killed_is_started_again_and_the_daemon_goes_on(shared: Up) -> None:
    first = shared.console
    os.kill(first.pid, signal.SIGKILL)
    assert "exit_code=-9" in shared.until("the console has ended")
    assert shared.served().url == first.url
    assert pmagent(shared.workspace, "status", "--require-daemon").code == 0


def test_however_the_daemon_ends_its_console_ends_and_the_next_one_has_the_same_address(workspace: Path) -> None:
    client: httpx2.Client | None = None
    addresses = []
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
        with up(workspace) as daemon:
            served = daemon.served()
            client = client or entered(served, workspace)
            assert client.get("/").status_code == 200, "who was signed in still is"
            daemon.process.send_signal(number)
            daemon.process.communicate(timeout=SECONDS)
            assert gone(served.pid)
        addresses.append(served)
    assert client
    client.close()
    assert len({one.url for one in addresses}) == 1
    assert len({one.pid for one in addresses}) == len(addresses)


def test_a_port_that_is_taken_is_told_and_commands_are_answered_all_the_same(workspace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with up(workspace, PMAGENT_CONSOLE_PORT=str(port)) as daemon:
            assert str(port) in daemon.until("another program's")
            assert pmagent(workspace, "status", "--require-daemon").code == 0
            assert daemon.end() == 0


def test_over_a_unix_socket_only_this_user_is_answered(workspace: Path) -> None:
    with up(workspace, PMAGENT_CONSOLE_LISTEN="unix") as daemon:
        served = daemon.served()
        path = Path(served.path)
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        with (
            reachable(path) as short,
            httpx2.Client(
                transport=httpx2.HTTPTransport(uds=short), base_url=served.url, timeout=SECONDS
            ) as client,
        ):
            assert client.get("/").headers["location"] == "/sign-in"
        assert daemon.end() == 0


def test_a_daemon_that_is_told_to_serves_no_console(workspace: Path) -> None:
    with up(workspace, PMAGENT_CONSOLE_ENABLED="false") as daemon:
        daemon.until("ready; in another shell: pmagent log tail")
        told = spawn("--workspace", str(workspace), "console", cwd=workspace)
        assert told.code == 5
        assert "pmagent up" in told.errors or "enabled" in told.errors
        assert daemon.end() == 0


@pytest.mark.parametrize("content", [b'{"pid": "x"}', b'{"pid": 1, "url": "http://localhost", "port": 65536}', b""])
def test_what_says_nothing_understandable_is_no_address(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "address.json").write_bytes(content)
    assert address.read(tmp_path / "address.json") is None
    assert address.read(tmp_path / "none.json") is None
