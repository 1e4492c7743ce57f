"""The owner of the process at the other end, told by the machine itself."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pmagent.console.address import Address
from pmagent.console.auth import peers

AS_ANOTHER = """
import os, socket, sys
os.setgroups([]); os.setgid(54321); os.setuid(54321)
made = socket.socket()
made.connect(("127.0.0.1", int(sys.argv[1])))
sys.stdout.write("connected\\n"); sys.stdout.flush()
sys.stdin.read()
"""


def _has_sock_diag() -> bool:
    with socket.create_server(("127.0.0.1", 0)) as made:
        try:
            return peers._parse(made.getsockname(), ("0.0.0.0", 0), peers.LISTENING) == os.geteuid()
        except OSError:
            return False


HAS_SOCK_DIAG = _has_sock_diag()


def _away(*_: object) -> None:
    raise OSError("there is no sock_diag")


LISTENING = """
import os, socket, sys
os.setgroups([]); os.setgid(54321); os.setuid(54321)
made = socket.socket()
made.bind(("127.0.0.1", 0))
made.listen()
sys.stdout.write(f"{made.getsockname()[1]}\\n"); sys.stdout.flush()
sys.stdin.read()
"""


@pytest.fixture(autouse=True, params=["by sock_diag", "by the table"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How it is told; the one is not asked where the other answers."""
    if request.param == "by sock_diag" and not HAS_SOCK_DIAG:
        pytest.skip("this machine has no sock_diag")
    if request.param == "by the table":
        monkeypatch.setattr(peers, "_parse", _away)
    else:
        monkeypatch.setattr(peers, "TABLE", Path("/nowhere"))
    return str(request.param)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Somebody who listens on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(20)
        yield made


def test_a_connection_of_this_user_is_its_own(listener: socket.socket) -> None:
    with socket.create_connection(listener.getsockname()) as client:
        server, _ = listener.accept()
        with server:
            assert peers.owner(server) == os.geteuid()
            assert peers.owner(client) == os.geteuid()
            assert peers.is_own(server)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_connection_of_another_user_is_not(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", AS_ANOTHER, str(listener.getsockname()[1])],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:  # fmt: skip
        server, _ = listener.accept()
        with server:
            assert other.stdout is not None
            assert other.stdout.readline() == b"connected\n"
            assert peers.owner(server) == 54321
            assert not peers.is_own(server)
            monkeypatch.setattr(os, "geteuid", lambda: 54321)
            assert peers.is_own(server)
        assert other.stdin is not None
        other.stdin.close()


def test_a_connection_that_its_process_has_closed_is_nobodys(listener: socket.socket) -> None:
    """The table lists what is left of it as root's."""
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    with server:
        client.close()
        assert server.recv(1) == b""
        assert peers.owner(server) is None
        assert not peers.is_own(server)


def test_a_connection_that_is_gone_altogether_is_nobodys(listener: socket.socket) -> None:
    """It was reset."""
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    with server:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        assert peers.owner(server) is None


def test_over_a_unix_socket_the_kernel_tells() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert peers.owner(one) == os.geteuid()
        assert peers.is_own(one)


def test_where_nobody_can_tell_nobody_is_listened_to(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(peers, "_parse", _away)
    with socket.create_connection(listener.getsockname()):
        server, _ = listener.accept()
        with server:
            for content in (None, b"", b"\xff", b"  sl  local_address\n   0: junk"):
                table = tmp_path / "tcp"
                if content is not None:
                    table.write_bytes(content)
                monkeypatch.setattr(peers, "TABLE", table)
                assert not peers.is_own(server)
                assert not peers.serves(Address(1, "", listener.getsockname()[1]))


def test_an_address_is_served_when_somebody_of_ours_listens_there(listener: socket.socket, tmp_path: Path) -> None:
    port = listener.getsockname()[1]
    assert peers.serves(Address(1, "", port))
    with socket.create_connection(listener.getsockname()) as client:
        assert not peers.serves(Address(1, "", client.getsockname()[1])), "connected, and not listening"
    listener.close()
    assert not peers.serves(Address(1, "", port))
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "s"))
        assert not peers.serves(Address(1, "", 0, str(tmp_path / "s")))
        bound.listen()
        assert peers.serves(Address(1, "", 0, str(tmp_path / "s")))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_address_at_which_another_user_listens_is_not_served() -> None:
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", LISTENING], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        port = int(other.stdout.readline())
        assert not peers.serves(Address(1, "", port))
        assert other.stdin is not None
        other.stdin.close()


def test_who_listens_on_every_address_does_not_serve_this_one() -> None:
    """Another user's program could, and would be given what comes to 127.0.0.1 while nobody listens there."""
    with socket.create_server(("", 0)) as everywhere:
        assert not peers.serves(Address(1, "", everywhere.getsockname()[1]))


@pytest.mark.parametrize("way", ["by sock_diag"], indirect=True)
def test_both_ways_tell_the_same(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "TABLE", Path("/proc/net/tcp"))
    with socket.create_connection(listener.getsockname()) as client:
        mine, theirs = client.getsockname(), client.getpeername()
        waiting = [peers._listed(theirs, mine, peers.ESTABLISHED), peers._parse(theirs, mine, peers.ESTABLISHED)]
        assert waiting == [None, None], "nobody has accepted it, so nobody holds it"
        listener.accept()[0].close()
        for state in (peers.ESTABLISHED, peers.LISTENING):
            asked = (listener.getsockname(), ("0.0.0.0", 0), state)
            assert peers._listed(*asked) == peers._parse(*asked)
            assert (peers._parse(*asked) is None) == (state == peers.ESTABLISHED)
