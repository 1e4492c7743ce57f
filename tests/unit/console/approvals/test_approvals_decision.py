"""The form of a decision: what was shown, what it lacks, its id; and the difference to how things are."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from pmagent.console.pages.approvals.decision import Sent, arguments, request_id, sent, wanting
from pmagent.console.pages.approvals.shown_state import (
    BadDecision,
    ShownState,
    compared,
    differences,
    packed,
    shown_state,
    unpacked,
)
from tests.support.cases import each
from tests.support.proposals import PROPOSAL, status, typed

NONCE = "0123456789abcdef" * 2


def form(document: dict[str, Any], **more: str) -> dict[str, str]:
    """A form as the page of ``document`` sends it when everything is filled in."""
    shown = shown_state(document, status(), paused=False)
    fields = {
        "csrf": "x", "nonce": NONCE, "digest": document["digest"], "mode": "SUGGEST", "seen": packed(shown),
        "read": "yes", "first": document["digest"][:6], "reason": "no",
    }
    return fields | more


def test_a_form_says_what_was_shown_and_what_is_said_to_it() -> None:
    document = typed("ls\n")
    said = sent(form(document, reason=" the wrong window \n", first=document["digest"][:6].upper()), "APPROVED")
    assert (said.digest, said.mode, said.reason, said.read) == (document["digest"], "SUGGEST", "the wrong window", True)
    assert said.first == document["digest"][:6]
    assert said.seen == shown_state(document, status(), paused=False)


@each("more", [
    {"nonce": ""},
    {"nonce": "a" * 31},
    {"nonce": "A" * 32},
    {"nonce": "a" * 32 + "\n"},
    {"digest": "a" * 63},
    {"digest": "g" * 64},
    {"digest": "0" * 64},
    {"mode": ""},
    {"mode": "execute"},
    {"mode": "EXECUTE"},
    {"seen": ""},
    {"seen": "no base64!"},
    {"seen": "e30="},
    {"seen": "W10="},
    {"seen": "é"},
    {"seen": "A" * 30_000},
])
def test_what_is_no_form_of_ours_is_refused(more: dict[str, str]) -> None:
    with pytest.raises(BadDecision):
        sent(form(typed("ls\n"), **more), "APPROVED")


@each("missing", ["nonce", "digest", "mode", "seen"])
def test_each_field_that_says_what_it_is_about_is_needed(missing: str) -> None:
    fields = form(typed("ls\n"))
    del fields[missing]
    with pytest.raises(BadDecision):
        sent(fields, "REJECTED")


def test_what_was_shown_is_carried_as_ascii_and_comes_back_the_same() -> None:
    shown = shown_state(typed("é \u202e\x00 ***", masked=True), status(device={"port": "/dev/\u202e"}), paused=True)
    assert packed(shown).isascii()
    assert unpacked(packed(shown)) == shown


def test_what_was_shown_holds_no_more_fields_than_it_has() -> None:
    shown = msgspec.to_builtins(shown_state(typed("a"), status(), paused=False))
    more = base64.urlsafe_b64encode(msgspec.json.encode({**shown, "more": 1})).decode()
    with pytest.raises(BadDecision):
        unpacked(more)


def test_what_was_revealed_is_not_carried_along() -> None:
    shown = shown_state(typed("***", masked=True, plain={"text": "hunter2"}), status(), paused=False)
    assert "hunter2" not in base64.urlsafe_b64decode(packed(shown)).decode()


def said(document: dict[str, Any], verdict: Any = "APPROVED", **more: str) -> Sent:
    """The decision that ``form`` sends."""
    return sent(form(document, **more), verdict)


def test_a_filled_form_lacks_nothing() -> None:
    document = typed("ls\n")
    assert wanting(said(document), document, "high") == {}
    assert wanting(said(document, "REJECTED"), document, "high") == {}


@each("more, verdict, tier, document, lacks", [
    ({"read": ""}, "APPROVED", "low", {}, {"read"}),
    ({"read": "on"}, "APPROVED", "low", {}, {"read"}),
    ({"first": ""}, "APPROVED", "high", {}, {"first"}),
    ({"first": "000000"}, "APPROVED", "high", {}, {"first"}),
    ({"first": ""}, "APPROVED", "medium", {}, set()),
    ({}, "APPROVED", "low", {"masked": True}, {"revealed"}),
    ({"revealed": "yes"}, "APPROVED", "low", {"masked": True}, set()),
    ({}, "APPROVED", "low", {"credential_warning": True}, {"acknowledged"}),
    ({"acknowledged": "yes"}, "APPROVED", "low", {"credential_warning": True}, set()),
    ({"read": "", "first": ""}, "APPROVED", "high", {"credential_warning": True}, {"read", "first", "acknowledged"}),
    ({"reason": ""}, "REJECTED", "low", {}, {"reason"}),
    ({"reason": " \n\t "}, "REJECTED", "low", {}, {"reason"}),
    ({"reason": "\u200b\u2060 "}, "REJECTED", "low", {}, {"reason"}),
    ({"reason": "x" * 501}, "REJECTED", "low", {}, {"reason"}),
    ({"reason": "x" * 500, "read": "", "first": ""}, "REJECTED", "high", {"masked": True}, set()),
])
def test_what_a_form_lacks_is_named(
    more: dict[str, str], verdict: str, tier: Any, document: dict[str, Any], lacks: set[str]
) -> None:
    shown = typed("ls", **document)
    assert set(wanting(said(shown, verdict, **more), shown, tier)) == lacks


def test_the_same_form_is_the_same_request_and_no_other_is() -> None:
    document = typed("ls\n")
    first = request_id(said(document), "bob", PROPOSAL)
    assert first == request_id(said(document), "bob", PROPOSAL)
    others = {
        request_id(said(document), "eve", PROPOSAL),
        request_id(said(document), "bob", "prop-2"),
        request_id(said(document, "REJECTED"), "bob", PROPOSAL),
        request_id(said(typed("pwd\n")), "bob", PROPOSAL),
        request_id(said(document, nonce="f" * 32), "bob", PROPOSAL),
    }
    assert len(others) == 5
    assert first not in others
    assert first.startswith(f"pla.decide-{NONCE}-")
    assert ":" not in first
    assert len(first) < 200


@each("looked, told", [(-5, 0), (1234, 1234), (10**12, 86_400_000)])
def test_the_time_spent_looking_is_within_what_the_log_takes(looked: int, told: int) -> None:
    given = arguments(said(typed("a")), PROPOSAL, looked)
    assert given["looked_ms"] == told
    assert (given["decision"], given["seen_mode"], given["digest"]) == ("APPROVED", "SUGGEST", typed("a")["digest"])


def test_what_is_not_as_it_was_shown_is_told_field_by_field() -> None:
    before = shown_state(typed("ls"), status(mode="EXECUTE", armed=True), paused=False)
    closed = typed("ls", stands="closed", outcome="rejected", decided_by="eve")
    found = differences(before, shown_state(closed, status(device=None), paused=True))
    assert {one.name: (one.shown, one.now) for one in found} == {
        "state": ("open", "rejected by eve"), "mode": ("EXECUTE", "SUGGEST"), "device": ("armed", "not armed"),
        "which device": ("device-0001 on /dev/ttyACM0", "none"), "effects": ("running", "paused"),
    }
    assert differences(before, before) == []


def changed(shown: str, now: str) -> list[tuple[str, str]]:
    """The rows of the difference of two texts."""
    base = shown_state(typed("a"), status(), paused=False)
    one, other = (msgspec.structs.replace(base, text=text) for text in (shown, now))
    assert isinstance(one, ShownState)
    return compared(one, other)


def test_other_bytes_are_compared_line_by_line() -> None:
    assert changed("a\nb\nc", "a\nB\nc") == [(" ", "a\n"), ("-", "b\n"), ("+", "B\n"), (" ", "c")]


def test_a_line_break_more_is_a_difference() -> None:
    assert changed("ls", "ls\n") == [("-", "ls"), ("+", "ls\n")]
    assert changed("ls", "ls") == []
