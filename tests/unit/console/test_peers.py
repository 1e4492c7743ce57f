"""Whose process is at the other end, told by the machine itself."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pmagent.console import peers
from pmagent.console.address import Address

AS_ANOTHER = """
import os, socket, sys
os.setgroups([]); os.setgid(54321); os.setuid(54321)
made = socket.socket()
made.connect(("127.0.0.1", int(sys.argv[1])))
sys.stdout.write("connected\\n"); sys.stdout.flush()
sys.stdin.read()
"""


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


def test_over_a_unix_socket_the_kernel_tells() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert peers.owner(one) == os.geteuid()
        assert peers.is_own(one)


def test_where_nobody_can_tell_nobody_is_listened_to(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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
def test_an_address_at_which_another_user_listens_is_not_served(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other user is root here, who is trusted; so the table says somebody else."""
    table = peers.TABLE.read_text("ascii")
    port = f":{listener.getsockname()[1]:04X} 00000000:0000 0A"
    (line,) = [line for line in table.splitlines() if port in line]
    changed = table.replace(line, line.replace("     0        0 ", " 54321        0 ", 1))
    assert changed != table
    monkeypatch.setattr(peers, "TABLE", _Text(changed))
    assert not peers.serves(Address(1, "", listener.getsockname()[1]))


class _Text:
    """A file that says this."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read_text(self, encoding: str) -> str:
        """Its content."""
        assert encoding == "ascii"
        return self._text
