"""SIGHUP: a daemon reads its settings again, and says what changed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pmagent.contracts.daemon import DaemonReloaded
from tests.support.commands import accepted
from tests.support.daemons import Daemon, running
from tests.support.logged import history
from tests.support.pla_live import await_event


@pytest.fixture
def config(workspace: Path) -> Path:
    file = workspace / ".pmagent" / "config.toml"
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.write_text('[kernel]\nphase = "40"\n')
    return file


@pytest.fixture
def daemon(workspace: Path, config: Path) -> Iterator[Daemon]:  # noqa: ARG001 - it is there first
    with running(workspace) as daemon:
        yield daemon


def reloaded(workspace: Path, daemon: Daemon, times: int) -> DaemonReloaded:
    """The daemon's report on its settings, the ``times``-th time that it is asked to read them."""
    before = history(workspace)[-1].position
    daemon.process.send_signal(signal.SIGHUP)
    await_event(workspace, "daemon.reloaded", after=before)
    found = [event.data for event in history(workspace) if isinstance(event.data, DaemonReloaded)]
    assert len(found) == times
    return found[-1]


def test_a_reload_names_what_changed_and_what_needs_a_restart(workspace: Path, config: Path, daemon: Daemon) -> None:
    assert reloaded(workspace, daemon, 1) == DaemonReloaded()
    config.write_text('[kernel]\nphase = "41"\n[console]\nhours = 3.0\n')
    accepted(workspace)
    assert reloaded(workspace, daemon, 2) == DaemonReloaded(
        changed=["console.hours", "kernel.phase"], restart=["console.hours"]
    )
    assert reloaded(workspace, daemon, 3) == DaemonReloaded(restart=["console.hours"])
    code, errors = daemon.end()
    assert code == 0
    assert "console.hours" in errors


def test_a_file_not_understood_changes_nothing_and_is_one_line(workspace: Path, config: Path, daemon: Daemon) -> None:
    assert reloaded(workspace, daemon, 1) == DaemonReloaded()
    before, end = config.read_text(), history(workspace)[-1].position
    config.write_text("[kernel]\nphse = 1\n")
    daemon.process.send_signal(signal.SIGHUP)
    assert daemon.process.stderr is not None
    line = next(line for line in daemon.process.stderr if b"phse" in line)
    assert b"nothing has changed" in line
    config.write_text(before)
    await_event(workspace, "daemon.reloaded", after=end)
    refused = history(workspace)[-1].data
    assert (refused.changed, refused.restart) == ([], [])
    assert "kernel.phse" in refused.refused
    assert reloaded(workspace, daemon, 3) == DaemonReloaded()
    code, errors = daemon.end()
    assert code == 0
    assert "phse" not in errors


def test_a_file_that_nobody_accepted_is_refused(workspace: Path, config: Path, daemon: Daemon) -> None:
    assert reloaded(workspace, daemon, 1) == DaemonReloaded()
    config.write_text(config.read_text() + '\n[checks]\n"Foreign" = ["true"]\n')
    daemon.process.send_signal(signal.SIGHUP)
    assert daemon.process.stderr is not None
    line = next(line for line in daemon.process.stderr if b"not read again" in line)
    assert b"Foreign" in line
    assert daemon.end()[0] == 0
    _, refused = [event.data for event in history(workspace, "daemon.reloaded")]
    assert "Foreign" in refused.refused
