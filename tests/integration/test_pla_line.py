"""The line over a real pseudo terminal, to the firmware's core in a process of its own."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from pmagent.contracts.hid import HidDisarmRequested, HidEnded, HidReported, HidSilent, HidStatusRequested, HidTold
from pmagent.contracts.pla import KeyCombo, TypeText
from tests.support.cases import on_loop
from tests.support.pla_pty import Held, Pretend, held, lost, opened, play, pretend
from tests.support.pla_wired import HI, TIME, arm

LONG = TypeText(text="This text is approved, and takes a while. " * 20)


@on_loop
async def test_what_is_approved_is_typed_and_the_line_is_let_go_disarmed(tmp_path: Path) -> None:
    text = TypeText(text="Hello, \"lab\" {~}\t'\\'!\n")

    async with pretend(tmp_path) as device:
        async with held(device.path) as line:
            ended = await (await line.ready(text))()
            assert isinstance(ended, HidEnded)
            assert (ended.state, ended.done) == ("DONE", ended.of)
            await line.ask(arm((await line.linked()).boot_id))
        assert device.text == text.text
        await device.told.until(lambda one: one.get("line") == "closed")
        assert await device.heard("disarm") == 1
        await device.dark()
        assert opened(device.path) == 0


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
    """Whether it is armed, by its next report."""
    fact = await line.facts.until(lambda fact: isinstance(fact, HidReported), len(line.facts.all) - 1)
    assert isinstance(fact, HidReported)
    return fact.led_state


def test_a_reset_while_it_types_is_a_lost_device_and_an_unknown_end(tmp_path: Path) -> None:
    async def scene(device: Pretend, line: Held) -> None:
        outcome = await typing(device, line, lambda: device.obey("reset"))
        assert isinstance(outcome, HidSilent)
        assert outcome.sent
        await line.facts.until(lost("reset"))
        assert await device.heard("commit") == 1

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


def assert_nothing_after(device: Pretend, what: str, value: str) -> None:
    """The device typed until it was told that, and not one character afterwards; the text was not at its end."""
    told = device.told.all
    stopped = next(at for at, one in enumerate(told) if one.get(what) == value)
    assert not [one for one in told[stopped:] if one.get("text")]
    assert LONG.text.startswith(device.text)
    assert 5 <= len(device.text) < len(LONG.text)


def test_a_commit_that_is_not_waited_for_any_more_is_stopped(tmp_path: Path) -> None:
    async def scene(device: Pretend, line: Held) -> None:
        go = await line.ready(LONG)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go)
            await device.presses(5)
            tasks.cancel_scope.cancel()
        assert await device.heard("disarm") == 1
        told = await line.ask(
            HidStatusRequested(boot_id=(await line.linked()).boot_id, execution_id="exec-0001", at=TIME)
        )
        assert isinstance(told, HidTold)
        assert (told.state, told.code) == ("ABORTED", "DISARMED")
        assert_nothing_after(device, "heard", "disarm")

    play(tmp_path, scene)


@on_loop
async def test_letting_go_of_the_line_ends_the_typing(tmp_path: Path) -> None:
    async with pretend(tmp_path) as device:
        async with anyio.create_task_group() as tasks, held(device.path) as line:
            tasks.start_soon(await line.ready(LONG))
            await device.presses(5)
            after = len(device.told.all)
            tasks.cancel_scope.cancel()
        await device.dark(after)
        assert await device.heard("disarm") >= 1
        assert_nothing_after(device, "heard", "disarm")


HOLDER = """
import sys, anyio
from pathlib import Path
from tests.support.pla_pty import held
from tests.support.pla_wired import TypeText
async def main():
    async with held(Path(sys.argv[1])) as line:
        await (await line.ready(TypeText(text=sys.argv[2])))()
anyio.run(main)
"""


@pytest.mark.parametrize(("blow", "code"), [(signal.SIGKILL, "LINK"), (signal.SIGSTOP, "LEASE")])
@on_loop
async def test_a_host_that_ends_or_hangs_while_it_types_ends_the_typing(
    tmp_path: Path, blow: signal.Signals, code: str
) -> None:
    """Killed, the line closes; stopped, its lease runs out."""
    root = str(Path(__file__).parents[2])

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
