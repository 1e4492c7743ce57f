"""Whether the daemon answers, as who reads the log finds out: within 3 s by its constants, and by a clock of the
test's own."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pmagent.console.live import pulse
from pmagent.events.lock import WriterLock
from pmagent.service import client, liveness, wire
from pmagent.service.liveness import Liveness
from pmagent.workspace.layout import Layout, reachable

START_SECONDS = 1.0
"""The time that a command takes to start on a quiet machine; measured: a third to two thirds of that."""


@contextmanager
def holding(workspace: Path, role: str = "daemon") -> Iterator[tuple[Layout, socket.socket]]:
    """A process that holds the log and listens, and does nothing by itself."""
    layout = Layout(workspace)
    layout.prepare()
    lock = WriterLock(layout.evidence.locks[-1], f"pid 1, {role}")
    try:
        with reachable(layout.socket) as address, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen()
            yield layout, listener
    finally:
        lock.release()
        layout.socket.unlink()


def answer(listener: socket.socket) -> None:
    taken, _ = listener.accept()
    with taken:
        assert b'"status"' in taken.recv(1000)
        taken.sendall(b'{"taken":0.0}\n')


def test_the_constants_leave_three_seconds_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    source = Path(liveness.__file__).read_text("utf-8")
    assert "\nSILENT_SECONDS: Final = 1.5\n" in source, "tests of this process wait longer"
    assert wire.BEAT_SECONDS * 3 <= 1.5, "one that lives is heard in time"
    assert 1.5 + START_SECONDS < 3
    assert 1.5 + liveness.ASK_SECONDS + client.TRY_SECONDS < 3
    assert pulse.DEADLINE_SECONDS + pulse.ASK_SECONDS < 3


def test_silence_is_told_once_when_it_is_long_enough_and_so_is_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "SILENT_SECONDS", 1.5)
    now = 0.0
    with holding(tmp_path) as (layout, listener):
        daemon = Liveness(layout, lambda: now)
        assert not daemon.look()
        answer(listener)
        assert (daemon.look(), daemon.state) == (False, "answers"), "no news"
        assert not daemon.look(), "it is asked again after a pause"
        told, asked = [], now
        while now < asked + 3:
            if daemon.look():
                told.append((now, daemon.state))
            now += 0.125
        assert [state for _, state in told] == ["silent"]
        assert 1.5 <= told[0][0] - asked <= 1.5 + liveness.ASK_SECONDS + 0.125
        assert "does not answer (pid 1, daemon, since " in daemon.text
        answer(listener)
        assert (daemon.look(), daemon.text) == (True, "the daemon answers again")
    now += 1
    assert (daemon.look(), daemon.text) == (True, "the daemon is gone")
    assert not daemon.look()


def test_who_waits_for_it_waits_no_longer_than_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "SILENT_SECONDS", 0.2)
    with holding(tmp_path) as (layout, _):
        before, daemon = time.monotonic(), Liveness(layout)
        assert daemon.look(wait=True)
        assert time.monotonic() - before >= 0.2
        daemon.close()


@pytest.mark.parametrize("role", ["oa.snapshot", "run"])
def test_a_command_that_holds_the_log_is_no_daemon(tmp_path: Path, role: str) -> None:
    with holding(tmp_path, role) as (layout, _):
        daemon = Liveness(layout)
        assert (daemon.look(wait=True), daemon.state, daemon.text) == (True, "none", "no daemon runs")


def test_a_daemon_that_is_starting_is_waited_for_by_nobody(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.prepare()
    lock = WriterLock(layout.evidence.locks[-1], "pid 1, daemon")
    daemon = Liveness(layout)
    try:
        assert (daemon.look(wait=True), daemon.state) == (False, "unknown")
    finally:
        lock.release()


def test_a_connection_that_is_cut_is_no_answer(tmp_path: Path) -> None:
    now = 0.0
    with holding(tmp_path) as (layout, listener):
        daemon = Liveness(layout, lambda: now)
        daemon.look()
        listener.accept()[0].close()
        assert (daemon.look(), daemon.state) == (False, "unknown")
        now += 1
        daemon.look()
        answer(listener)
        daemon.look()
        assert daemon.state == "answers"
