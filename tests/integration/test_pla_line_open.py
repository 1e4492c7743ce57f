"""The line over a real pseudo terminal: who has it, with whom, and when it is given up."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import anyio
import pytest

from pmagent.actors.pla.line.discovery import PortUnusable
from pmagent.actors.pla.line.port import _Serial, open_port
from pmagent.contracts.hid import HidDisarmRequested, HidRefused, HidReported, HidSilent, HidStatusRequested, HidTold
from tests.support.cases import on_loop
from tests.support.pla_pty import Held, Pretend, held, lost, opened, play, pretend
from tests.support.pla_wired import HI, TIME, arm, commit, prepare


def test_a_lost_answer_to_commit_is_found_out_and_nothing_is_typed_twice(tmp_path: Path) -> None:
    async def scene(device: Pretend, line: Held) -> None:
        go = await line.ready(HI)
        await device.obey("swallow")
        silent = await go()
        assert isinstance(silent, HidSilent)
        assert (silent.sent, silent.code) == (True, "silent")
        told = await line.ask(
            HidStatusRequested(boot_id=(await line.linked()).boot_id, execution_id="exec-0001", at=TIME)
        )
        assert isinstance(told, HidTold)
        assert told.state == "DONE"
        assert (device.text, await device.heard("commit")) == ("hi", 1)

    play(tmp_path, scene)


def test_a_device_that_falls_silent_is_lost_as_stale_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pmagent.actors.pla.wire.host.HEARTBEAT_SECONDS", 1.5)  # it reports each second

    async def scene(device: Pretend, line: Held) -> None:
        await line.linked()
        await device.obey("mute")
        await line.facts.until(lost("stale"))
        after = len(line.facts.all)
        await device.obey("well")
        await line.linked(after)

    play(tmp_path, scene)


def test_a_device_that_reads_nothing_gets_nothing_later(tmp_path: Path) -> None:
    """It goes on reporting, so only its silence on requests tells. A request that it did not read in time is of a link
    that is over: read after all, it types nothing."""

    async def scene(device: Pretend, line: Held) -> None:
        first = await line.linked()
        go = await line.ready(HI)
        await device.obey("deaf")
        silent = await go()
        assert isinstance(silent, HidSilent)
        assert silent.sent
        await line.ask(HidDisarmRequested(boot_id="", why="a test"))
        await line.facts.until(lost("silent"))
        await device.told.until(lambda one: one.get("line") == "closed")
        after = len(line.facts.all)
        await device.obey("well")
        await line.linked(after)
        told = await line.ask(HidStatusRequested(boot_id=first.boot_id, execution_id="exec-0001", at=TIME))
        assert isinstance(told, HidTold)
        assert (told.state, device.text) == ("NONE", "")

    play(tmp_path, scene)


@on_loop
async def test_a_host_that_does_not_read_holds_up_nothing(tmp_path: Path) -> None:
    """The device serves its line, and types, while nobody takes what it says."""
    async with pretend(tmp_path) as device:
        descriptor = os.open(device.path, os.O_RDWR | os.O_NOCTTY)
        try:
            await device.told.until(lambda one: one.get("line") == "open")
            flood = b'{"n":1,"op":"status"}*9bbf\n' * 20
            for _ in range(40):
                os.write(descriptor, flood)
            await device.obey("caps")
            await device.told.until(lambda one: one.get("heard") == "status", times=800)
        finally:
            os.close(descriptor)
        async with held(device.path) as line:
            await line.linked()


@pytest.mark.parametrize("options", [("--contract-version", "2.0.0"), ("--contract-hash", "ab" * 32)])
def test_a_device_with_another_contract_is_shown_and_never_told_to_type(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    async def scene(device: Pretend, line: Held) -> None:
        linked = await line.linked()
        assert not linked.compatible
        for payload in (arm(linked.boot_id), prepare(HI, boot_id=linked.boot_id), commit(HI, boot_id=linked.boot_id)):
            outcome = await line.ask(payload)
            assert isinstance(outcome, HidRefused)
            assert outcome.code == "CONTRACT_MISMATCH"
        assert [await device.heard(op) for op in ("arm", "prepare", "commit")] == [0, 0, 0]
        await line.facts.until(lambda fact: isinstance(fact, HidReported))

    play(tmp_path, scene, *options)


@on_loop
async def test_another_device_than_the_wanted_one_is_not_linked(tmp_path: Path) -> None:
    async with pretend(tmp_path) as device, held(device.path, serial="device-0002") as line:
        trouble = await line.troubles.until(lambda _: True)
        assert trouble.code == "another"
        assert "pretend-device" in trouble.message
        assert "device-0002" in trouble.message
        assert not line.facts.all


@on_loop
async def test_without_a_device_a_request_is_answered_at_once(tmp_path: Path) -> None:
    async with held(tmp_path / "nothing") as line:
        trouble = await line.troubles.until(lambda _: True)
        assert (trouble.code, trouble.message) == ("missing", f"there is no device at {tmp_path / 'nothing'}")
        silent = await line.ask(commit(HI))
        assert isinstance(silent, HidSilent)
        assert (silent.sent, silent.code) == (False, "no_device")


@on_loop
async def test_what_is_no_serial_port_is_not_opened(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "file", Path("/dev/null")):
        if path.name == "file":
            path.write_text("")
        with pytest.raises(PortUnusable) as raised:
            await open_port(str(path), lambda: None)
        assert raised.value.code == "failed", path


def test_only_one_holds_the_line_and_the_second_is_told(tmp_path: Path) -> None:
    async def scene(device: Pretend, line: Held) -> None:
        await line.linked()
        async with held(device.path) as second:
            trouble = await second.troubles.until(lambda _: True)
            assert trouble.code == "taken"
            assert trouble.message == f"{device.path} is held by another program"
            assert not second.facts.all
        assert (await (await line.ready(HI))()).state == "DONE", "the first was not disturbed"

    play(tmp_path, scene)


@on_loop
async def test_of_two_that_open_at_once_one_has_the_line(tmp_path: Path) -> None:
    async with pretend(tmp_path) as device, held(device.path) as one, held(device.path) as two:
        refused: list[Held] = []
        async with anyio.create_task_group() as tasks:

            async def watch(line: Held) -> None:
                await line.troubles.until(lambda _: True)
                refused.append(line)
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch, one)
            tasks.start_soon(watch, two)
        [second] = refused
        first = one if second is two else two
        await first.linked()
        assert second.troubles.all[0].code == "taken"
        assert not second.facts.all


@on_loop
async def test_the_line_opens_raw_whatever_it_was_and_is_free_again(tmp_path: Path) -> None:
    """The program before us left half a line in it, and a terminal that echoes."""
    async with pretend(tmp_path) as device:
        descriptor = os.open(device.path, os.O_RDWR | os.O_NOCTTY)
        os.system(f"stty sane echo < {device.path}")  # noqa: ASYNC221 - at once
        os.write(descriptor, b'ATZ\r\n{"n":1,"op":"arm')
        async with held(device.path) as line:
            assert (await (await line.ready(HI))()).state == "DONE"
        os.close(descriptor)
        again = os.open(device.path, os.O_RDWR | os.O_NOCTTY)
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(again)
        assert device.text == "hi"


def test_a_device_that_keeps_the_closing_waiting_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel may hold up the closing of a port whose device does not read; the event loop is not held up."""
    reads, closed = threading.Event(), threading.Event()

    def let_go(self: _Serial) -> None:
        reads.wait()
        real(self)
        closed.set()

    async def main() -> None:
        async with pretend(tmp_path) as device:
            port = await open_port(str(device.path), lambda: None)
            began = anyio.current_time()
            await port.close()
            assert anyio.current_time() - began < 5
            assert opened(device.path) == 1
            reads.set()
            assert await anyio.to_thread.run_sync(closed.wait, 10)
            assert opened(device.path) == 0

    monkeypatch.setattr("pmagent.actors.pla.line.port.CLOSE_SECONDS", 0.05)
    real = _Serial.let_go
    monkeypatch.setattr(_Serial, "let_go", let_go)
    anyio.run(main)


@on_loop
async def test_what_was_written_and_not_taken_leaves_with_the_line(tmp_path: Path) -> None:
    """More than the terminal holds, to a device that reads nothing: closing takes no time, and throws it away."""
    async with pretend(tmp_path) as device:
        await device.obey("deaf")
        port = await open_port(str(device.path), lambda: None)
        port.write(b"x" * 200_000)
        assert not port.is_clear
        with anyio.fail_after(60):
            await port.close()
        assert port.ended
        assert opened(device.path) == 0
