"""The line over a real pseudo terminal, to the firmware's core in a process of its own."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from actors.pla.finding import PortUnusable
from actors.pla.port import open_port
from contracts.hid import (
    HidDisarmRequested,
    HidEnded,
    HidLost,
    HidRefused,
    HidReported,
    HidSilent,
    HidStatusRequested,
    HidTold,
)
from contracts.pla import KeyCombo, TypeText
from tests.support.pla_pty import Held, Pretend, held, opened, pretend
from tests.support.pla_wired import HI, TIME, arm, commit, prepare

LONG = TypeText(text="This text is approved, and takes a while. " * 20)
Scene = Callable[[Pretend, Held], Awaitable[None]]


def play(folder: Path, scene: Scene, *options: str) -> None:
    """Run a scene with a device and a line to it."""

    async def main() -> None:
        async with pretend(folder, *options) as device, held(device.path) as line:
            await scene(device, line)

    anyio.run(main)


def lost(code: str) -> Callable[[object], bool]:
    return lambda fact: isinstance(fact, HidLost) and fact.code == code


def test_what_is_approved_is_typed_and_the_line_is_let_go_disarmed(tmp_path: Path) -> None:
    text = TypeText(text="Hello, \"lab\" {~}\t'\\'!\n")

    async def main() -> None:
        async with pretend(tmp_path) as device:
            async with held(device.path) as line:
                ended = await (await line.ready(text))()
                assert isinstance(ended, HidEnded)
                assert (ended.state, ended.done) == ("DONE", ended.of)
                await line.ask(arm((await line.linked()).boot_id))
            assert device.text == text.text
            await device.told.until(lambda one: one.get("line") == "closed")
            assert device.heard("disarm") == 1
            await device.dark()
            assert opened(device.path) == 0

    anyio.run(main)


def test_a_combination_is_pressed_and_released_together(tmp_path: Path) -> None:
    async def scene(device: Pretend, line: Held) -> None:
        await (await line.ready(KeyCombo(keys=["ctrl", "alt", "t"])))()
        await device.told.until(lambda one: one.get("report") == ["keyboard", 5, [23]])
        assert device.text == ""

    play(tmp_path, scene)


# --- trouble while it types -----------------------------------------------------------------------------------------


async def typing(device: Pretend, line: Held, trouble: Callable[[], Awaitable[None]]) -> object:
    """Begin the long text, cause trouble after some characters: what came of the commit."""
    go = await line.ready(LONG)
    outcomes: list[object] = []

    async def type_it() -> None:
        outcomes.append(await go())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(type_it)
        await device.presses(5)
        after = len(device.told.all)
        await trouble()
    await device.released(after)
    assert LONG.text.startswith(device.text)
    assert len(device.text) < len(LONG.text)
    return outcomes[0]


def test_the_kill_switch_ends_the_typing(tmp_path: Path) -> None:
    async def scene(device: Pretend, line: Held) -> None:
        outcome = await typing(device, line, lambda: device.obey("kill"))
        assert isinstance(outcome, HidEnded)
        assert (outcome.state, outcome.code) == ("ABORTED", "KILLED")
        await line.facts.until(lambda fact: isinstance(fact, HidReported) and fact.kill_switch_state == "DISABLED")
        await device.obey("restore")
        assert (await line.ask(arm((await line.linked()).boot_id))).code == "KILLED", "latched until power-on"
        for words, switch in ((["reset"], "DISABLED"), (["unplug", "plug"], "ARMED")):
            after = len(line.facts.all)
            for word in words:
                await device.obey(word)
            assert (await line.linked(after)).kill_switch_state == switch, words

    play(tmp_path, scene)


def test_unplugged_while_it_types_nobody_knows_and_it_comes_back_disarmed(tmp_path: Path) -> None:
    async def scene(device: Pretend, line: Held) -> None:
        first = await line.linked()

        async def replug() -> None:
            await device.obey("unplug")
            await line.facts.until(lost("unplugged"))
            await device.obey("plug")

        outcome = await typing(device, line, replug)
        assert isinstance(outcome, HidSilent)
        assert (outcome.sent, outcome.code) == (True, "no_device")
        again = await line.linked(after=2)
        assert again.boot_id != first.boot_id
        asked = HidStatusRequested(boot_id=first.boot_id, execution_id="exec-0001", at=TIME)
        assert (await line.ask(asked)).code == "BOOT_MISMATCH"
        assert not await is_armed(line)

    play(tmp_path, scene)


async def is_armed(line: Held) -> bool:
    """What its next report says."""
    fact = await line.facts.until(lambda fact: isinstance(fact, HidReported), len(line.facts.all) - 1)
    assert isinstance(fact, HidReported)
    return fact.led_state


def test_a_reset_while_it_types_is_a_lost_device_and_an_unknown_end(tmp_path: Path) -> None:
    async def scene(device: Pretend, line: Held) -> None:
        outcome = await typing(device, line, lambda: device.obey("reset"))
        assert isinstance(outcome, HidSilent)
        assert outcome.sent
        await line.facts.until(lost("reset"))
        assert device.heard("commit") == 1

    play(tmp_path, scene)


def test_a_machine_that_falls_asleep_ends_the_typing_and_nothing_stays_down(tmp_path: Path) -> None:
    async def scene(device: Pretend, line: Held) -> None:
        async def sleep_and_wake() -> None:
            before = len(device.told.all)
            await device.obey("suspend")
            await device.dark(before)
            await device.obey("resume")

        outcome = await typing(device, line, sleep_and_wake)
        assert isinstance(outcome, HidEnded)
        assert (outcome.state, outcome.code) == ("ABORTED", "USB")
        assert outcome.done in (2 * len(device.text) - 1, 2 * len(device.text))

    play(tmp_path, scene)


def test_caps_lock_ends_the_typing_of_letters_and_lets_none_begin(tmp_path: Path) -> None:
    async def scene(device: Pretend, line: Held) -> None:
        outcome = await typing(device, line, lambda: device.obey("caps"))
        assert isinstance(outcome, HidEnded)
        assert (outcome.state, outcome.code) == ("ABORTED", "CAPS_LOCK")
        typed = device.text
        refused = await (await line.ready(HI))()
        assert (refused.code, device.text) == ("CAPS_LOCK", typed)

    play(tmp_path, scene)


def test_disarm_ends_the_typing_at_once(tmp_path: Path) -> None:
    async def scene(device: Pretend, line: Held) -> None:
        async def disarm() -> None:
            await line.ask(HidDisarmRequested(boot_id="", why="a test"))

        outcome = await typing(device, line, disarm)
        assert isinstance(outcome, HidEnded)
        assert (outcome.state, outcome.code) == ("ABORTED", "DISARMED")

    play(tmp_path, scene)


def test_a_commit_that_is_not_waited_for_any_more_is_stopped(tmp_path: Path) -> None:
    async def scene(device: Pretend, line: Held) -> None:
        go = await line.ready(LONG)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go)
            await device.presses(5)
            tasks.cancel_scope.cancel()
        assert device.heard("disarm") == 1
        told = await line.ask(
            HidStatusRequested(boot_id=(await line.linked()).boot_id, execution_id="exec-0001", at=TIME)
        )
        assert isinstance(told, HidTold)
        assert (told.state, told.code) == ("ABORTED", "DISARMED")
        assert len(device.text) < 20

    play(tmp_path, scene)


def test_letting_go_of_the_line_ends_the_typing(tmp_path: Path) -> None:
    async def main() -> None:
        async with pretend(tmp_path) as device:
            async with anyio.create_task_group() as tasks, held(device.path) as line:
                tasks.start_soon(await line.ready(LONG))
                await device.presses(5)
                after = len(device.told.all)
                tasks.cancel_scope.cancel()
            await device.dark(after)
            assert device.heard("disarm") >= 1
            assert len(device.text) < 20

    anyio.run(main)


HOLDER = """
import sys, anyio
from pathlib import Path
from actors.pla.wire import exchanges
from tests.support.pla_pty import held
from tests.support.pla_wired import TypeText
exchanges._LEASE_MS = 500  # so that the test does not take so long
async def main():
    async with held(Path(sys.argv[1])) as line:
        await (await line.ready(TypeText(text=sys.argv[2])))()
anyio.run(main)
"""


@pytest.mark.parametrize(("blow", "code"), [(signal.SIGKILL, "LINK"), (signal.SIGSTOP, "LEASE")])
def test_a_host_that_ends_or_hangs_while_it_types_ends_the_typing(
    tmp_path: Path, blow: signal.Signals, code: str
) -> None:
    """Killed, the line closes; stopped, its lease runs out."""
    root = str(Path(__file__).parents[2])

    async def main() -> None:
        async with pretend(tmp_path) as device:
            command = [sys.executable, "-c", HOLDER, str(device.path), "x" * 1024]
            async with await anyio.open_process(command, env={**os.environ, "PYTHONPATH": root}) as host:
                await device.presses(5)
                after = len(device.told.all)
                host.send_signal(blow)
                await device.dark(after)
                await device.released(after)
                if blow == signal.SIGSTOP:
                    host.kill()
            async with held(device.path) as line:
                boot_id = (await line.linked()).boot_id
                told = await line.ask(HidStatusRequested(boot_id=boot_id, execution_id="exec-0001", at=TIME))
                assert isinstance(told, HidTold)
                assert (told.state, told.code) == ("ABORTED", code)
                assert 5 <= len(device.text) < 1024

    anyio.run(main)


# --- the line -------------------------------------------------------------------------------------------------------


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
        assert (device.text, device.heard("commit")) == ("hi", 1)

    play(tmp_path, scene)


def test_a_device_that_falls_silent_is_lost_as_stale_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.pla.wire.host.HEARTBEAT_SECONDS", 1.5)  # it reports each second

    async def scene(device: Pretend, line: Held) -> None:
        await line.linked()
        await device.obey("mute")
        await line.facts.until(lost("stale"))
        after = len(line.facts.all)
        await device.obey("well")
        await line.linked(after)

    play(tmp_path, scene)


def test_a_device_that_reads_nothing_gets_nothing_later(tmp_path: Path) -> None:
    """It goes on reporting, so only its silence on requests tells. What it did not read in time is of a link that
    is over: read after all, it types nothing."""

    async def scene(device: Pretend, line: Held) -> None:
        first = await line.linked()
        go = await line.ready(HI)
        await device.obey("deaf")
        silent = await go()
        assert isinstance(silent, HidSilent)
        assert silent.sent
        await line.ask(HidDisarmRequested(boot_id="", why="a test"))
        await line.facts.until(lost("silent"))
        after = len(line.facts.all)
        await device.obey("well")
        await line.linked(after)
        told = await line.ask(HidStatusRequested(boot_id=first.boot_id, execution_id="exec-0001", at=TIME))
        assert isinstance(told, HidTold)
        assert (told.state, device.text) == ("NONE", "")

    play(tmp_path, scene)


def test_a_host_that_does_not_read_holds_up_nothing(tmp_path: Path) -> None:
    """The device serves its line, and types, while nobody takes what it says."""

    async def main() -> None:
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

    anyio.run(main)


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
        assert device.heard("commit") == device.heard("prepare") == device.heard("arm") == 0
        await line.facts.until(lambda fact: isinstance(fact, HidReported))

    play(tmp_path, scene, *options)


def test_another_device_than_the_wanted_one_is_not_linked(tmp_path: Path) -> None:
    async def main() -> None:
        async with pretend(tmp_path) as device, held(device.path, serial="device-0002") as line:
            trouble = await line.troubles.until(lambda _: True)
            assert trouble.code == "another"
            assert "it is the device pretend-device, not device-0002" in trouble.message
            assert not line.facts.all

    anyio.run(main)


def test_without_a_device_a_request_is_answered_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with held(tmp_path / "nothing") as line:
            trouble = await line.troubles.until(lambda _: True)
            assert (trouble.code, trouble.message) == ("missing", f"there is no device at {tmp_path / 'nothing'}")
            silent = await line.ask(commit(HI))
            assert isinstance(silent, HidSilent)
            assert (silent.sent, silent.code) == (False, "no_device")

    anyio.run(main)


def test_what_is_no_serial_port_is_not_opened(tmp_path: Path) -> None:
    async def main() -> None:
        for path in (tmp_path, tmp_path / "file", Path("/dev/null")):
            if path.name == "file":
                path.write_text("")
            with pytest.raises(PortUnusable) as raised:
                await open_port(str(path), lambda: None)
            assert raised.value.code == "failed", path

    anyio.run(main)


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


def test_of_two_that_open_at_once_one_has_the_line(tmp_path: Path) -> None:
    async def main() -> None:
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

    anyio.run(main)


def test_the_line_opens_raw_whatever_it_was_and_is_free_again(tmp_path: Path) -> None:
    """What was open before us left half a line in it, and a terminal that echoes."""

    async def main() -> None:
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

    anyio.run(main)
