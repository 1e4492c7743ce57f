"""Service by user: the one at the other end of the daemon's socket; and clients that send nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import anyio
import pytest

from pmagent.events.lock import WriterLock
from pmagent.service import client, daemon
from pmagent.service.client import DaemonUnreachable
from pmagent.service.operations import call, perform
from pmagent.workspace.layout import Layout, reachable
from tests.support.cases import each
from tests.support.commands import SECONDS
from tests.support.consoles import LiveHost, live_host
from tests.support.daemons import running

USERS = (54321, 65534, 1)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
REQUEST = b'{"operation":"status","arguments":{}}\n'
ANSWER = b'{"document":{"running":true,"daemon":"running","mode":"FORGED"}}\n'

_BECOME = """
import os, socket, sys
user, folder, text = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode()
os.setgroups([])
os.setgid(user)
os.setuid(user)
place = f"/proc/self/fd/{folder}/daemon.sock"
mine = socket.socket(socket.AF_UNIX)
"""
_ASK = _BECOME + """
mine.connect(place)
mine.sendall(text)
sys.stdout.buffer.write(mine.makefile("rb").read())
"""
_PRETEND = _BECOME + """
mine.bind(place)
os.chmod(place, 0o666)
mine.listen()
sys.stdout.write("listening\\n")
sys.stdout.flush()
while True:
    other, _ = mine.accept()
    other.recv(65536)
    other.sendall(text)
    other.close()
"""


@contextmanager
def open_to_all(folder: Path, mode: int) -> Iterator[int]:
    """The folder, as everybody may use it; its descriptor."""
    folder.chmod(mode)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@as_root
def test_another_users_process_that_gets_at_the_socket_is_not_served(workspace: Path) -> None:
    layout = Layout(workspace)
    with running(workspace), open_to_all(layout.run, 0o711) as folder:
        layout.socket.chmod(0o666)
        for user in USERS:
            command = [sys.executable, "-I", "-c", _ASK, str(user), str(folder), REQUEST.decode()]
            asked = subprocess.run(
                command, pass_fds=[folder], capture_output=True, check=False, cwd="/", timeout=SECONDS
            )
            assert asked.stdout == b"", asked.stderr
            assert asked.returncode == 0 or b"ConnectionReset" in asked.stderr or b"BrokenPipe" in asked.stderr
            assert call(workspace, "status").document["running"] is True


@as_root
@each("user", USERS)
def test_another_users_process_in_the_daemons_place_is_not_asked(workspace: Path, user: int) -> None:
    layout = Layout(workspace)
    layout.prepare()
    lock = WriterLock(layout.evidence.locks[-1], "pid 1, daemon")
    try:
        with open_to_all(layout.run, 0o777) as folder:
            command = [sys.executable, "-I", "-c", _PRETEND, str(user), str(folder), ANSWER.decode()]
            with subprocess.Popen(command, pass_fds=[folder], stdout=subprocess.PIPE, cwd="/") as pretender:
                assert pretender.stdout is not None
                assert pretender.stdout.readline() == b"listening\n"
                try:
                    with pytest.raises(DaemonUnreachable, match="another user") as caught:
                        call(workspace, "status")
                    assert caught.value.exit_code == 5
                finally:
                    pretender.kill()
    finally:
        layout.socket.unlink()
        lock.release()


@pytest.fixture
def live(workspace: Path) -> Iterator[LiveHost]:
    """A live workspace in this process."""
    with live_host(workspace) as host:
        yield host


@each("user", [os.getuid() + 1, 65534, 54321])
def test_the_daemon_serves_no_other_user(live: LiveHost, monkeypatch: pytest.MonkeyPatch, user: int) -> None:
    monkeypatch.setattr(daemon, "peer_uid", lambda _: user)
    with _connected(live.workspace) as stranger:
        answer = b""
        with suppress(BrokenPipeError, ConnectionResetError):  # it may be closed at any moment
            stranger.sendall(REQUEST)
            answer = stranger.recv(65536)
        assert answer == b""


@each("user", sorted({os.getuid(), 0}))
def test_the_daemon_serves_this_user_and_root(live: LiveHost, monkeypatch: pytest.MonkeyPatch, user: int) -> None:
    monkeypatch.setattr(daemon, "peer_uid", lambda _: user)
    assert call(live.workspace, "status").document["running"] is True


def test_a_live_status_tells_of_a_configuration_that_changes(live: LiveHost) -> None:
    def unaccepted() -> object:
        return call(live.workspace, "status").document["unaccepted"]

    config = live.workspace / ".pmagent" / "config.toml"
    before = config.read_bytes() if config.exists() else None
    assert unaccepted() is None
    config.write_text('[guards]\nunit = ["python3", "-c", "0"]\n', encoding="utf-8")
    assert unaccepted() is not None
    if before is None:
        config.unlink()
    else:
        config.write_bytes(before)
    assert unaccepted() is None


@each("user", [os.getuid() + 1, 65534, 54321])
def test_a_command_asks_no_other_users_daemon(live: LiveHost, monkeypatch: pytest.MonkeyPatch, user: int) -> None:
    monkeypatch.setattr(client, "peer_uid", lambda _: user)
    with pytest.raises(DaemonUnreachable, match="another user"):
        call(live.workspace, "status")


# --- clients that send nothing ---------------------------------------------------------------------------------------


@contextmanager
def _connected(workspace: Path) -> Iterator[socket.socket]:
    with reachable(Layout(workspace).socket) as address, socket.socket(socket.AF_UNIX) as one:
        one.settimeout(SECONDS)
        one.connect(address)
        yield one


@pytest.mark.parametrize("sent", [b"", b'{"operation":', REQUEST[:-1]], ids=["nothing", "the beginning", "nearly all"])
def test_clients_without_a_request_delay_nobody(live: LiveHost, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """They are not even waited for: nobody is sent away here for being slow."""
    monkeypatch.setattr(daemon, "REQUEST_SECONDS", 1e6)
    with ExitStack() as idle:
        clients = [idle.enter_context(_connected(live.workspace)) for _ in range(daemon.CONNECTIONS_MAX + 24)]
        for one in clients:
            try:
                one.sendall(sent)
            except (BrokenPipeError, ConnectionResetError):
                continue  # its place was given away
        who = {"operator": "ada", "channel": "api"}
        assert call(live.workspace, "status").document["running"] is True
        assert call(live.workspace, "control.pause", who).document["paused"] is True
        ended = [_has_ended(one) for one in clients]
        assert sum(not one for one in ended) < daemon.CONNECTIONS_MAX, "descriptors are bounded"
        assert ended == sorted(ended, reverse=True), "the oldest give way first"


def _has_ended(one: socket.socket) -> bool:
    one.settimeout(0)
    try:
        return one.recv(1) == b""
    except ConnectionResetError:
        return True
    except BlockingIOError:
        return False


def test_who_is_being_answered_keeps_its_place(live: LiveHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "REQUEST_SECONDS", 1e6)
    release = anyio.Event()

    async def held(*_: object) -> object:
        await release.wait()
        return await perform(*_)  # type: ignore[arg-type]

    monkeypatch.setattr(daemon, "perform", held)
    with ExitStack() as idle, _connected(live.workspace) as first:
        first.sendall(b'{"operation":"status","arguments":{},"heartbeat":true}\n')
        assert first.recv(100) == b'{"taken":0.0}\n'
        for _ in range(daemon.CONNECTIONS_MAX + 24):
            idle.enter_context(_connected(live.workspace))
        monkeypatch.setattr(daemon, "perform", perform)
        assert call(live.workspace, "status").document["running"] is True
        live.portal.call(release.set)
        with first.makefile("rb") as lines:
            assert b'"running":true' in lines.readlines()[-1]
