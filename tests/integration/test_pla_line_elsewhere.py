"""A device that is plugged into a worker's host: a real daemon, a real worker, a database, the firmware behind a pseudo
terminal. Whatever parts them, nothing is typed beyond the lease of the line, and nothing twice."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pmagent.workspace.trust import accept
from tests.support.commands import pmagent, spawn
from tests.support.daemons import Daemon, running, stopped
from tests.support.effort import by_night
from tests.support.pla_live import Device, asked, await_event, end_of_log, events, pla
from tests.support.postgres import Server, one_server
from tests.support.workers import HANDS, LOG, Worker, joined

LONG = "none of this is typed to its end " * 8


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server, where a worker may carry the line."""
    with one_server() as made:
        joined(made)
        yield made


@pytest.fixture
def lab(workspace: Path, server: Server) -> Path:
    """A workspace whose log lies there, and whose device is that of the worker ``bench``."""
    server.sql(f"UPDATE pm.log SET name = 'old-' || log_no WHERE name = '{LOG}'; TRUNCATE pm.line")
    (workspace / ".pmagent").mkdir(exist_ok=True)
    (workspace / ".pmagent/config.toml").write_text(
        f'[storage]\nlog = "{server.address(LOG)}"\nreplicated = false\n'
        f'[pla]\noperator = "ada"\ndevice = "worker:{HANDS}/bench"\n'
    )
    accept(workspace)
    return workspace


@contextmanager
def linked(lab: Path, server: Server, folder: Path) -> Iterator[tuple[Daemon, Device, Worker]]:
    """The daemon, the device in EXECUTE and armed, and the worker that carries its line."""
    (folder / "nothing").mkdir()
    device = Device(folder / "device", folder / "typed.txt")
    worker = Worker(server, folder / "bench", folder / "nothing", line={"device": str(folder / "device")}, tools=[])
    try:
        with running(lab) as daemon:
            await_event(lab, "hid.linked")
            for mode in ("SUGGEST", "EXECUTE"):
                pla(lab, "mode", mode)
            pla(lab, "arm")
            yield daemon, device, worker
    finally:
        worker.kill()
        device.close()


def ordered(lab: Path, text: str, *more: str) -> dict[str, Any]:
    """A text, proposed and approved; the answer."""
    proposed = asked(lab, "propose", f"type: {text}")
    given = ("approve", proposed["proposal_id"], "--digest", proposed["digest"], "--format", "json", *more)
    document: dict[str, Any] = pmagent(lab, "pla", *given).document
    return document


def let_go(device: Device) -> None:
    """Nobody holds the device any more, and everything is released."""
    device.wait(lambda one: one.get("line") == "closed")
    device.wait(lambda one: one.get("report") == ["release"])


def test_what_is_approved_is_typed_there_and_the_operators_stop_reaches_it(
    lab: Path, server: Server, tmp_path: Path
) -> None:
    with linked(lab, server, tmp_path) as (daemon, device, worker):
        assert asked(lab, "status")["device"]["port"] == f"worker:{HANDS}/bench"
        assert server.sql("SELECT count(*) FROM pm.worker") == "0", "without programs it takes no attempts"
        assert ordered(lab, "hello")["outcome"]["outcome"] == "executed"
        assert device.typed == "hello"
        ordered(lab, LONG, "--no-wait")
        device.wait(lambda one: one.get("text") == LONG[2])
        pla(lab, "disarm")
        device.wait(lambda one: one.get("report") == ["release"])
        typed = device.typed
        assert LONG.startswith(typed.removeprefix("hello"))
        assert worker.stop() == 0
        let_go(device)
        assert device.typed == typed != f"hello{LONG}"
        await_event(lab, "hid.lost")
        assert daemon.end()[0] == 0
    assert spawn("log", "verify", cwd=lab).code == 0
    assert spawn("replay", cwd=lab).code == 0


@by_night
def test_typing_ends_with_a_daemon_that_is_killed_and_is_not_taken_up_by_the_next(
    lab: Path, server: Server, tmp_path: Path
) -> None:
    with linked(lab, server, tmp_path) as (daemon, device, worker):
        ordered(lab, LONG, "--no-wait")
        device.wait(lambda one: one.get("text") == LONG[2])
        daemon.end(signal.SIGKILL)
        let_go(device)
        typed = device.typed
        assert LONG.startswith(typed)
        assert typed != LONG
        after = end_of_log(lab)
        with running(lab) as following:
            await_event(lab, "hid.linked", after=after)
            assert [one["request"] for one in events(lab, "effect.interrupted")], "nobody knows what became of it"
            await_event(lab, "pla.session_ended", after=after)
            assert device.typed == typed
            assert following.end()[0] == 0
        assert worker.said().count("carries the line") == 2


@by_night
def test_typing_ends_while_the_daemon_stands_still_and_is_not_taken_up_when_it_goes_on(
    lab: Path, server: Server, tmp_path: Path
) -> None:
    with linked(lab, server, tmp_path) as (daemon, device, _):
        ordered(lab, LONG, "--no-wait")
        device.wait(lambda one: one.get("text") == LONG[2])
        after = end_of_log(lab)
        with stopped(daemon):
            let_go(device)
            typed = device.typed
            assert LONG.startswith(typed)
            assert typed != LONG
        await_event(lab, "hid.linked", after=after)
        assert [one["mode"] for one in events(lab, "pla.mode_changed")][-1] == "OBSERVE"
        assert (device.typed, device.heard("commit")) == (typed, 1)
        assert daemon.end()[0] == 0
    assert spawn("replay", cwd=lab).code == 0
