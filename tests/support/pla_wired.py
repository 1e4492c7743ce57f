"""The host's end of the line and the real firmware core, joined without a port, on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from pmagent.actors.pla.wire.conversations import Conversations
from pmagent.actors.pla.wire.exchanges import exchange
from pmagent.actors.pla.wire.host import HostLink
from pmagent.actors.pla.wire.messages import Heard
from pmagent.contracts.checking import Problem
from pmagent.contracts.hid import (
    HidArmRequested,
    HidCommitRequested,
    HidDisarmRequested,
    HidLeaseRequested,
    HidPingRequested,
    HidPrepareRequested,
    HidStatusRequested,
)
from pmagent.contracts.payload import Payload, encode, type_of
from pmagent.contracts.pla import Action, TypeText, digest
from pmagent.events.event import Event
from pmagent.firmware.core import TICKS, Core

BOOT = "00112233445566ff"
VERSION, SCHEMAS = "1.0.0", "5c" * 32
TIME = "2026-11-22T09:00:00.000000Z"
EXECUTION = "exec-0001"

STATUS = HidStatusRequested(boot_id=BOOT, execution_id=EXECUTION, at=TIME)
LEASE = HidLeaseRequested(boot_id=BOOT)
PING = HidPingRequested(boot_id=BOOT, at=TIME)
DISARM = HidDisarmRequested(boot_id=BOOT, why="a test")


def no_check(contract: str, document: object) -> Sequence[Problem]:
    """Every document is what its contract says."""
    del contract, document
    return []


def event(payload: Payload, position: int = 40) -> Event:
    """A decision of the HID link."""
    return Event(
        position=position, time=TIME, id=f"39.hid.{position}", kind="decision", actor="hid",
        type=type_of(payload), correlation="pla-1", causation=39, data=payload, raw=encode(payload),
    )  # fmt: skip


def arm(boot_id: str = BOOT) -> HidArmRequested:
    """Arm it."""
    return HidArmRequested(permit=7, device_id="device-0001", boot_id=boot_id, action_class="feature_work")


def prepare(action: Action, **changes: Any) -> HidPrepareRequested:
    """Hand over ``action``."""
    asked = HidPrepareRequested(
        boot_id=BOOT, execution_id=EXECUTION, proposal_id="prop-0001", digest=digest(action), action=action,
        masked=False, operator_id="op", decided_at=TIME,
    )  # fmt: skip
    return msgspec.structs.replace(asked, **changes)


def commit(action: Action, **changes: Any) -> HidCommitRequested:
    """Have it typed."""
    asked = HidCommitRequested(
        permit=8, boot_id=BOOT, execution_id=EXECUTION, digest=digest(action), action_class="feature_work"
    )
    return msgspec.structs.replace(asked, **changes)


class Wired:
    """A link and a device. ``to_device`` and ``to_host`` may be replaced: they see all bytes, and may change them.
    ``typed`` collects what the device hands over."""

    def __init__(self, boot_id: str = BOOT, version: str = VERSION, schemas: str = SCHEMAS, first: int = 1) -> None:
        self.link = HostLink(no_check, VERSION, SCHEMAS, first)
        self.conversations = Conversations(self.link)
        self.contract = version, schemas
        self.core = self.boot(boot_id)
        self.now = 0.0
        self.killed = self.caps_lock = False
        self.usb = self.present = self.alive = True
        self.to_device: Callable[[bytes], bytes] = bytes
        self.to_host: Callable[[bytes], bytes] = bytes
        self.typed: list[tuple[Any, ...]] = []
        self.heard: list[Heard] = []
        self.outcomes: dict[int, Payload] = {}
        self.asked: list[bytes] = []
        self.link.begin(0.0, TIME)

    def boot(self, boot_id: str) -> Core:
        """A device that has just booted."""
        digest_of = lambda data: sha256(data).hexdigest()  # noqa: E731 - a function in passing
        return Core("device-0001", boot_id, *self.contract, "1.0.0", "POWER_ON", sha256=digest_of)

    def step(self, ms: int = 4) -> None:
        """Let a moment pass."""
        self.now += ms / 1000
        sent = self.link.to_send()
        self.asked += [line for line in sent.split(b"\n") if line]
        if self.present:
            step = self.core.step(
                int(self.now * 1000) % TICKS, self.to_device(sent), killed=self.killed, dtr=True, usb=self.usb,
                caps_lock=self.caps_lock, room=4096,
            )  # fmt: skip
            for report in step.reports:
                self.typed.append(report)
                self.core.reported(ok=True)
            self.link.receive(self.to_host(step.send), self.now)
        self.link.tick(self.now)
        if self.alive:
            self.conversations.alive(self.now)
        self.outcomes.update(self.conversations.advance(self.now))
        self.heard += self.link.heard()

    def until(self, done: Callable[[], bool], seconds: float = 60.0) -> None:
        """Let time pass until something is so. Fails after so many seconds."""
        end = self.now + seconds
        while not done():
            assert self.now < end, f"not within {seconds:g} s"
            self.step()

    def begin(self, payload: Payload, plain: Action | None = None) -> int:
        """Begin the exchange for a request."""
        return self.conversations.begin(exchange(event(payload), plain, TIME), self.now)

    def perform(self, payload: Payload, plain: Action | None = None) -> Any:
        """A request's outcome."""
        number = self.begin(payload, plain)
        self.until(lambda: number in self.outcomes)
        return self.outcomes[number]

    def linked(self) -> Wired:
        """The same, after hello."""
        self.until(lambda: self.link.hello is not None)
        return self

    def prepared(self, action: Action) -> Wired:
        """The same, linked, armed, its lease renewed, and prepared."""
        self.linked()
        self.perform(arm())
        self.begin(LEASE)
        self.perform(prepare(action))
        return self

    def sent(self, op: str) -> int:
        """How often a request has left."""
        return sum(f'"op":"{op}"'.encode() in line for line in self.asked)

    @property
    def presses(self) -> int:
        """How many keys or buttons went down."""
        return sum(
            bool((report[0] == "keyboard" and report[2]) or (report[0] == "mouse" and report[1]))
            for report in self.typed
        )


HI = TypeText(text="hi")
