"""Exchanges of the device's line as docs/hid-protocol.md has them, written by hand: what is heard, and what the device
then tells and hands over. ``tests.support.firmware_player`` plays them."""

from __future__ import annotations

from typing import Any

from pmagent.contracts.pla import Action, KeyCombo, MouseClick, MouseMove, TypeText, digest
from tests.support.firmware_desk import (
    BOOT,
    CONTRACT,
    HI,
    HI_REPORTS,
    ONE,
    RELEASE,
    STATUS,
    UP,
    Desk,
    compact,
    document,
    down,
    ended,
)
from tests.support.firmware_faults import (
    busy,
    caps_lock,
    garbage,
    killed,
    lease,
    line_closed,
    not_taken,
    old_lines,
    unread,
    unread_answers,
    usb_gone,
)
from tests.support.firmware_refusals import documents, handed_over, longest, misshapen, not_allowed, other_contract


def typed_once() -> Desk:
    """The way that it should go."""
    desk = Desk("a text is typed once, and answered from memory afterwards")
    desk.hello()
    desk.asked(HI, ONE, "NONE", 0, 0)
    desk.prepare(HI, ONE, 8, size=100)
    desk.asked(HI, ONE, "PREPARED", 0, 8)
    desk.arm()
    desk.commit(HI, ONE, 8, ms=8, reports=HI_REPORTS[:1])
    desk.asked(HI, ONE, "RUNNING", 1, 8, led=True)
    desk.step(ms=1, rounds=49, reports=HI_REPORTS[1:7], led=True)
    desk.step(ms=8, reports=HI_REPORTS[7:], led=True)
    desk.step(ms=8, tell=[ended(HI, ONE, "DONE", 8, 8)], reports=[RELEASE], led=True)
    desk.asked(HI, ONE, "DONE", 8, 8, led=True)
    known = {"boot_id": BOOT, "execution_id": ONE, "digest": digest(HI)}
    desk.ask("commit", known, {"state": "DONE", "done": 8, "of": 8}, led=True)
    desk.refused(
        "commit", {**known, "digest": "0" * 64}, "DIGEST", "the execution is known with another digest", led=True
    )
    again = desk.parts(ONE, digest(HI), compact(document(HI, ONE)))[0]
    desk.refused("prepare", again, "KNOWN", "this execution began already", led=True)
    desk.step(ms=8, rounds=30, led=True)
    desk.ask("disarm", {}, {"armed": False}, ms=8, reports=[RELEASE])
    return desk


def every_action() -> Desk:
    """The reports of each type of action, and the time between two."""
    desk = Desk("each action has its reports, and begins 100 ms after the one before")
    combo, modifier = KeyCombo(keys=["ctrl", "alt", "t"]), KeyCombo(keys=["gui"])
    move, still, click = MouseMove(x=-200, y=300), MouseMove(x=0, y=0), MouseClick(button="right")
    cases: list[tuple[Action, list[Any]]] = [
        (combo, [["keyboard", 5, [23]], UP]),
        (modifier, [["keyboard", 8, []], UP]),
        (KeyCombo(keys=["shift", "f5", "page_down", "0"]), [["keyboard", 2, [62, 78, 39]], UP]),
        (move, [["mouse", 0, -127, 127], ["mouse", 0, -73, 127], ["mouse", 0, 0, 46]]),
        (still, [["mouse", 0, 0, 0]]),
        (click, [["mouse", 2, 0, 0], ["mouse", 0, 0, 0]]),
        (TypeText(text='a"\\~\t '), [down(4), UP, down(52, 2), UP, down(49), UP, down(53, 2), UP, down(43), UP,
                                       down(44), UP]),
    ]  # fmt: skip
    desk.hello()
    for number, (action, reports) in enumerate(cases):
        execution_id, of = f"exec-1000000{number}", len(reports)
        desk.prepare(action, execution_id, of)
        desk.arm()
        desk.commit(action, execution_id, of, ms=8, reports=reports[:1])
        desk.step(ms=8, rounds=of - 1, reports=reports[1:], led=True)
        desk.step(ms=8, tell=[ended(action, execution_id, "DONE", of, of)], reports=[RELEASE], led=True)
        desk.ask("disarm", {}, {"armed": False}, ms=8, reports=[RELEASE])
        desk.step(ms=8, rounds=11, tell=[STATUS] if number == 6 else [])  # a second has passed
        desk.hello()
    return desk


def spaced() -> Desk:
    """Two actions, one right after the other."""
    desk = Desk("the next action waits until 100 ms have passed")
    click = MouseClick(button="left")
    pressed, free = ["mouse", 1, 0, 0], ["mouse", 0, 0, 0]
    desk.running(click, ONE, 2, [pressed, free])
    desk.step(ms=8, tell=[ended(click, ONE, "DONE", 2, 2)], reports=[RELEASE], led=True)
    desk.prepare(click, "exec-00000002", 2, led=True)
    desk.commit(click, "exec-00000002", 2)
    desk.step(ms=1, rounds=89, led=True)
    desk.step(ms=1, reports=[pressed], led=True)
    desk.step(ms=8, reports=[free], led=True)
    return desk


def reports() -> Desk:
    """What the device tells of itself."""
    desk = Desk("each second the device tells how it is")
    status = {
        "device_id": "device-0001", "mode": "OBSERVE", "led_state": False, "kill_switch_state": "ARMED",
        "firmware_version": "1.0.0", "action_count": 0, **CONTRACT, "boot_id": BOOT, "caps_lock": False, "lease_ms": 0,
        "error_state": {"has_error": False, "error_code": "NONE", "error_count": 0},
    }  # fmt: skip
    desk.step(ms=999)
    desk.step(ms=1, tell=[{"op": "status", **status, "timestamp": "1970-01-01T00:00:01Z", "uptime_seconds": 1}])
    desk.hello()
    desk.step(ms=990, tell=[{"op": "status", **status, "timestamp": "2026-11-23T00:00:00Z", "uptime_seconds": 2}])
    desk.step(ms=1000, tell=[{"op": "status", **status, "timestamp": "2026-11-23T00:00:01Z", "uptime_seconds": 3}])
    armed = {"mode": "EXECUTE", "led_state": True, "lease_ms": 4001}
    desk.arm()
    told = {"op": "status", **status, **armed, "timestamp": "2026-11-23T00:00:02Z", "uptime_seconds": 4}
    desk.step(ms=999, tell=[told], led=True)
    return desk


def exchanges() -> list[dict[str, Any]]:
    """All exchanges."""
    desks = [
        typed_once(), every_action(), spaced(), not_allowed(), other_contract(), misshapen(), handed_over(),
        documents(), longest(), killed(), lease(), line_closed(), usb_gone(), not_taken("", "USB"),
        not_taken("MEMORY", "MEMORY"),
        caps_lock(), old_lines(), busy(), unread(), unread_answers(), garbage(), reports(),
    ]  # fmt: skip
    return [desk.whole() for desk in desks]
