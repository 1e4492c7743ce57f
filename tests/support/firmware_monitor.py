"""Watches a device from outside: what has to hold whatever is done to it."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from pmagent.firmware.core import Core
from pmagent.firmware.lines import LINE_MAX, LineReader
from tests.support.firmware_player import DEVICE

TICKS = 1 << 29
RELEASE = ("release",)


class Monitor:
    """A core, its time, and the rules.

    ``approved``: the reports of each execution that a host may hand over, by its id.
    """

    def __init__(self, approved: dict[str, list[tuple[Any, ...]]], begin_ms: int = 0) -> None:
        self.core = Core(*DEVICE, sha256=lambda data: sha256(data).hexdigest())
        self.approved = approved
        self.time = begin_ms
        self.asked = LineReader()
        self.answered = LineReader()
        self.killed = False
        self.renewed = -1 << 30
        self.longest_lease = 0
        self.last_report: tuple[Any, ...] | None = None
        self.last_typed = -1 << 30
        self.began: list[str] = []
        self.told: list[dict[str, Any]] = []
        self.typed = 0

    def step(
        self, ms: int, received: bytes, *, killed: bool = False, dtr: bool = True, usb: bool = True,
        caps_lock: bool = False, room: int = 4096, taken: bool = True,
    ) -> None:  # fmt: skip
        """One round; everything is checked."""
        self.time += ms
        self.killed = self.killed or killed
        self._hear(received if dtr else b"")
        machine = {"killed": killed, "dtr": dtr, "usb": usb, "caps_lock": caps_lock}
        done = self.core.step(self.time % TICKS, received, **machine, room=room)
        assert done.feed
        assert len(done.send) <= (room if dtr else 0)
        assert len(done.reports) <= 1
        assert not (done.led and (self.killed or not dtr or not usb)), "it is armed where it must not be"
        self._bounded()
        if not dtr:
            self.asked.clear()
            self.answered.clear()
        for line in self.answered.feed(done.send):
            assert line is not None, "the device wrote a damaged line"
            self.told.append(line)
        for report in done.reports:
            assert usb
            if report != RELEASE:
                assert done.led, "a report while it is not armed"
                self._typed(report)
            self.core.reported(taken)
            self.last_report = report if taken else None

    def settle(self) -> None:
        """Nothing more is said, and the machine listens: in the end everything is released, and the light is off."""
        for _ in range(1000):
            self.step(20, b"", dtr=False)
        assert self.last_report == RELEASE
        assert self.core.armed is False
        assert self.core._executions.running is None

    def _hear(self, received: bytes) -> None:
        for request in self.asked.feed(received):
            if request is not None and request.get("op") in ("arm", "ping"):
                self.renewed = self.time
                lease_ms = request.get("lease_ms", 0)
                self.longest_lease = max(self.longest_lease, lease_ms if type(lease_ms) is int else 0)

    def _typed(self, report: tuple[Any, ...]) -> None:
        assert not self.killed, "a report after a kill"
        assert self.time - self.renewed <= min(self.longest_lease, 2000), "a report after the lease"
        running = self.core._executions.running
        assert running is not None, "a report of nothing"
        if running.done == 0:
            assert self.last_report == RELEASE, "a report before everything was released"
            assert running.execution_id not in self.began, "an execution is typed twice"
            assert self.time - self.last_typed >= 100, "no pause between two actions"
            self.began.append(running.execution_id)
        assert self.began[-1] == running.execution_id, "two executions in one another"
        assert report == self.approved[running.execution_id][running.done], "another report than the approved ones"
        self.last_typed = self.time
        self.typed += 1

    def _bounded(self) -> None:
        assert len(self.core._out._lines) <= 8
        assert len(self.core._reader._held) == LINE_MAX
        assert len(self.core._executions._begun) <= 64
        assert len(self.core._executions._parts) <= 16
