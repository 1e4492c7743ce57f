"""The outcome of requests when a device says what it likes, or the line does."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.contracts.hid import HidEnded, HidPrepared, HidRefused, HidSilent, HidTold
from pmagent.contracts.pla import Action, KeyCombo, MouseClick, TypeText, digest
from tests.support.cases import each
from tests.support.effort import examples
from tests.support.pla_links import Scripted
from tests.support.pla_wired import EXECUTION, HI, STATUS, Wired, arm, commit, prepare

RUNNING = {"state": "RUNNING", "done": 0, "of": 4}


def told(**changes: Any) -> dict[str, Any]:
    """An answer to ``status``."""
    known = {"execution_id": EXECUTION, "state": "RUNNING", "digest": digest(HI), "done": 1, "of": 4, "code": ""}
    return {"status": {}, "execution": {**known, **changes}}


@each("state", ["NONE", "PREPARED"])
def test_a_device_that_forgets_what_it_types_leaves_the_end_unknown(state: str) -> None:
    device = Scripted(commit=RUNNING, ping={"status": {}}, status=told(state=state))
    silent = device.perform(commit(HI))
    assert isinstance(silent, HidSilent)
    assert (silent.sent, silent.code) == (True, "forgotten")


def test_a_device_that_types_without_end_is_not_waited_for_without_end() -> None:
    device = Scripted(commit=RUNNING, ping={"status": {}}, status=told())
    silent = device.perform(commit(HI))
    assert isinstance(silent, HidSilent)
    assert (silent.sent, silent.code) == (True, "slow")
    assert device.asked.count("commit") == 1


@each("answer", [told(execution_id="exec-0002", state="DONE", done=4), {"status": {}}])
def test_what_is_told_of_another_execution_is_no_answer(answer: dict[str, Any]) -> None:
    silent = Scripted(status=answer).perform(STATUS)
    assert isinstance(silent, HidSilent)
    assert silent.code == "garbled"


def test_a_device_that_counts_parts_otherwise_is_not_given_the_order() -> None:
    device = Scripted(prepare={"have": 2, "state": "PREPARED", "digest": digest(HI), "of": 4})
    refused = device.perform(prepare(HI))
    assert isinstance(refused, HidRefused)
    assert refused.code == "ORDER"
    assert device.asked.count("prepare") == 3


def test_an_end_that_was_known_before_is_asked_for_with_its_reason() -> None:
    aborted = told(state="ABORTED", code="LEASE")
    ended = Scripted(commit={"state": "ABORTED", "done": 1, "of": 4}, ping={"status": {}}, status=aborted).perform(
        commit(HI)
    )
    assert isinstance(ended, HidEnded)
    assert (ended.state, ended.done, ended.code) == ("ABORTED", 1, "LEASE")


# --- any faults -----------------------------------------------------------------------------------------------------

FAULTS = st.lists(
    st.tuples(
        st.sampled_from(["to_device", "to_host"]), st.integers(0, 14),
        st.sampled_from(["drop", "double", "cut", "garble", "merge", "noise"]), st.integers(0, 400),
    ), max_size=6,
)  # fmt: skip


class Faulty:
    """One direction of a line, with faults at chosen chunks."""

    def __init__(self, faults: list[tuple[int, str, int]]) -> None:
        self._faults = {at: (kind, where) for at, kind, where in faults}
        self._at = -1
        self._held = b""

    def __call__(self, data: bytes) -> bytes:
        if not data:
            return b""
        self._at += 1
        kind, where = self._faults.get(self._at, ("", 0))
        data, self._held = self._held + data, b""
        where %= len(data)
        match kind:
            case "drop":
                return b""
            case "double":
                return data + data
            case "cut":
                return data[:where]
            case "garble":
                return data[:where] + bytes([data[where] ^ 0x15]) + data[where + 1 :]
            case "merge":
                self._held = data
                return b""
            case "noise":
                return b"AT\r" + data[where:] + b"}\n\xff*0000\n" + data
        return data


@settings(max_examples=examples(60), deadline=None)
@given(
    FAULTS, st.sampled_from([HI, KeyCombo(keys=["ctrl", "c"]), MouseClick(button="right"), TypeText(text="abc" * 60)])
)
def test_whatever_the_line_does_what_is_said_of_an_execution_is_true(faults: list[Any], action: Action) -> None:
    wired = Wired()
    for direction in ("to_device", "to_host"):
        setattr(wired, direction, Faulty([(at, kind, where) for way, at, kind, where in faults if way == direction]))
    wired.until(lambda: wired.link.hello is not None or wired.link.is_lost)
    wired.perform(arm())
    ready = wired.perform(prepare(action))
    of = ready.of if isinstance(ready, HidPrepared) else None
    before = len(wired.typed)
    outcome = wired.perform(commit(action))
    if isinstance(outcome, HidSilent):
        outcome = wired.perform(STATUS)
    wired.to_device = wired.to_host = bytes
    for _ in range(3000):
        wired.step()
    reports = [report for report in wired.typed[before:] if report != ("release",)]
    assert wired.sent("commit") <= 1
    assert of is None or len(reports) <= of
    if isinstance(outcome, HidEnded | HidTold) and outcome.state in ("DONE", "ABORTED"):
        assert len(reports) == outcome.done
        assert (outcome.done == outcome.of) == (outcome.state == "DONE")
    if isinstance(outcome, HidRefused) or (
        isinstance(outcome, HidSilent) and not outcome.sent and not wired.sent("commit")
    ):
        assert not reports
    assert not wired.typed or wired.typed[-1] == ("release",)
    assert not wired.core.armed
