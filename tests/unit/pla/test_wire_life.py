"""How the host notices that the device lives, began anew, or breaks its contract."""

from __future__ import annotations

from typing import Any

from pmagent.actors.pla.wire.host import TALK_BYTES_MAX, HostLink
from pmagent.actors.pla.wire.lines import encode
from pmagent.actors.pla.wire.messages import Broken, Ended, Lost, Refused, Unanswered
from pmagent.contracts.pla import EXECUTIONS_REMEMBERED, HEARTBEAT_SECONDS
from tests.support.cases import each
from tests.support.pla_links import WRONG, answer, greeted
from tests.support.pla_wired import BOOT, HI, SCHEMAS, TIME, VERSION, Wired, arm, commit, no_check


def test_a_silent_device_is_stale_after_three_seconds() -> None:
    wired = Wired().linked()
    heard_at = wired.now
    wired.present = False
    wired.until(lambda: wired.link.is_lost)
    assert HEARTBEAT_SECONDS <= wired.now - heard_at < HEARTBEAT_SECONDS + 0.1
    assert wired.link.lost is not None
    assert wired.link.lost.code == "stale"


def test_its_status_each_second_keeps_the_link() -> None:
    wired = Wired().linked()
    wired.until(lambda: wired.now > 30)
    assert not wired.link.is_lost


def test_our_own_lines_and_garbage_are_no_signs_of_life() -> None:
    wired = Wired().linked()
    wired.to_host = lambda _: encode({"n": 3, "op": "status"}) + b"\x00\xff\n"
    wired.until(lambda: wired.link.is_lost)
    assert wired.link.lost is not None
    assert wired.link.lost.code == "stale"
    assert wired.link.damaged


@each("noise", [encode({"op": "status", "boot_id": BOOT}), b"\xff" * 50, b"\n" * 50])
def test_a_device_that_talks_without_end_is_let_go(noise: bytes) -> None:
    link = greeted()
    taken = 0
    while not link.is_lost:
        link.receive(noise, taken / 100_000)
        taken += len(noise)
        assert taken < 2 * TALK_BYTES_MAX
    assert abs(taken - TALK_BYTES_MAX) < 1000, "hello's answer counts too"
    assert link.lost is not None
    assert link.lost.code == "garbled"


def test_a_device_that_talks_as_it_should_may_do_so_for_ever() -> None:
    link = greeted()
    for second in range(1000):
        link.receive(encode({"op": "status", "boot_id": BOOT, "error_message": "x" * 900}), float(second))
        link.tick(float(second))
    assert not link.is_lost


def test_another_boot_is_a_reset() -> None:
    wired = Wired().linked()
    wired.core = wired.boot("fedcba9876543210")
    wired.until(lambda: wired.link.is_lost)
    assert wired.link.lost == Lost("reset", "the device began anew: it has another boot")


def test_an_answer_that_knows_of_no_hello_is_a_reset() -> None:
    wired = Wired().linked()
    wired.core = wired.boot("fedcba9876543210")
    assert wired.perform(arm()).code == "NO_HELLO"
    assert wired.link.lost is not None
    assert wired.link.lost.code == "reset"


def test_an_order_that_another_boot_refuses_may_have_been_carried_out_by_the_one_before() -> None:
    wired = Wired().linked()
    wired.core = wired.boot("fedcba9876543210")
    told = wired.perform(commit(HI))
    assert (told.code, told.sent) == ("reset", True)
    assert wired.link.is_lost


def test_what_is_said_unasked_before_hello_is_answered_counts_for_nothing() -> None:
    link = HostLink(no_check, VERSION, SCHEMAS)
    link.begin(0.0, TIME)
    link.receive(encode({"op": "status", "boot_id": "another"}), 0.0)
    assert not link.heard()
    assert not link.is_lost


def test_a_lost_link_answers_all_and_stays_lost() -> None:
    link = greeted()
    link.ask("ping", {}, 0.0, boot_id=BOOT)
    link.ask("status", {}, 0.0)
    link.to_send()
    link.closed("unplugged", "gone")
    link.closed("stale", "later")
    assert [reply.sent for _, reply in link.answers() if isinstance(reply, Unanswered)] == [True, False]
    assert link.heard() == [Lost("unplugged", "gone")]
    link.receive(encode({"re": 2, "ok": True, "status": {}}), 0.0)
    link.tick(100.0)
    assert (link.heard(), link.answers(), link.to_send()) == ([], [], b"")


def test_what_has_not_left_when_the_link_is_lost_never_leaves() -> None:
    link = greeted()
    link.ask("commit", {"execution_id": "exec-0001", "digest": "ab" * 32}, 0.0, boot_id=BOOT)
    link.closed("unplugged", "gone")
    assert link.to_send() == b""
    assert [reply for _, reply in link.answers()] == [Unanswered(sent=False, code="unplugged", text="gone")]


def test_a_status_within_an_answer_is_held_to_its_contract_too() -> None:
    link = greeted(HostLink(lambda contract, _: [WRONG] if contract == "device_status" else [], VERSION, SCHEMAS))
    link.ask("ping", {}, 0.0, boot_id=BOOT)
    answer(link, {"status": {"mode": "PAUSED"}})
    assert [type(heard) for heard in link.heard()] == [Broken, Lost]


@each("state, done, of", [("DONE", 3, 4), ("ABORTED", 5, 4), ("RUNNING", 5, 4), ("DONE", 5, 4)])
def test_counts_that_cannot_be_end_the_link(state: str, done: int, of: int) -> None:
    link = greeted()
    link.ask("commit", {"execution_id": "exec-0001", "digest": "ab" * 32}, 0.0, boot_id=BOOT)
    answer(link, {"state": state, "done": done, "of": of})
    assert link.is_lost
    ended = greeted()
    told = {"execution_id": "exec-0001", "state": state, "digest": "", "done": done, "of": of, "code": ""}
    ended.receive(encode({"op": "ended", **told}), 0.0)
    assert ended.is_lost


@each("fields", [
    {"ok": "yes"}, {}, {"ok": True}, {"ok": True, "armed": 1, "lease_ms": 5},
    {"ok": True, "armed": False, "lease_ms": 5}, {"ok": True, "armed": True, "lease_ms": -1}, {"ok": False},
    {"ok": False, "error": 7}, {"ok": False, "error": "x" * 65},
])  # fmt: skip
def test_an_answer_of_another_shape_ends_the_link(fields: dict[str, Any]) -> None:
    link = greeted()
    link.ask("arm", {"lease_ms": 2000}, 0.0, boot_id=BOOT)
    link.to_send()
    link.receive(encode({"re": 2, **fields}), 0.0)
    [(_, reply)] = link.answers()
    assert reply == Unanswered(sent=True, code="garbled", text="the device broke the contract of answer")
    assert [type(heard) for heard in link.heard()] == [Broken, Lost]


def test_a_refusal_is_the_devices_own_word() -> None:
    wired = Wired().linked()
    ticket = wired.link.ask("commit", {"execution_id": "exec-0001", "digest": "ab" * 32}, 0.0, boot_id=BOOT)
    wired.now += 0.01
    sent = wired.link.to_send()
    step = wired.core.step(50, sent, killed=False, dtr=True, usb=True, caps_lock=False, room=4096)
    wired.link.receive(step.send, wired.now)
    assert wired.link.answers() == [(ticket, Refused("NOT_ARMED", "the device is not armed"))]


def test_the_first_word_on_an_end_stands_and_only_so_many_are_kept() -> None:
    link = greeted()
    for number in range(EXECUTIONS_REMEMBERED + 5):
        for state, done in (("DONE", 4), ("ABORTED", 1)):
            name = f"exec-{number:04}"
            link.receive(
                encode(
                    {
                        "op": "ended", "execution_id": name, "state": state, "digest": "", "done": done, "of": 4,
                        "code": "",
                    }
                ),
                0.0,
            )
    assert link.ended("exec-0000") is None
    assert link.ended("exec-0068") == Ended("exec-0068", "DONE", "", 4, 4)


def test_an_end_of_another_shape_ends_the_link() -> None:
    link = greeted()
    link.receive(encode({"op": "ended", "execution_id": "exec-0001", "state": "PERHAPS"}), 0.0)
    assert link.is_lost
