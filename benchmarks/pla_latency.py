"""How soon after an operator's approval the first key goes down: through the daemon and its log, to the firmware's core
behind a pseudo terminal in a process of its own.

Beside it the same conversation with the device (prepare, commit) on an open line, with no log and no daemon: what is
between the two is the price of recording each step before the next is taken. Both are read on the device's clock,
CLOCK_MONOTONIC, which is that of the machine. The device types 8 ms after a report at the soonest, as on a board.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from benchmarks.harness import Bench, Row, Spread, percentile
from pmagent.actors.pla.line.discovery import Wanted
from pmagent.actors.pla.line.holding import Line
from pmagent.contracts.hid import HidArmRequested, HidCommitRequested, HidEnded, HidLinked, HidPrepareRequested
from pmagent.contracts.payload import Payload, encode, type_of
from pmagent.contracts.pla import TypeText, digest
from pmagent.events.event import Event
from pmagent.events.log import now
from pmagent.pla.demo.environment import DemoEnvironment, Device

BETWEEN_S = 0.15
"""The device leaves 100 ms between two actions; the next is asked for later, so that this is not what is measured."""


def run(bench: Bench) -> list[Row]:
    """One daemon and one device; then the line alone."""
    count = bench.count(60, 2)
    with _device(bench.folder) as (demo, device):
        demo.build()
        with demo.daemon():
            demo.await_event("hid.linked", 0)
            approved = _approvals(demo, device, count)
        bare = anyio.run(_line, demo.link, device, count)
    median, bare_median = percentile(approved, 0.5), percentile(bare, 0.5)
    figure = Spread(median, min(approved), max(approved))
    return [
        Row(
            what="approval asked for until the first key is down", figure=figure, unit="ms",
            beside="prepare and commit on the open line", limit=Spread(bare_median, min(bare), max(bare)),
            ratio=median / bare_median, target="< 20 ms", reached=median < 20,
            note=f"p99 {percentile(approved, 0.99):.1f} ms of {count}; recorded durably at each step",
        )
    ]  # fmt: skip


@contextmanager
def _device(folder: Path) -> Iterator[tuple[DemoEnvironment, Device]]:
    demo = DemoEnvironment(folder, lambda _: None)
    device = Device(demo.link, demo.typed)
    try:
        yield demo, device
    finally:
        device.close()


def _approvals(demo: DemoEnvironment, device: Device, count: int) -> list[float]:
    """Milliseconds from sending each approval to the key."""
    who = {"operator": "ada", "channel": "api"}
    demo.ask("pla.mode", mode="SUGGEST", **who)
    demo.ask("pla.mode", mode="EXECUTE", **who)
    demo.ask("pla.arm", **who)
    found = []
    for number in range(count):
        proposed = demo.ask("pla.propose", goal=f"type: {number % 10}", **who)
        time.sleep(BETWEEN_S)
        chosen = {"proposal_id": proposed["proposal_id"], "digest": proposed["digest"]}
        asked_at = time.monotonic_ns()
        taken = demo.ask("pla.decide", decision="APPROVED", **chosen, **who)
        assert taken["decision"] == "approved", taken
        found.append((_key_at(device) - asked_at) / 1e6)
        demo.ask("pla.outcome", proposal_id=proposed["proposal_id"], seconds=10.0)
    return found


async def _line(link: Path, device: Device, count: int) -> list[float]:
    """Milliseconds from handing over each text to the key."""
    line, linked = Line(), anyio.Event()
    boots: list[str] = []

    async def hear(fact: Payload) -> None:
        if isinstance(fact, HidLinked):
            boots.append(fact.boot_id)
            linked.set()

    found = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(line.run, Wanted(str(link)), hear, lambda _: None)
        await linked.wait()
        which: dict[str, Any] = {"boot_id": boots[0]}
        arm = HidArmRequested(permit=1, device_id="pretend-device", action_class="feature_work", **which)
        for number in range(count):
            await anyio.sleep(BETWEEN_S)
            await line.perform(_event(arm), None, now())
            action = TypeText(text=f"{number % 10}")
            which |= {"execution_id": f"exec-bench-{number}", "digest": digest(action)}
            asked_at = time.monotonic_ns()
            ready = HidPrepareRequested(
                proposal_id="prop-bench", action=action, masked=False, operator_id="ada", decided_at=now(), **which
            )
            await line.perform(_event(ready), None, now())
            order = HidCommitRequested(permit=1, action_class="feature_work", **which)
            outcome = await line.perform(_event(order), None, now())
            assert isinstance(outcome, HidEnded), outcome
            found.append((_key_at(device) - asked_at) / 1e6)
        tasks.cancel_scope.cancel()
    return found


def _event(payload: Payload) -> Event:
    return Event(
        position=1, time=now(), id="0.hid.0", kind="decision", actor="hid", type=type_of(payload), correlation="bench",
        causation=0, data=payload, raw=encode(payload),
    )  # fmt: skip


def _key_at(device: Device) -> int:
    """When the next key went down, on the device's clock; waits for it."""
    at: list[int] = []

    def pressed(told: dict[str, Any]) -> bool:
        if told.get("text"):
            at.append(told["at"])
        return bool(at)

    device.wait(pressed)
    return at[0]
