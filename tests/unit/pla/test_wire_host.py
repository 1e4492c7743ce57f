"""The host's end of the line, against the firmware's core on a line that the test holds in its hands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pmagent.actors.pla.wire.host import GRACE_SECONDS, HELLO_TRIES, HostLink
from pmagent.actors.pla.wire.lines import encode
from pmagent.actors.pla.wire.messages import Answered, Broken, Hello, Lost, Status, Unanswered
from pmagent.contracts.checking import Problem, check
from pmagent.contracts.pla import HEARTBEAT_SECONDS
from tests.support.cases import each
from tests.support.pla_links import HELLO, WRONG, answer, greeted, ops
from tests.support.pla_wired import BOOT, HI, SCHEMAS, TIME, VERSION, Wired, arm, commit, no_check, prepare

# --- hello ----------------------------------------------------------------------------------------------------------


def test_a_line_begins_with_the_end_of_another_s_and_hello() -> None:
    """A host that was there before may have left an order without its end."""
    wired = Wired()
    sent = wired.link.to_send()
    assert sent.startswith(b"~\n{")
    assert ops(sent) == ["hello"]


def test_the_devices_hello_makes_the_link() -> None:
    wired = Wired().linked()
    assert wired.heard == [wired.link.hello]
    assert isinstance(wired.heard[0], Hello)
    assert wired.heard[0].compatible


@each("version, schemas, text", [
    ("2.0.0", SCHEMAS, "its contract is 2.0.0, ours is 1.0.0"),
    (VERSION, "ab" * 32, "its schemas are not ours: the hashes differ"),
])  # fmt: skip
def test_a_device_with_another_contract_is_linked_and_never_told_to_type(version: str, schemas: str, text: str) -> None:
    wired = Wired(version=version, schemas=schemas).linked()
    assert wired.link.hello is not None
    assert (wired.link.hello.compatible, wired.link.hello.text) == (False, text)
    for payload in (arm(), prepare(HI), commit(HI)):
        assert wired.perform(payload).code == "CONTRACT_MISMATCH"
    assert {"arm", "prepare", "commit"}.isdisjoint(op for line in wired.asked for op in ops(line))
    assert not wired.typed[1:]


def test_another_minor_version_with_the_same_schemas_is_ours() -> None:
    link = Wired(version="1.7.0").linked().link
    assert link.hello is not None
    assert link.hello.compatible


def test_hello_is_repeated_and_then_given_up() -> None:
    wired = Wired()
    wired.present = False
    wired.until(lambda: wired.link.is_lost)
    assert wired.sent("hello") == HELLO_TRIES
    assert wired.link.lost == Lost("silent", "no answer to hello")


def test_what_only_comes_back_is_no_device() -> None:
    wired = Wired()
    wired.present = False
    while not wired.link.is_lost:
        wired.link.receive(wired.link.to_send(), wired.now)
        wired.step()
    assert wired.link.lost is not None
    assert "lines were no answers" in wired.link.lost.text


def test_garbage_is_told_as_garbage() -> None:
    wired = Wired()
    wired.to_host = lambda _: b"AT\r\nOK\r\n"
    wired.until(lambda: wired.link.is_lost)
    assert wired.link.lost is not None
    assert wired.link.lost.code == "garbled"


def test_another_device_than_the_wanted_one_is_not_greeted() -> None:
    link = HostLink(no_check, VERSION, SCHEMAS, device_id="device-0002")
    link.begin(0.0, TIME)
    answer(link, {"hello": HELLO})
    assert link.hello is None
    assert link.heard() == [Lost("another", "it is the device device-0001, not device-0002")]


def test_hello_and_status_of_the_firmware_fit_their_contracts() -> None:
    wired = Wired()
    wired.link = HostLink(check, VERSION, SCHEMAS)
    wired.link.begin(0.0, TIME)
    wired.until(lambda: any(isinstance(heard, Status) for heard in wired.heard))
    assert not wired.link.is_lost


@each("bad", ["hello", "device_status"])
def test_a_document_that_breaks_its_contract_ends_the_link(bad: str) -> None:
    def wrong(contract: str, _: object) -> Sequence[Problem]:
        return [WRONG] if contract == bad else []

    wired = Wired()
    wired.link = HostLink(wrong, VERSION, SCHEMAS)
    wired.link.begin(0.0, TIME)
    wired.until(lambda: wired.link.is_lost)
    assert Broken(bad, "bound_exceeded", "/max_line", "it is too large") in wired.heard
    assert wired.heard[-1] == Lost("garbled", f"the device broke the contract of {bad}")


@each("said, text", [
    ({"contract_version": "2.0.0"}, ": its contract is 2.0.0, ours is 1.0.0"),
    ({"contract_hash": "ab" * 32}, ": its schemas are not ours: the hashes differ"),
    ({}, ""),
    ({"contract_version": 2}, ""),
    ({"contract_version": "2" * 65}, ""),
])  # fmt: skip
def test_a_hello_of_another_contract_says_so_also_where_it_cannot_be_read(said: dict[str, Any], text: str) -> None:
    link = HostLink(check, VERSION, SCHEMAS)
    link.begin(0.0, TIME)
    answer(link, {"hello": {**HELLO, "scroll_lock": True, **said}})
    assert link.hello is None
    assert link.lost == Lost("garbled", f"the device broke the contract of hello{text}")


def test_a_device_of_another_contract_stays_linked_though_its_status_cannot_be_read() -> None:
    """A newer one may tell more than we know of; it is shown, and told nothing to type."""
    link = HostLink(check, VERSION, SCHEMAS)
    wired = Wired(schemas="ab" * 32)
    wired.link = link
    link.begin(0.0, TIME)
    changed: list[bytes] = []

    def more(line: bytes) -> bytes:
        if b'"op":"status"' not in line:
            return line
        changed.append(encode({**json.loads(line[:-6]), "scroll_lock": True}))
        return changed[-1]

    wired.to_host = lambda data: b"".join(more(line) for line in data.splitlines(keepends=True))
    wired.until(lambda: wired.now > 3 * HEARTBEAT_SECONDS)
    assert len(changed) >= 2 * HEARTBEAT_SECONDS
    assert (link.lost, link.damaged) == (None, 0)
    assert link.hello is not None
    assert not link.hello.compatible
    assert not any(isinstance(heard, Status | Broken) for heard in wired.heard)


# --- one request at a time ------------------------------------------------------------------------------------------


def test_requests_go_one_after_the_other_and_disarm_ahead_of_all() -> None:
    link = greeted()
    tickets = [link.ask("ping", {}, 0.0, boot_id=BOOT)]
    assert ops(link.to_send()) == ["ping"]
    tickets += [link.ask("status", {}, 0.0), link.ask("disarm", {}, 0.0)]
    assert ops(link.to_send()) == []
    link.tick(GRACE_SECONDS)  # disarm waits no longer than this for another's answer
    assert ops(link.to_send()) == ["disarm"]
    assert [ticket for ticket, _ in link.answers()] == tickets[:1]


def test_numbers_rise_and_an_old_answer_is_dropped() -> None:
    link = greeted(HostLink(no_check, VERSION, SCHEMAS, first=500))
    link.ask("disarm", {}, 0.0)
    link.to_send()
    for number in (500, 1, True, "501", None):
        link.receive(encode({"re": number, "ok": True, "armed": False}), 0.0)
    assert not link.answers()
    assert link.foreign == 5
    link.receive(encode({"re": 501, "ok": True, "armed": False}), 0.0)
    assert [type(reply) for _, reply in link.answers()] == [Answered]


def test_a_doubled_answer_answers_once() -> None:
    wired = Wired()
    wired.to_host = lambda data: data + data
    wired.prepared(HI)
    assert wired.perform(commit(HI)).state == "DONE"
    assert wired.presses == 2


def test_nothing_is_answered_before_it_has_left() -> None:
    link = greeted()
    link.ask("disarm", {}, 0.0)
    link.receive(encode({"re": 2, "ok": True, "armed": False}), 0.0)
    assert not link.answers()


def test_what_the_port_does_not_take_is_not_sent_later() -> None:
    link = greeted()
    link.ask("commit", {"execution_id": "exec-0001", "digest": "ab" * 32}, 0.0, boot_id=BOOT)
    link.tick(1.0)
    assert [reply for _, reply in link.answers()] == [
        Unanswered(sent=False, code="silent", text="the device takes nothing")
    ]
    assert link.to_send() == b""


def test_after_a_lost_answer_what_the_device_may_have_of_the_line_is_spoilt() -> None:
    link = greeted()
    link.ask("ping", {}, 0.0, boot_id=BOOT)
    link.to_send()
    link.tick(1.0)
    link.ask("status", {}, 1.0)
    assert link.to_send().startswith(b"~\n{"), "what lost its newline ends as a damaged line"


def test_a_device_that_does_not_listen_is_lost_whatever_it_says() -> None:
    wired = Wired().linked()
    wired.to_device = lambda _: b""
    numbers = [wired.begin(commit(HI)), wired.begin(prepare(HI)), wired.begin(arm())]
    wired.until(lambda: len(wired.outcomes) == 3)
    assert [wired.outcomes[number].sent for number in numbers] == [True, False, True]  # type: ignore[attr-defined]
    assert wired.link.lost is not None
    assert wired.link.lost.code == "silent"
    assert any(isinstance(heard, Status) for heard in wired.heard), "it talked all the while"


def test_answers_now_and_then_keep_the_link() -> None:
    link = greeted()
    for second in range(20):
        for at in (second + 0.0, second + 0.2):
            link.ask("disarm", {}, at, seconds=0.1)
            link.to_send()
            link.tick(at + 0.1)
        link.ask("disarm", {}, second + 0.4)
        answer(link, {"armed": False}, second + 0.5)
    assert not link.is_lost


def test_a_number_that_is_none_answers_nothing() -> None:
    link = HostLink(no_check, VERSION, SCHEMAS)
    link.begin(0.0, TIME)
    link.to_send()
    link.receive(encode({"re": True, "ok": True, "hello": HELLO}), 0.0)
    assert link.hello is None


def test_a_commit_is_never_given_twice() -> None:
    wired = Wired().prepared(HI)
    wired.perform(commit(HI))
    again = wired.perform(commit(HI))
    assert (again.sent, again.code) == (True, "repeated")
    assert wired.sent("commit") == 1


def test_a_request_for_another_boot_does_not_leave() -> None:
    wired = Wired().linked()
    other = "ff" * 8
    for payload in (arm(other), prepare(HI, boot_id=other)):
        assert wired.perform(payload).code == "BOOT_MISMATCH"
    order = wired.perform(commit(HI, boot_id=other))
    assert (order.code, order.sent) == ("reset", False)
    assert [op for line in wired.asked for op in ops(line)] == ["hello"]


def test_a_request_without_a_link_does_not_leave() -> None:
    link = HostLink(no_check, VERSION, SCHEMAS)
    link.ask("disarm", {}, 0.0)
    [(_, reply)] = link.answers()
    assert reply == Unanswered(sent=False, code="no_device", text="no device is linked")


def test_a_dropped_request_that_waits_never_leaves_and_one_under_way_is_waited_for() -> None:
    link = greeted()
    first = link.ask("ping", {}, 0.0, boot_id=BOOT)
    second = link.ask("status", {}, 0.0)
    link.to_send()
    link.drop(second, 0.0)
    link.drop(first, 0.0)
    link.ask("disarm", {}, 0.0)
    assert link.to_send() == b"", "the ping has left: one request at a time"
    link.receive(encode({"re": 2, "ok": True, "status": {}}), 0.1)
    assert ops(link.to_send()) == ["disarm"]


def test_a_dropped_request_that_has_not_left_makes_way() -> None:
    link = greeted()
    first = link.ask("ping", {}, 0.0, boot_id=BOOT)
    link.ask("disarm", {}, 0.0)
    link.drop(first, 0.0)
    assert ops(link.to_send()) == ["disarm"]
