"""Exchanges in which something goes wrong, written by hand from docs/hid-protocol.md."""

from __future__ import annotations

from typing import Any

from pmagent.contracts.pla import TypeText, digest
from tests.support.firmware_desk import (
    BOOT,
    CONTRACT,
    HELLO,
    HI,
    HI_REPORTS,
    MORE,
    ONE,
    RELEASE,
    STATUS,
    TIME,
    UP,
    Desk,
    compact,
    document,
    down,
    ended,
)


def cut_short(name: str, code: str, done: int, cause: dict[str, Any]) -> Desk:
    """An execution that something ends after ``done`` reports, with a key down."""
    desk = Desk(name)
    desk.running(HI, ONE, 8, HI_REPORTS[:done])
    desk.step(ms=8, tell=[ended(HI, ONE, "ABORTED", done, 8, code)], reports=[RELEASE], **cause)
    desk.step(ms=8, rounds=10)
    return desk


def killed() -> Desk:
    """The switch opens while keys are down."""
    desk = cut_short("a kill ends the typing, and is latched", "KILLED", 3, {"killed": True})
    refusal = "the kill switch is not ready, or was not since power-on"
    for open_ in (True, False):
        desk.refused("arm", {"boot_id": BOOT, "lease_ms": 500}, "KILLED", refusal, killed=open_)
        part = desk.parts("exec-00000002", digest(HI), compact(document(HI, "exec-00000002")))[0]
        desk.refused("prepare", part, "KILLED", refusal)
    desk.asked(HI, ONE, "ABORTED", 3, 8, "KILLED")
    desk.ask("hello", {**CONTRACT, "time": TIME}, {"hello": {**HELLO, "kill_switch_state": "DISABLED"}}, ms=8,
             reports=[RELEASE])  # fmt: skip
    desk.refused("arm", {"boot_id": BOOT, "lease_ms": 500}, "KILLED", refusal)
    desk.ask("status", {}, {"status": {"kill_switch_state": "DISABLED", "led_state": False, **MORE}})
    return desk


def lease() -> Desk:
    """The host says nothing more; ticks wrap meanwhile."""
    desk = Desk("a lease that is not renewed ends the typing, also where ticks wrap", begin_ms=(1 << 29) - 40)
    desk.hello()
    desk.prepare(HI, ONE, 8)
    desk.arm(100)
    desk.step(ms=60, led=True)
    desk.ask("ping", {"boot_id": BOOT}, {"status": {"led_state": True, "lease_ms": 100, **MORE}}, led=True)
    desk.step(ms=80, led=True)
    desk.commit(HI, ONE, 8, ms=8, reports=HI_REPORTS[:1])
    desk.step(ms=11, reports=HI_REPORTS[1:2], led=True)
    desk.step(ms=1, tell=[ended(HI, ONE, "ABORTED", 2, 8, "LEASE")])
    desk.step(ms=8, reports=[RELEASE])
    desk.ask("ping", {"boot_id": BOOT}, {"status": {"led_state": False, "lease_ms": 0, **MORE}})
    desk.step(ms=8, rounds=10)
    return desk


def line_closed() -> Desk:
    """The host lets the line go while keys are down."""
    desk = Desk("a line that closes ends the typing, and the next host begins with hello")
    desk.running(HI, ONE, 8, HI_REPORTS[:3])
    desk.step(ms=8, dtr=False, reports=[RELEASE])
    desk.step(ms=8, rounds=3, hear=[{"n": 90, "op": "arm", "boot_id": BOOT, "lease_ms": 500}])
    desk.step(ms=8, dtr=True, reports=[RELEASE])
    desk.step(hear=['{"n":91,"op":"disa'])
    desk.step(ms=8, dtr=False, reports=[RELEASE])
    desk.step(ms=8, dtr=True, reports=[RELEASE])
    desk.number = 0  # the next host's first line is not joined to what the one before left unfinished
    desk.refused("arm", {"boot_id": BOOT, "lease_ms": 500}, "NO_HELLO", "hello comes first")
    desk.asked(HI, ONE, "ABORTED", 3, 8, "LINK")
    desk.hello()
    desk.asked(HI, ONE, "ABORTED", 3, 8, "LINK")
    return desk


def usb_gone() -> Desk:
    """The machine sleeps or is unplugged while keys are down."""
    desk = Desk("a machine that takes no reports ends the typing; everything is released when it is back")
    desk.running(HI, ONE, 8, HI_REPORTS[:3])
    desk.step(ms=8, usb=False, tell=[ended(HI, ONE, "ABORTED", 3, 8, "USB")])
    desk.refused("arm", {"boot_id": BOOT, "lease_ms": 500}, "USB", "the machine does not take reports")
    desk.step(ms=8, rounds=10)
    desk.step(ms=8, usb=True, reports=[RELEASE])
    desk.step(ms=8, rounds=10)
    return desk


def not_taken(why: str, code: str) -> Desk:
    """A report that is not taken; nor is the first release after it."""
    desk = Desk(f"a report that is not taken ({code}) ends the typing, and the release is tried until it is taken")
    desk.hello()
    desk.prepare(HI, ONE, 8)
    desk.arm()
    desk.commit(HI, ONE, 8, ms=8, reports=HI_REPORTS[:1])
    desk.step(ms=8, reports=HI_REPORTS[1:2], taken=False, why=why, led=True)
    desk.step(ms=1, tell=[ended(HI, ONE, "ABORTED", 1, 8, code)])
    desk.step(ms=99, reports=[RELEASE], taken=False)
    desk.step(ms=50)
    desk.step(ms=50, reports=[RELEASE])
    desk.step(ms=8, rounds=10)
    return desk


def caps_lock() -> Desk:
    """Letters would come out in the other case."""
    desk = Desk("with Caps Lock on no letters are typed")
    digits = TypeText(text="1!")
    desk.hello()
    desk.prepare(HI, ONE, 8)
    desk.arm(caps_lock=True)
    commit = {"boot_id": BOOT, "execution_id": ONE, "digest": digest(HI)}
    desk.refused("commit", commit, "CAPS_LOCK", "the machine's Caps Lock is on", led=True)
    desk.commit(HI, ONE, 8, ms=8, reports=HI_REPORTS[:1], caps_lock=False)
    desk.step(ms=8, caps_lock=True, tell=[ended(HI, ONE, "ABORTED", 1, 8, "CAPS_LOCK")], reports=[RELEASE])
    desk.ask("status", {}, {"status": {"caps_lock": True, **MORE}})
    desk.prepare(digits, "exec-00000002", 4)
    desk.arm(ms=100)
    desk.commit(digits, "exec-00000002", 4, ms=8, reports=[down(30)])
    desk.step(ms=8, rounds=3, reports=[UP, down(30, 2), UP], led=True)
    return desk


def old_lines() -> Desk:
    """Lines that arrive twice or late."""
    desk = Desk("a line that comes again, or late, arms and begins nothing")
    desk.hello()
    again = {"n": 1, "op": "hello", **CONTRACT, "time": TIME}
    desk.prepare(HI, ONE, 8)
    desk.arm()
    arm = desk.steps[-1]["hear"]
    desk.commit(HI, ONE, 8, ms=8, reports=HI_REPORTS[:1])
    commit = desk.steps[-1]["hear"]
    desk.step(ms=1, hear=commit + commit + arm, led=True)
    desk.ask("disarm", {}, {"armed": False}, ms=8, reports=[RELEASE])
    told = desk.steps[-1]["tell"]
    told.insert(0, ended(HI, ONE, "ABORTED", 1, 8, "DISARMED"))
    desk.step(ms=8, hear=arm + commit)
    desk.step(ms=8, hear=[again], tell=[{"re": 1, "ok": True, "hello": HELLO}], reports=[RELEASE])
    desk.step(ms=8, rounds=10, hear=arm + commit)
    desk.asked(HI, ONE, "ABORTED", 1, 8, "DISARMED")
    return desk


def busy() -> Desk:
    """One at a time."""
    desk = Desk("while one execution is typed, no other is taken")
    desk.running(HI, ONE, 8, HI_REPORTS[:1])
    part = desk.parts("exec-00000002", digest(HI), compact(document(HI, "exec-00000002")))[0]
    desk.refused("prepare", part, "BUSY", "an execution is being typed", led=True)
    commit = {"boot_id": BOOT, "execution_id": "exec-00000002", "digest": digest(HI)}
    desk.refused("commit", commit, "BUSY", "an execution is being typed", led=True)
    known = {"boot_id": BOOT, "execution_id": ONE, "digest": digest(HI)}
    desk.ask("commit", known, {"state": "RUNNING", "done": 1, "of": 8}, led=True)
    desk.arm(1000)
    desk.ask("hello", {**CONTRACT, "time": TIME}, {"hello": HELLO}, ms=8, reports=[RELEASE])
    desk.steps[-1]["tell"].insert(0, ended(HI, ONE, "ABORTED", 1, 8, "DISARMED"))
    return desk


def unread() -> Desk:
    """A host that does not read."""
    desk = Desk("a host that does not read loses reports first, and holds up nothing")
    desk.running(HI, ONE, 8, HI_REPORTS[:1])
    desk.step(ms=8, rounds=7, reports=HI_REPORTS[1:], led=True, room=0)
    desk.step(ms=1000, rounds=2, reports=[RELEASE], led=True)
    desk.step(hear=[{"n": 50, "op": "disarm"}], ms=1000, reports=[RELEASE])
    desk.step(ms=1000, rounds=20)
    told = [ended(HI, ONE, "DONE", 8, 8), {"re": 50, "ok": True, "armed": False}]
    desk.step(room=4096, tell=[*told, {**STATUS, "uptime_seconds": 23}])
    return desk


def unread_answers() -> Desk:
    """A host that asks, and does not read: eight lines wait, of which a report goes first, then the oldest answer."""
    desk = Desk("of what waits for a host, a report goes before an answer, and the oldest before a newer one")
    desk.hello()
    first, more = ([{"n": number, "op": "status"} for number in numbers] for numbers in ((2, 3), range(4, 11)))
    desk.step(ms=500, room=0, hear=first)
    desk.step(ms=490)  # here a report comes
    desk.step(hear=more[:6])
    desk.step(ms=0, hear=more[6:])
    kept = [{"re": number, "ok": True, "status": MORE} for number in range(3, 11)]
    desk.step(ms=0, room=9999, tell=kept)
    desk.step(ms=999, tell=[STATUS])
    return desk


def garbage() -> Desk:
    """What is no line."""
    desk = Desk("garbage is counted, and never acted on")
    desk.hello()
    arm = {"n": 2, "op": "arm", "boot_id": BOOT, "lease_ms": 500}
    text = compact(arm)
    desk.step(hear=["AT\r\n", "\n\n", f"{text}\n", f"{text}*0000\n", "x" * 4000, "\n", "[1,2]*7da6\n", text[:20]])
    desk.step(hear=[{"n": 3, "op": "disarm"}])  # it ends the line that was begun
    desk.number = 3
    counted = {"has_error": True, "error_code": "COMMAND_PARSE_ERROR", "error_count": 6}
    told = {"error_state": {**counted, "error_message": "LINE: a line was damaged"}, "led_state": False, **MORE}
    desk.ask("status", {}, {"status": told})
    return desk
