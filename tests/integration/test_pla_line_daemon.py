"""A daemon that ends while something is typed: the typing ends with it, and what became of it is known, or told not to
be."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pmagent.contracts.pla import LEASE_SECONDS
from pmagent.events.errors import PmagentError
from pmagent.service.operations import call
from pmagent.workspace.layout import Layout
from tests.conftest import fresh_example
from tests.support.commands import pmagent
from tests.support.daemons import running
from tests.support.daemons import stopped as hanging
from tests.support.pla_live import Device, asked, await_event, configure, events, pla

pytestmark = pytest.mark.slow

TEXT = "This is long enough to be cut off. " * 29
WHO = {"operator": "ada", "channel": "api"}
LOG_BYTES = 256 * 1024
"""So long the log's file may be, where it may not grow for ever; nearly all of it is there before anything is typed."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace with settings for a device beside it."""
    workspace = fresh_example(tmp_path / "workspace")
    configure(workspace, device=str(tmp_path / "device"))
    return workspace


@contextmanager
def device_at(workspace: Path) -> Iterator[Device]:
    """The device that the settings want."""
    device = Device(workspace.parent / "device", workspace.parent / "typed.txt")
    try:
        yield device
    finally:
        device.close()


def begin_typing(workspace: Path, device: Device, before: Callable[[], None] = lambda: None) -> str:
    """Have the long text typed; the proposal's id, once some of it is there. ``before``: what is done when all is ready
    for it."""
    await_event(workspace, "hid.linked")
    pla(workspace, "mode", "SUGGEST")
    pla(workspace, "mode", "EXECUTE")
    pla(workspace, "arm")
    proposed = ask(workspace, "pla.propose", goal=f"type: {TEXT}")
    chosen = {"proposal_id": proposed["proposal_id"], "digest": proposed["digest"]}
    before()
    assert ask(workspace, "pla.decide", decision="APPROVED", **chosen)["decision"] == "approved"
    for _ in range(5):
        device.wait(lambda told: bool(told.get("text")))
    name: str = proposed["proposal_id"]
    return name


def ask(workspace: Path, operation: str, **arguments: Any) -> Any:
    """The daemon's answer."""
    return call(workspace, operation, {**arguments, **WHO}).document


def stopped(device: Device) -> str:
    """The text that had been typed when the light went off."""
    device.wait(lambda told: told.get("light") is False)
    typed = device.typed
    assert TEXT.startswith(typed)
    assert 5 <= len(typed) < len(TEXT)
    return typed


def test_a_daemon_that_stops_in_order_ends_the_typing_and_records_how(place: Path) -> None:
    with device_at(place) as device, running(place) as daemon:
        name = begin_typing(place, device)
        code, errors = daemon.end(signal.SIGTERM)
        assert code == 0, errors
        typed = stopped(device)
        [ended] = events(place, "hid.ended")
        assert (ended["state"], ended["code"]) == ("ABORTED", "DISARMED")
        assert len(typed) == (ended["done"] + 1) // 2, "a press and a release for each character"
        [closed] = [one for one in events(place, "pla.proposal_closed") if one["proposal_id"] == name]
        assert closed["outcome"] == "aborted"


def test_a_daemon_that_is_killed_ends_the_typing_and_the_next_one_finds_out(place: Path) -> None:
    with device_at(place) as device:
        with running(place) as daemon:
            begin_typing(place, device)
            daemon.end(signal.SIGKILL)
        typed = stopped(device)
        with running(place):
            await_event(place, "pla.executed")
            [executed] = events(place, "pla.executed")
            assert (executed["outcome"], executed["code"]) == ("aborted", "LINK")
            assert asked(place, "status")["mode"] == "OBSERVE"
        assert (device.typed, device.heard("commit")) == (typed, 1)


def test_a_daemon_that_is_killed_with_the_device_reset_says_that_nobody_knows(place: Path) -> None:
    with device_at(place) as device:
        with running(place) as daemon:
            begin_typing(place, device)
            daemon.end(signal.SIGKILL)
        typed = stopped(device)
        device.do("reset")
        with running(place):
            await_event(place, "hid.outcome_unknown")
            assert not events(place, "pla.executed")
        assert (device.typed, device.heard("commit")) == (typed, 1)


def test_disarming_past_a_daemon_that_hangs_ends_the_typing_and_nothing_is_typed_again(place: Path) -> None:
    with device_at(place) as device, running(place) as daemon:
        name = begin_typing(place, device)
        with hanging(daemon):
            disarmed = pmagent(place, "pla", "disarm", "--format", "json")
            assert disarmed.code == 6, disarmed.errors
            error = disarmed.document["error"]
            assert (error["line"], error["outcome"]) == ("down", "unknown")
            assert "may still happen" in error["message"]
            device.wait(lambda told: told.get("line") == "closed")
            device.do("mark")  # by then it has let go of all keys
            typed = device.typed
            assert TEXT.startswith(typed)
            assert 5 <= len(typed) < len(TEXT)
            paused = pmagent(place, "pause")
            assert paused.code == 6
            assert "disarms itself" in paused.errors
        await_event(place, "pla.executed")
        [executed] = events(place, "pla.executed")
        assert executed["outcome"] == "aborted"
        assert executed["code"] in ("LINK", "LEASE")  # the latter where this machine was slower than the lease
        [closed] = [one for one in events(place, "pla.proposal_closed") if one["proposal_id"] == name]
        assert closed["outcome"] == "aborted"
        await_event(place, "control.paused")
        assert [one["operator_id"] for one in events(place, "pla.disarm_requested")] == ["ada"]
        assert asked(place, "status")["mode"] == "OBSERVE"
        assert (device.typed, device.heard("commit")) == (typed, 1)
        assert daemon.end()[0] == 0


def test_while_a_daemon_is_stopped_nothing_pings_and_typing_ends_within_the_lease(place: Path) -> None:
    """By the device's own clock, in which it tells what it hears and what it types."""
    with device_at(place) as device, running(place) as daemon:
        begin_typing(place, device)
        with hanging(daemon):
            stopped_at = time.monotonic_ns()
            stopped(device)
            told = device.told
        heard = max(one["at"] for one in told if one.get("heard") in ("arm", "ping"))
        typed = max(one["at"] for one in told if one.get("text"))
        assert typed - heard <= LEASE_SECONDS * 1e9
        assert heard <= stopped_at
        assert typed - stopped_at <= LEASE_SECONDS * 1e9
        await_event(place, "pla.executed")
        [executed] = events(place, "pla.executed")
        assert (executed["outcome"], executed["code"]) == ("aborted", "LEASE")
        assert asked(place, "status")["mode"] == "OBSERVE"
        assert device.heard("commit") == 1


def test_disarming_past_a_daemon_that_holds_no_line_says_so(place: Path) -> None:
    with running(place) as daemon, hanging(daemon):
        disarmed = pmagent(place, "pla", "disarm", "--format", "json")
    assert (disarmed.code, disarmed.document["error"]["line"]) == (6, "none")


def test_a_log_that_cannot_be_written_ends_the_typing(place: Path) -> None:
    with device_at(place) as device, running(place, file_bytes_max=LOG_BYTES) as daemon:
        begin_typing(place, device, before=lambda: fill(place, LOG_BYTES - 32 * 1024))
        fill(place, LOG_BYTES)
        code, errors = daemon.wait()
        assert code not in (0, 99), errors
        stopped(device)


def fill(workspace: Path, log_bytes: int) -> None:
    """Ask for things until the log's file is so long, or may not grow any more."""
    (segment,) = Layout(workspace).log.glob("*.jsonl")
    for number in range(400):
        if segment.stat().st_size >= log_bytes:
            return
        try:
            ask(workspace, "pla.propose", goal="type: " + json.dumps("x" * 1000 + str(number)))
        except (PmagentError, OSError):
            return
    pytest.fail("the log took it all")
