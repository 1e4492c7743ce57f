"""A proposal in words, as bytes, in order, and beside others; how long it was looked at."""

from __future__ import annotations

import re
from typing import Any, Final, get_args

from pmagent.console.pages.approvals.presentation import alike, by_risk, content, headline, stands
from pmagent.console.pages.approvals.viewing_time import KEPT_MAX, ViewingTimes
from pmagent.console.pages.rendering import annotated, visible
from pmagent.contracts.pla_documents import AbortCode
from pmagent.pla.risk import deeds
from pmagent.pla.words import counted, hex_rows
from tests.support.cases import each
from tests.support.proposals import clicked, moved, pressed, typed

TAG: Final = re.compile(r"<[^>]+>")


@each("document, words, exactly", [
    (typed("a"), "Type 1 character", "a"),
    (typed("ls -la\n"), "Type 7 characters", "ls -la\n"),
    (typed("***", masked=True, chars=12, plain={"text": "twelve chars"}), "Type 12 characters", "twelve chars"),
    (pressed("ctrl", "alt", "t"), "Press ctrl + alt + t", "ctrl+alt+t"),
    (moved(10, -5), "Move the pointer 10 right, 5 up", "x +10, y -5: 10 right, 5 up"),
    (moved(-1, 2), "Move the pointer 1 left, 2 down", "x -1, y +2: 1 left, 2 down"),
    (moved(0, 0), "Move the pointer nowhere", "x +0, y +0: nowhere"),
    (clicked("left"), "Click left", "left"),
])
def test_it_is_told_in_words_and_exactly(document: dict[str, Any], words: str, exactly: str) -> None:
    assert headline(document) == words
    assert content(document) == exactly


def test_the_words_hold_nothing_of_what_is_typed() -> None:
    assert "secret" not in headline(typed("secret", plain={"text": "secret"}))


@each("text, told", [
    ("a", "1 character"),
    ("", "0 characters"),
    ("ls\n", "3 characters, Enter 1 time"),
    ("a\tb\t\n\n", "6 characters, Enter 2 times, Tab 2 times"),
])
def test_enters_and_tabs_are_counted(text: str, told: str) -> None:
    assert counted(text) == told


def test_bytes_stand_sixteen_a_row_with_what_can_be_read() -> None:
    rows = "\n".join(hex_rows("0123456789abcdef\tZ\n")).split("\n")
    assert rows[0] == "0000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  |0123456789abcdef|"
    assert rows[1] == f"0010  {'09 5a 0a':<47}  |.Z.|"
    assert "\n".join(hex_rows("")) == ""
    assert "\n".join(hex_rows("\x1f ~\x7f\x80")).endswith("|. ~...|"), "what can be read of it is from blank to tilde"


def test_open_ones_are_in_order_of_risk_then_age() -> None:
    low_old = typed("a", proposal_id="low-old", proposed_at="2026-11-22T12:00:00.000000Z")
    high_new = typed("rm a\n", proposal_id="high-new", proposed_at="2026-11-22T12:02:00.000000Z")
    high_old = typed("rm b\n", proposal_id="high-old", proposed_at="2026-11-22T12:01:00.000000Z")
    medium = clicked("left", proposal_id="medium")
    ordered = [one["proposal_id"] for one in by_risk([low_old, medium, high_new, high_old])]
    assert ordered == ["high-old", "high-new", "medium", "low-old"]


def earlier(document: dict[str, Any], name: str, position: int, **more: Any) -> dict[str, Any]:
    """The same as it stood before, closed."""
    return {**document, "proposal_id": name, "position": position, "stands": "closed", "outcome": "executed", **more}


def test_earlier_ones_of_the_same_bytes_come_before_those_that_only_begin_so() -> None:
    now = typed("ls -la\n", position=50)
    others = [
        earlier(typed("ls\n"), "begins-so", 40),
        earlier(typed("ls -la\n"), "same-old", 10),
        earlier(typed("ls -la\n"), "same-new", 20),
        earlier(typed("pwd\n"), "other", 45),
        earlier(pressed("a"), "keys", 46),
    ]
    found = alike(now, others)
    assert [(like.document["proposal_id"], like.how) for like in found] == [
        ("same-new", "the same bytes"),
        ("same-old", "the same bytes"),
        ("begins-so", "also begins with ls"),
    ]


def test_itself_what_is_open_and_what_came_later_are_not_like_it() -> None:
    now = typed("ls\n", position=50)
    later = earlier(typed("ls\n"), "later", 60)
    still = typed("ls\n", proposal_id="still", position=40)
    assert alike(now, [now, later, still]) == []


def test_masked_texts_are_alike_by_their_digest_only() -> None:
    now = typed("*** a", masked=True, position=50)
    same = earlier(typed("*** a", masked=True), "same", 10)
    other = earlier({**typed("*** a", masked=True), "digest": "0" * 64}, "other", 11)
    assert [like.document["proposal_id"] for like in alike(now, [same, other])] == ["same"]


@each("outcome, kind, words", [
    ("executed", "good", "It was typed"),
    ("recorded", "info", "recorded by bob"),
    ("rejected", "info", "Rejected by bob"),
    ("expired", "warn", "Expired"),
    ("withdrawn", "warn", "Withdrawn"),
    ("aborted", "bad", "in the middle"),
    ("not_executed", "warn", "Nothing was typed"),
    ("unknown", "bad", "Nobody can tell how much was typed"),
])
def test_each_end_is_told_in_words_of_its_weight(outcome: str, kind: str, words: str) -> None:
    found = stands(typed("a", stands="closed", outcome=outcome, why="so it is", decided_by="bob"))
    assert found is not None
    assert found.kind == kind
    assert words in found.title
    assert outcome == "executed" or found.text.startswith("So it is.")


def test_what_is_open_has_no_end_and_what_is_typed_says_how_it_is_ended() -> None:
    assert stands(typed("a")) is None
    found = stands(typed("a", stands="executing"))
    assert found is not None
    assert "Stop typing" in found.text


def test_an_unknown_outcome_says_look_at_the_screen() -> None:
    found = stands(typed("a", stands="closed", outcome="unknown", why="the line was lost"))
    assert found is not None
    assert "Look at the machine's screen now" in found.text
    assert "never typed again" in found.text


class Clock:
    """Seconds, as a test says."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_looking_is_counted_from_the_first_time_in_a_session() -> None:
    clock = Clock()
    looked = ViewingTimes(clock)
    looked.shown("session-1", "a")
    clock.seconds += 2
    looked.shown("session-1", "a")
    looked.shown("session-2", "a")
    clock.seconds += 1.5
    assert looked.milliseconds("session-1", "a") == 3500
    assert looked.milliseconds("session-2", "a") == 1500
    assert looked.milliseconds("session-1", "b") == 0


def test_only_so_many_looks_are_remembered() -> None:
    clock = Clock()
    looked = ViewingTimes(clock)
    for number in range(KEPT_MAX + 1):
        looked.shown("session", str(number))
    clock.seconds += 1
    assert looked.milliseconds("session", "0") == 0
    assert looked.milliseconds("session", str(KEPT_MAX)) == 1000


@each("code", get_args(AbortCode))
def test_what_ended_in_the_middle_says_first_what_ended_it(code: str) -> None:
    document = typed("a", stands="closed", outcome="aborted", why="ended after 1 of 2 reports", decided_by="bob")
    found = stands(document, code)
    assert found is not None
    assert (found.title == "It ended in the middle") == (code == "")
    assert "nded after 1 of 2 reports" in found.text
    assert ("kill switch" in found.title) == (code == "KILLED")


def test_words_that_look_dangerous_and_what_is_typed_already_are_marked() -> None:
    text = "cd /\nrm -rf <x>\n"
    shown = str(annotated(text, deeds(text), 6))
    assert TAG.sub("", shown) == TAG.sub("", str(visible(text))), "nothing is left out or added"
    assert re.search(r'<mark class="deed" title="[^"]+">', shown)
    assert "&lt;x&gt;" in shown
    assert str(annotated("abcdef", [], 3)) == '<span class="sent">abc</span>def'
    assert str(annotated(text, [], 0)) == str(visible(text))
