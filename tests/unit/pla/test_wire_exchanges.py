"""The messages to the device for each request, and the outcome when the line does what it likes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.pla.wire.exchanges import PART_CHARS, document, exchange, goodbye, parts_of
from pmagent.actors.pla.wire.lines import encode
from pmagent.actors.pla.wire.messages import Ended
from pmagent.contracts.checking import check
from pmagent.contracts.clock import TimerRequested
from pmagent.contracts.hid import (
    HidArmed,
    HidDisarmed,
    HidEnded,
    HidPinged,
    HidPrepared,
    HidRefused,
    HidSilent,
    HidTold,
)
from pmagent.contracts.pla import Action, KeyCombo, MouseClick, MouseMove, TypeText, digest
from tests.support.cases import each
from tests.support.effort import examples
from tests.support.pla_wired import (
    BOOT,
    DISARM,
    EXECUTION,
    HI,
    LEASE,
    PING,
    STATUS,
    TIME,
    Wired,
    arm,
    commit,
    event,
    prepare,
)

LONG = TypeText(text="All that is typed here is approved.\n" * 28)
HARD = TypeText(text='\\"' * 512)

ACTIONS = st.one_of(
    st.builds(TypeText, text=st.text([chr(code) for code in range(32, 127)], min_size=1, max_size=60)),
    st.builds(KeyCombo, keys=st.lists(st.sampled_from(["a", "f5", "up", "7"]), min_size=1, max_size=4, unique=True)),
    st.builds(MouseMove, x=st.integers(-1000, 5000), y=st.integers(-1000, 5000)),
    st.builds(MouseClick, button=st.sampled_from(["left", "right", "middle"])),
)  # fmt: skip


def losing(pattern: str) -> Callable[[bytes], bytes]:
    """A line that loses the first chunk that matches."""
    due = [True]

    def pass_on(data: bytes) -> bytes:
        if due[0] and re.search(pattern.encode(), data):
            due[0] = False
            return b""
        return data

    return pass_on


# --- the way of an execution ----------------------------------------------------------------------------------------


@each("action", [
    HI, LONG, HARD, KeyCombo(keys=["ctrl", "alt", "t"]), MouseMove(x=-1000, y=300), MouseClick(button="left"),
])  # fmt: skip
def test_an_execution_is_armed_prepared_committed_and_done(action: Action) -> None:
    wired = Wired().linked()
    assert wired.perform(arm()) == HidArmed(request=40, boot_id=BOOT, lease_ms=2000)
    ready = wired.perform(prepare(action))
    assert isinstance(ready, HidPrepared)
    wired.begin(LEASE)
    assert (ready.digest, wired.presses) == (digest(action), 0)
    assert wired.perform(commit(action)) == HidEnded(
        request=40, boot_id=BOOT, execution_id=EXECUTION, state="DONE", done=ready.of, of=ready.of
    )
    assert wired.perform(STATUS) == HidTold(
        request=40, boot_id=BOOT, execution_id=EXECUTION, state="DONE", digest=digest(action), done=ready.of,
        of=ready.of,
    )
    assert wired.sent("commit") == 1


@settings(max_examples=examples(25), deadline=None)
@given(ACTIONS)
def test_the_document_that_is_handed_over_keeps_its_contract_and_every_part_its_line(action: Action) -> None:
    whole = document(prepare(action), action, TIME)
    assert not check("action_execute", whole)
    parts = parts_of(whole)
    assert json.loads("".join(parts)) == whole
    for part in parts:
        assert len(part) <= PART_CHARS
        encode({"n": 999_999_999, "op": "prepare", "boot_id": BOOT, "execution_id": "e" * 64, "digest": "d" * 64,
                "part": 15, "parts": 16, "data": part})  # fmt: skip


def test_the_longest_text_of_the_worst_characters_fits() -> None:
    worst = TypeText(text="\\" * 1024)
    ids = {"execution_id": "e" * 64, "proposal_id": "p" * 64, "operator_id": "o" * 64}
    assert len(parts_of(document(prepare(worst, **ids), worst, TIME))) <= 16


def test_a_long_text_keeps_its_lease_while_it_is_typed() -> None:
    wired = Wired().prepared(LONG)
    began = wired.now
    assert wired.perform(commit(LONG)).state == "DONE"
    assert wired.now - began > 10, "longer than a lease"
    assert wired.sent("ping") >= 2 * int(wired.now - began) - 2


def test_ping_says_whether_it_is_armed_and_how_the_switch_stands() -> None:
    wired = Wired().linked()
    assert wired.perform(PING) == HidPinged(request=40, boot_id=BOOT, armed=False, kill_switch_state="ARMED")
    wired.perform(arm())
    assert wired.perform(PING).armed
    wired.killed = True
    wired.step()
    assert wired.perform(PING) == HidPinged(request=40, boot_id=BOOT, armed=False, kill_switch_state="DISABLED")


def test_disarm_stops_what_is_typed() -> None:
    wired = Wired().prepared(LONG)
    typing = wired.begin(commit(LONG))
    wired.until(lambda: wired.presses == 5)
    assert wired.perform(DISARM) == HidDisarmed(request=40, boot_id=BOOT)
    wired.until(lambda: typing in wired.outcomes)
    ended = wired.outcomes[typing]
    assert isinstance(ended, HidEnded)
    assert (ended.state, ended.code) == ("ABORTED", "DISARMED")
    assert wired.presses <= 6
    wired.until(lambda: wired.typed[-1] == ("release",), seconds=0.1)


def test_disarm_and_goodbye_need_no_particular_boot() -> None:
    wired = Wired().linked()
    assert isinstance(wired.perform(msgspec.structs.replace(DISARM, boot_id="ff" * 8)), HidDisarmed)
    number = wired.conversations.begin(goodbye(), wired.now)
    wired.until(lambda: number in wired.outcomes)


# --- what is not handed over ----------------------------------------------------------------------------------------


@each("asked, plain, code", [
    (prepare(HI, masked=True), None, "no_text"),
    (prepare(HI, masked=True), TypeText(text="ho"), "DIGEST"),
    (prepare(HI, digest="ab" * 32), None, "DIGEST"),
    (prepare(TypeText(text="café")), None, "UNTYPABLE"),
    (prepare(TypeText(text="x" * 1025)), None, "BOUNDS"),
    (prepare(KeyCombo(keys=["f13"])), None, "UNTYPABLE"),
])  # fmt: skip
def test_what_was_not_approved_or_cannot_be_typed_does_not_leave(asked: Any, plain: Action | None, code: str) -> None:
    wired = Wired().linked()
    refused = wired.perform(asked, plain)
    assert isinstance(refused, HidRefused)
    assert refused.code == code
    assert wired.sent("prepare") == 0


def test_the_plain_text_of_a_masked_action_is_what_is_typed() -> None:
    wired = Wired().prepared(HI)
    masked = prepare(TypeText(text="[masked]"), digest=digest(HI), masked=True, execution_id="exec-0002")
    assert isinstance(wired.perform(masked, HI), HidPrepared)
    assert wired.perform(commit(HI, execution_id="exec-0002")).state == "DONE"
    assert wired.presses == 2


def test_another_actors_request_never_reaches_the_device() -> None:
    forged = msgspec.structs.replace(event(commit(HI)), actor="brain")
    wired = Wired().prepared(HI)
    number = wired.conversations.begin(exchange(forged, None, TIME), wired.now)
    wired.until(lambda: number in wired.outcomes)
    assert isinstance(wired.outcomes[number], HidRefused)
    assert (wired.sent("commit"), wired.presses) == (0, 0)


def test_another_event_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="asks nothing of the device"):
        exchange(event(TimerRequested(at=TIME)), None, TIME)


def test_a_device_that_computes_another_digest_is_not_told_to_type() -> None:
    wired = Wired().linked()
    wired.perform(arm())
    wired.to_host = lambda data: _as_line(re.sub(rb'"digest":"[0-9a-f]{64}"', b'"digest":"%s"' % (b"ab" * 32), data))
    assert wired.perform(prepare(HI)).code == "DIGEST"


def _as_line(data: bytes) -> bytes:
    lines = [line[:-5] for line in data.split(b"\n") if line]
    return b"".join(encode(json.loads(line)) for line in lines)


# --- a line that does what it likes ---------------------------------------------------------------------------------


@each("where", ["to_device", "to_host"])
@each("payload, kind", [(DISARM, HidDisarmed), (STATUS, HidTold), (prepare(LONG), HidPrepared)])
def test_what_may_be_repeated_is_repeated(where: str, payload: Any, kind: type) -> None:
    wired = Wired().linked()
    setattr(wired, where, losing('"op":"(disarm|status|prepare)"' if where == "to_device" else '"re"'))
    assert isinstance(wired.perform(payload), kind)


def test_a_part_whose_answer_is_lost_comes_again() -> None:
    wired = Wired().linked()
    wired.perform(arm())
    wired.begin(LEASE)
    wired.to_host = losing('"have":2')
    assert isinstance(wired.perform(prepare(LONG)), HidPrepared)
    assert wired.perform(commit(LONG)).state == "DONE"


def test_a_lost_answer_to_commit_is_found_out_and_not_typed_twice() -> None:
    wired = Wired().prepared(HI)
    wired.to_host = losing('"re"')
    lost = wired.perform(commit(HI))
    assert isinstance(lost, HidSilent)
    assert (lost.sent, lost.code) == (True, "silent")
    assert wired.perform(STATUS).state == "DONE"
    assert (wired.sent("commit"), wired.presses) == (1, 2)


def test_a_commit_that_never_arrived_is_known_not_to_have() -> None:
    wired = Wired().prepared(HI)
    wired.to_device = losing('"op":"commit"')
    assert wired.perform(commit(HI)).sent
    assert wired.perform(STATUS).state == "PREPARED"
    assert (wired.sent("commit"), wired.presses) == (1, 0)


def test_a_lost_end_is_asked_for() -> None:
    wired = Wired().prepared(HI)
    wired.to_host = losing('"op":"ended"')
    assert wired.perform(commit(HI)).state == "DONE"


def test_a_reset_while_it_types_leaves_the_end_unknown() -> None:
    wired = Wired().prepared(LONG)
    typing = wired.begin(commit(LONG))
    wired.until(lambda: wired.presses == 3)
    wired.core = wired.boot("fedcba9876543210")
    wired.until(lambda: typing in wired.outcomes)
    silent = wired.outcomes[typing]
    assert isinstance(silent, HidSilent)
    assert silent.sent
    assert wired.link.lost is not None
    assert wired.link.lost.code == "reset"
    assert wired.presses == 3


def test_an_end_of_other_bytes_is_no_end_of_this() -> None:
    wired = Wired().prepared(LONG)
    typing = wired.begin(commit(LONG))
    wired.until(lambda: wired.presses == 3)
    other = Ended(EXECUTION, "DONE", "ab" * 32, 4, 4)
    wired.link.receive(encode({"op": "ended", **msgspec.structs.asdict(other)}), wired.now)
    wired.step()
    silent = wired.outcomes[typing]
    assert isinstance(silent, HidSilent)
    assert (silent.sent, silent.code) == (True, "DIGEST")


@each("trouble, code", [("killed", "KILLED"), ("caps_lock", "CAPS_LOCK"), ("usb", "USB")])
def test_what_stops_the_device_is_told(trouble: str, code: str) -> None:
    wired = Wired().prepared(LONG)
    typing = wired.begin(commit(LONG))
    wired.until(lambda: wired.presses == 3)
    setattr(wired, trouble, not getattr(wired, trouble))
    wired.until(lambda: typing in wired.outcomes)
    ended = wired.outcomes[typing]
    assert isinstance(ended, HidEnded)
    assert (ended.state, ended.code) == ("ABORTED", code)
    assert wired.presses == 3


def test_a_cancelled_exchange_takes_back_what_has_not_left() -> None:
    wired = Wired().prepared(HI)
    ping, typing = wired.begin(PING), wired.begin(commit(HI))
    wired.conversations.cancel(typing, wired.now)
    wired.conversations.cancel(typing, wired.now)
    wired.until(lambda: ping in wired.outcomes)
    wired.step(1000)
    assert (wired.sent("commit"), wired.presses) == (0, 0)
