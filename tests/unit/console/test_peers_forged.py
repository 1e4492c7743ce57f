"""An answer about a connection counts only from the kernel: any process may send to a netlink socket."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any, Self

import pytest

from pmagent.console.auth import peers
from tests.support.cases import each

HERE, THERE = ("127.0.0.1", 8321), ("127.0.0.1", 50_000)


class Netlink:
    """A netlink socket whose answer has come from ``sender``, and says that the connection is this user's."""

    def __init__(self, sender: int) -> None:
        ends = peers._ENDS.pack(HERE[1], THERE[1], socket.inet_aton(HERE[0]), socket.inet_aton(THERE[0]))
        about = peers._ABOUT.pack(peers.ESTABLISHED, ends, os.geteuid(), 4711)
        length = peers._HEADER.size + len(about)
        self.answer = peers._HEADER.pack(length, peers._BY_FAMILY, 0, 1, os.getpid()) + about
        self.sender = sender

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""

    def settimeout(self, _: float) -> None:
        """Nothing is waited for."""

    def send(self, _: bytes) -> None:
        """Any request."""

    def recvfrom(self, _: int) -> tuple[bytes, tuple[int, int]]:
        """The answer, and who sent it."""
        return self.answer, (self.sender, 0)


def told(monkeypatch: pytest.MonkeyPatch, sender: int) -> int:
    """The owner of the connection, by what ``sender`` says; with no table to look into."""
    monkeypatch.setattr(peers, "TABLE", Path("/nowhere"))
    with monkeypatch.context() as patch:
        made: Any = lambda *_: Netlink(sender)  # noqa: E731 - in the place of a class
        patch.setattr(socket, "socket", made)
        return peers._holder(HERE, THERE, peers.ESTABLISHED) or 0


def test_the_kernels_answer_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, 0) == os.geteuid()


@each("sender", [1, 4711, 2**32 - 1])
def test_an_answer_that_the_kernel_did_not_send_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch, sender: int
) -> None:
    with pytest.raises(OSError, match="No such file"):
        told(monkeypatch, sender)
