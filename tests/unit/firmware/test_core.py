"""The core where its surroundings fail: nobody answers for a report, there is no room, the firmware itself fails."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from pmagent.contracts.pla import TypeText, digest
from pmagent.firmware.core import Core, Step
from pmagent.firmware.lines import LineReader, encode
from tests.support.cases import each
from tests.support.firmware_board import BOOT, CONTRACT, HELLO, TIME, compact, document
from tests.support.firmware_player import DEVICE

HI = TypeText(text="Hi")
ONE = "exec-00000001"
RELEASE = ("release",)


class Device:
    """A core and its host."""

    def __init__(self, digest_of: Any = lambda data: sha256(data).hexdigest()) -> None:
        self.core = Core(*DEVICE, sha256=digest_of)
        self.number = 0
        self.now = 0
        self.reader = LineReader()
        self.told: list[Any] = []

    def round(self, received: bytes = b"", *, reported: bool = True) -> Step:
        self.now += 8
        done = self.core.step(self.now, received, killed=False, dtr=True, usb=True, caps_lock=False, room=4096)
        self.told.extend(self.reader.feed(done.send))
        if reported:
            for _ in done.reports:
                self.core.reported(ok=True)
        return done

    def ask(self, op: str, **fields: Any) -> Any:
        self.number += 1
        self.round(encode({"n": self.number, "op": op, **fields}))
        return self.told[-1]

    def typing(self) -> None:
        """Up to the first report."""
        named = {"boot_id": BOOT, "execution_id": ONE, "digest": digest(HI)}
        self.ask("hello", **CONTRACT, time=TIME)
        self.ask("prepare", **named, part=0, parts=1, data=compact(document(HI, ONE)))
        self.ask("arm", boot_id=BOOT, lease_ms=2000)
        assert self.ask("commit", **named)["ok"] is True

    def ended(self) -> tuple[str, str, int]:
        found = [line for line in self.told if line.get("op") == "ended"]
        assert len(found) == 1
        return found[0]["state"], found[0]["code"], found[0]["done"]


def test_a_report_that_nobody_answers_for_was_not_handed_over() -> None:
    device = Device()
    device.typing()
    assert device.round(reported=False).reports == [("keyboard", 0, ())]
    following = [device.round() for _ in range(30)]
    assert [report for done in following for report in done.reports] == [RELEASE]
    assert device.ended() == ("ABORTED", "USB", 1)
    assert device.core.armed is False


def test_an_answer_for_no_report_counts_nothing() -> None:
    device = Device()
    device.typing()
    for _ in range(5):
        device.core.reported(ok=True)
    assert device.ask("status", execution_id=ONE)["execution"]["done"] == 1
    device.core.reported(ok=False)
    assert device.core.armed


def test_a_device_without_room_for_a_document_refuses_it() -> None:
    def full(_: bytes) -> str:
        raise MemoryError

    device = Device(full)
    device.ask("hello", **CONTRACT, time=TIME)
    named = {"boot_id": BOOT, "execution_id": ONE, "digest": digest(HI)}
    refused = device.ask("prepare", **named, part=0, parts=1, data=compact(document(HI, ONE)))
    assert refused == {"re": 2, "ok": False, "error": "MEMORY", "text": "there is no room for it"}
    assert device.ask("status", execution_id=ONE)["execution"]["state"] == "NONE"


@each("place", ["_hear", "_tell", "_look"])
def test_a_device_without_room_in_mid_typing_ends_it(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device()
    device.typing()

    def full(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(device.core, place, full)
    done = device.round()
    assert (done.reports, done.led, done.feed, done.send) == ([], False, True, b"")
    monkeypatch.undo()
    following = [device.round() for _ in range(30)]
    assert [report for done in following for report in done.reports] == [RELEASE]
    assert device.ended()[:2] == ("ABORTED", "MEMORY")
    assert device.ask("arm", boot_id=BOOT, lease_ms=500)["ok"] is True  # it goes on afterwards


def test_a_firmware_that_failed_types_nothing_more_and_says_why() -> None:
    device = Device()
    device.typing()
    device.core.fail()
    following = [device.round() for _ in range(30)]
    assert [report for done in following for report in done.reports] == [RELEASE]
    assert not any(done.feed or done.led for done in following)
    assert device.ended() == ("ABORTED", "WATCHDOG", 1)
    assert device.ask("hello", **CONTRACT, time=TIME)["hello"] == HELLO
    assert device.ask("arm", boot_id=BOOT, lease_ms=500)["error"] == "WATCHDOG"


def test_the_longest_lines_fit() -> None:
    """Ids, versions and messages at their bounds."""
    core = Core("d" * 64, BOOT, "100.100.100", "c" * 64, "v100.100.100", "RESCUE_DEBUG", sha256=lambda _: "")
    sent = b""
    lines = [
        encode(
            {"n": 999_999_998, "op": "hello", "contract_version": "100.0.0", "contract_hash": "c" * 64, "time": TIME}
        ),
        encode({"n": 999_999_999, "op": "status", "execution_id": "e" * 64}),
    ]
    for line in lines:
        core._note("UNTYPABLE", "character 1024 is U+10FFFF, which a US keyboard cannot type")
        sent += core.step(0, line, killed=True, dtr=True, usb=True, caps_lock=True, room=9999).send
    assert all(len(line) < 1500 for line in sent.splitlines())
    assert len(LineReader().feed(sent)) == 2


def test_an_echo_of_what_it_says_is_not_talked_to() -> None:
    """A terminal that is not raw yet sends everything back; modem managers and people send what they like."""
    device = Device()
    device.typing()
    heard = b""
    for _ in range(300):
        heard = device.round(heard + b"AT+GMI\r\n").send
    told = [line.get("op", "answer") for line in device.told]
    assert told.count("answer") == 4  # to the four requests before
    assert told.count("ended") == 1
    assert device.ended() == ("DONE", "", 4)


def test_what_is_repeated_from_an_earlier_hello_on_arms_and_types_nothing() -> None:
    """The host says hello twice, when the first answer is late; its order is lost, and it has disarmed since."""
    device = Device()
    named = {"boot_id": BOOT, "execution_id": ONE, "digest": digest(HI)}
    asked: list[dict[str, Any]] = [
        {"op": "hello", **CONTRACT, "time": TIME},
        {"op": "hello", **CONTRACT, "time": TIME},
        {"op": "arm", "boot_id": BOOT, "lease_ms": 2000},
        {"op": "prepare", **named, "part": 0, "parts": 1, "data": compact(document(HI, ONE))},
        {"op": "commit", **named},
        {"op": "disarm"},
    ]
    lines = [encode({"n": number, **one}) for number, one in enumerate(asked, 1)]
    for at in (0, 1, 2, 3, 5):
        device.round(lines[at])
    for at in (0, 2, 3, 4):
        device.round(lines[at])
    assert not device.core.armed
    assert {report for _ in range(60) for report in device.round().reports} <= {RELEASE}
