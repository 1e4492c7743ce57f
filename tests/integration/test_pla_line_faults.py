"""The line over a real pseudo terminal with a cable that has faults: what is typed is what was approved, once, and what
is said of it is true."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio

from pmagent.actors.pla.hid.execution import ASK_SECONDS
from pmagent.actors.pla.line.discovery import Wanted
from pmagent.actors.pla.line.holding import FACTS_WAITING_MAX, Line
from pmagent.actors.pla.wire.lines import encode
from pmagent.contracts.hid import (
    HidDisarmRequested,
    HidEnded,
    HidLinked,
    HidLost,
    HidPinged,
    HidPingRequested,
    HidPrepared,
    HidReported,
    HidSilent,
    HidStatusRequested,
    HidTold,
)
from pmagent.contracts.payload import Payload
from pmagent.contracts.pla import TypeText
from pmagent.contracts.pla_events import PlaContractBroken
from tests.support.cases import on_loop
from tests.support.fault_pipe import (
    Fault,
    FaultPipe,
    Later,
    cut,
    doubled,
    dropped,
    first,
    garbled,
    merged,
    noisy,
    overlong,
    passing,
)
from tests.support.pla_pty import Held, Pretend, Told, held, pretend
from tests.support.pla_wired import TIME, arm, commit, event, prepare

TEXT = TypeText(text="Two parts: " + '"\\' * 30)
Scene = Callable[[Pretend, FaultPipe, Held], Awaitable[None]]


def play(folder: Path, *scenes: Scene) -> None:
    """Run scenes side by side, each with a device, a cable and a line."""

    async def one(number: int, scene: Scene) -> None:
        async with pretend(folder, name=f"device{number}") as device:
            with FaultPipe(device.path, folder / f"cable{number}") as pipe:
                async with held(pipe.path) as line:
                    await scene(device, pipe, line)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for number, scene in enumerate(scenes):
                tasks.start_soon(one, number, scene)

    anyio.run(main)


SMALL = TypeText(text="approved")


async def outcome(line: Held) -> object:
    """Commit the prepared text and find out what became of it, as the HID link does."""
    boot_id = (await line.linked()).boot_id
    asking = HidStatusRequested(boot_id=boot_id, execution_id="exec-0001", at=TIME)
    result = await line.ask(commit(SMALL, boot_id=boot_id))
    if isinstance(result, HidSilent):
        result = await line.ask(asking)
    while isinstance(result, HidTold) and result.state == "RUNNING":
        await anyio.sleep(ASK_SECONDS)  # as the HID link does: a device that is asked without end is let go
        result = await line.ask(asking)
    return result


async def armed_and_prepared(line: Held) -> None:
    """Up to the commit."""
    boot_id = (await line.linked()).boot_id
    await line.ask(arm(boot_id))
    line.renew(boot_id)
    assert isinstance(await line.ask(prepare(SMALL, boot_id=boot_id)), HidPrepared)


FAULTS = [dropped, doubled, cut, merged, garbled, overlong, noisy]


def test_a_fault_in_the_order_to_type(tmp_path: Path) -> None:
    async def scene(fault: Fault, device: Pretend, pipe: FaultPipe, line: Held) -> None:
        await armed_and_prepared(line)
        pipe.to_device = first(b'"op":"commit"', fault)
        result = await outcome(line)
        if isinstance(result, HidTold) and result.state == "PREPARED":
            assert device.text == "", "the order never arrived, and is not given again"
            assert fault not in (doubled, noisy)
        else:
            assert isinstance(result, HidEnded | HidTold), "told at its end, or, by a slow device, when asked"
            assert (result.state, device.text) == ("DONE", SMALL.text)
        assert sum(b'"op":"commit"' in line for line in pipe.lines["to_device"].all) == 1

    play(tmp_path, *(partial(scene, fault) for fault in FAULTS))


def test_a_fault_in_the_answer_to_it(tmp_path: Path) -> None:
    async def scene(fault: Fault, device: Pretend, pipe: FaultPipe, line: Held) -> None:
        await armed_and_prepared(line)
        pipe.to_host = first(b'"state":"RUNNING"', fault)
        result = await outcome(line)
        assert isinstance(result, HidEnded | HidTold)
        assert (result.state, device.text) == ("DONE", SMALL.text)
        assert await device.heard("commit") == 1

    play(tmp_path, *(partial(scene, fault) for fault in FAULTS))


def test_parts_come_through_faults(tmp_path: Path) -> None:
    """Requests that may be repeated are, and each part is held to its number."""

    async def scene(direction: str, wanted: bytes, device: Pretend, pipe: FaultPipe, line: Held) -> None:
        faults = iter([dropped, passing, garbled, passing, doubled])
        setattr(pipe, direction, lambda data: next(faults, passing)(data) if wanted in data else data)
        boot_id = (await line.linked()).boot_id
        await line.ask(arm(boot_id))
        line.renew(boot_id)
        ready = await line.ask(prepare(TEXT, boot_id=boot_id))
        assert isinstance(ready, HidPrepared)
        result = await line.ask(commit(TEXT, boot_id=boot_id))
        assert isinstance(result, HidEnded)
        assert (result.state, device.text) == ("DONE", TEXT.text)

    play(tmp_path, partial(scene, "to_device", b'"op":"prepare"'), partial(scene, "to_host", b'"have"'))


@on_loop
async def test_a_hello_that_is_cut_is_said_again(tmp_path: Path) -> None:
    async with pretend(tmp_path) as device:
        with FaultPipe(device.path, tmp_path / "cable") as pipe:
            pipe.to_device = first(b'"op":"hello"', cut)
            async with held(pipe.path) as line:
                await line.linked()
                assert not line.troubles.all


def test_an_order_that_comes_late_is_an_old_one(tmp_path: Path) -> None:
    """The commit is held up; meanwhile the host was told that it never arrived, and disarmed. Then it does arrive."""

    async def scene(device: Pretend, pipe: FaultPipe, line: Held) -> None:
        await armed_and_prepared(line)
        late = Later(b'"op":"commit"')
        pipe.to_device = late
        result = await outcome(line)
        assert isinstance(result, HidTold)
        assert result.state == "PREPARED"
        pipe.inject("to_device", late.let_go())
        await line.ask(HidDisarmRequested(boot_id="", why="a test"))
        assert (await device.heard("commit"), device.text) == (1, "")

    play(tmp_path, scene)


@on_loop
async def test_what_answers_with_an_echo_or_garbage_is_no_device(tmp_path: Path) -> None:
    async def hears(says: str, answer: Fault, device: Pretend) -> None:
        path = tmp_path / says.replace(" ", "_")
        with FaultPipe(device.path, path) as pipe:
            pipe.to_host = dropped

            def answers(line: bytes) -> bytes:
                pipe.inject("to_host", answer(line))
                return b""

            pipe.to_device = answers
            async with held(path) as line:
                trouble = await line.troubles.until(lambda _: True)
                assert trouble.code == "another"
                assert "no answer to hello" in trouble.message
                assert says in trouble.message
                assert not line.facts.all

    async with (
        pretend(tmp_path, name="one") as one, pretend(tmp_path, name="two") as two,
        anyio.create_task_group() as tasks,
    ):  # fmt: skip
        tasks.start_soon(hears, "lines were no answers", passing, one)
        tasks.start_soon(hears, "lines were damaged", lambda _: b"ERROR\r\n\x80\x81*0000\n", two)


@on_loop
async def test_a_hello_that_breaks_its_contract_is_told_once_and_never_linked(tmp_path: Path) -> None:
    async with pretend(tmp_path) as device:
        with FaultPipe(device.path, tmp_path / "cable") as pipe:
            pipe.to_host = lambda _: encode({"re": _number(pipe), "ok": True, "hello": {"armed": "yes"}})
            async with held(pipe.path) as line:
                await line.troubles.until(lambda _: True)
                asked = pipe.lines["to_device"]
                await asked.until(lambda line: b"hello" in line, after=len(asked.all))
                [broken] = line.facts.all
                assert isinstance(broken, PlaContractBroken)
                assert broken.contract == "hello"


def _number(pipe: FaultPipe) -> int:
    """Of the newest request."""
    return int(pipe.lines["to_device"].all[-1].split(b":")[1].split(b",")[0])


@on_loop
async def test_the_cable_is_pulled_out_and_put_back_while_it_types(tmp_path: Path) -> None:
    text = TypeText(text="x" * 1000)
    async with pretend(tmp_path) as device:
        async with anyio.create_task_group() as tasks:
            with FaultPipe(device.path, tmp_path / "cable") as pipe:
                async with held(pipe.path) as line:
                    go = await line.ready(text)
                    results: list[object] = []

                    async def type_it() -> None:
                        results.append(await go())

                    tasks.start_soon(type_it)
                    await device.presses(5)
                    after = len(device.told.all)
                    pipe._unplug()
                    lost = await line.facts.until(lambda fact: isinstance(fact, HidLost))
                    assert isinstance(lost, HidLost)
                    assert lost.code == "unplugged"
                    await device.dark(after)
                    pipe._plug()
                    again = await line.linked(after=len(line.facts.all) - 1)
                    told = await line.ask(
                        HidStatusRequested(boot_id=again.boot_id, execution_id="exec-0001", at=TIME)
                    )
                    assert isinstance(told, HidTold)
                    assert (told.state, told.code) == ("ABORTED", "LINK")
                    assert 5 <= len(device.text) <= told.done < 1000
        [silent] = results
        assert isinstance(silent, HidSilent)
        assert silent.sent


def test_a_log_that_does_not_keep_up_costs_the_link_and_no_fact(tmp_path: Path) -> None:
    """Where what is typed could not be recorded in time, nothing is to be typed; and no fact is left out or told out of
    order."""

    async def main() -> None:
        async with pretend(tmp_path) as device:
            with FaultPipe(device.path, tmp_path / "cable") as pipe:
                line, facts, gate = Line(), Told[Payload](), anyio.Event()
                switched: list[bool] = []

                async def append(fact: Payload) -> None:
                    if isinstance(fact, HidReported):
                        await gate.wait()
                    facts.add(fact)

                def switching(said: bytes) -> bytes:
                    """Each status that is told has Caps Lock the other way."""
                    if b'"caps_lock":false' not in said:
                        return said
                    switched.append(not (switched and switched[-1]))
                    return encode(json.loads(said[:-6].replace(b'"caps_lock":false', _json(switched[-1]))))

                pipe.to_host = switching
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(line.run, Wanted(str(pipe.path)), append, lambda _: None)
                    linked = await facts.until(lambda fact: isinstance(fact, HidLinked))
                    assert isinstance(linked, HidLinked)
                    ping = event(HidPingRequested(boot_id=linked.boot_id, at=TIME))
                    pings = 0
                    while isinstance(await line.perform(ping, None, TIME), HidPinged):
                        pings += 1
                    assert pings >= FACTS_WAITING_MAX
                    assert isinstance(await line.perform(ping, None, TIME), HidSilent), "not opened again meanwhile"
                    assert facts.all == [linked]
                    gate.set()
                    lost = await facts.until(lambda fact: isinstance(fact, HidLost))
                    assert isinstance(lost, HidLost)
                    assert lost.code == "closed"
                    told = [fact.caps_lock for fact in facts.all if isinstance(fact, HidReported)]
                    assert FACTS_WAITING_MAX < len(told) <= len(switched)
                    assert told == switched[: len(told)]
                    await facts.until(lambda fact: isinstance(fact, HidLinked), times=2)
                    tasks.cancel_scope.cancel()

    anyio.run(main)


def _json(is_on: bool) -> bytes:
    return b'"caps_lock":' + json.dumps(is_on).encode()
