"""The text to be typed is shown so that nothing of it is hidden, on any screen, whatever it holds."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pmagent.clean import width
from pmagent.cli.output import Output
from pmagent.cli.pla.looking import _device_lines
from pmagent.cli.pla.proposal_screen import BECAUSE_LINES, list_proposals, show_proposal
from pmagent.cli.pla.typed import in_short, show_typed
from tests.support.cases import each
from tests.support.commands import _Stream
from tests.support.effort import some
from tests.support.hostile import CORPUS, assert_harmless

TYPABLE = st.text(st.sampled_from([*map(chr, range(32, 127)), "\t", "\n"]), min_size=1, max_size=200)


def shown(action_type: str, payload: dict[str, Any], *, columns: int = 100, **how: bool) -> str:
    """The lines for an action on a screen so wide."""
    out = _Stream()
    output = Output(out, _Stream(), {"COLUMNS": str(columns)})
    show_typed(output, action_type, payload, masked=how.get("masked", False), hexdump=how.get("hexdump", False))
    return out.getvalue().decode()


def typed_back(screen: str) -> str:
    """The text that a screen shows, read off it again."""
    rows = re.findall(r"│(.*)│\n", screen)
    return "".join(rows).replace("→", "\t").replace("⏎", "\n")


@given(TYPABLE, st.integers(40, 120))
def test_the_text_can_be_read_off_the_screen_character_by_character(text: str, columns: int) -> None:
    screen = shown("TYPE_TEXT", {"text": text}, columns=columns)
    assert typed_back(screen) == text
    assert all(len(line) <= columns for line in screen.splitlines() if "│" in line)
    assert f"{len(text)} character" in screen


@given(TYPABLE, st.integers(40, 120))
def test_where_the_screen_lacks_the_signs_it_can_be_read_off_all_the_same(text: str, columns: int) -> None:
    out = _Stream()
    output = Output(out, _Stream(), {"COLUMNS": str(columns)}, ("ascii", "ascii"))
    show_typed(output, "TYPE_TEXT", {"text": text}, masked=False, hexdump=False)
    rows = "".join(re.findall(r"^ {14}[|](.*)[|]$", out.getvalue().decode("ascii"), re.MULTILINE))
    escapes = {"\\n": "\n", "\\t": "\t", "\\\\": "\\"}
    assert re.sub(r"\\.", lambda found: escapes[found[0]], rows) == text


@given(TYPABLE)
def test_the_hexdump_holds_every_byte(text: str) -> None:
    screen = shown("TYPE_TEXT", {"text": text}, hexdump=True)
    rows = re.findall(r"^ {14}[0-9a-f]{4}  (.{47})  [|].{1,16}[|]$", screen, re.MULTILINE)
    assert bytes.fromhex("".join(rows)) == text.encode()


def test_blanks_at_the_end_and_enter_and_tab_are_seen() -> None:
    screen = shown("TYPE_TEXT", {"text": "ls  \n\tcd "})
    assert "│ls  ⏎│" in screen
    assert "│→cd │" in screen
    assert "9 characters, Enter (⏎) 1 time, Tab (→) 1 time" in screen


@each(
    "action_type, payload, said",
    [
        ("KEY_COMBO", {"keys": ["ctrl", "alt", "t"]}, "ctrl + alt + t"),
        ("MOUSE_MOVE", {"x": -3, "y": 12}, "3 left, 12 down"),
        ("MOUSE_MOVE", {"x": 0, "y": -1}, "1 up"),
        ("MOUSE_MOVE", {"x": 0, "y": 0}, "nowhere"),
        ("MOUSE_CLICK", {"button": "right"}, "right"),
    ],
)
def test_each_action_says_what_it_does(action_type: str, payload: dict[str, Any], said: str) -> None:
    assert said in shown(action_type, payload)


def test_what_is_masked_does_not_look_like_what_would_be_typed() -> None:
    screen = shown("TYPE_TEXT", {"text": "***REDACTED***"}, masked=True)
    assert "this is not what would be typed" in screen
    assert "14 characters" not in screen


def document(text: str, **more: Any) -> dict[str, Any]:
    """A proposal as the operations answer it, ``text`` wherever somebody else's text may stand."""
    return {
        "proposal_id": "prop-12345678", "stands": "open", "outcome": None, "why": text, "action_type": "TYPE_TEXT",
        "payload": {"text": text}, "masked": False, "digest": "ab" * 32, "chars": 3, "rationale": text,
        "credential_warning": True, "findings": [text], "policy": "acknowledge", "requested_by": text,
        "proposed_by": text, "channel": "cli", "frame": 4, "ocr_text": text, "two_persons": True,
        "layout": "", "machine": "",
        "proposed_in": "SUGGEST", "proposed_at": "2026-11-22T09:00:00.000000Z", "expires_at": "", "seconds_left": 12.0,
        "decided_by": text, "decided_at": text, "decided_over": "cli", "approval_expires_at": None,
        "execution_id": "exec-12345678", "closed_at": None, "position": 9, "session_id": "pla-12345678", **more,
    }  # fmt: skip


@each("name", some(list(CORPUS), 6))
def test_hostile_text_in_a_proposal_is_harmless(name: str) -> None:
    out = _Stream()
    output = Output(out, _Stream(), {})
    for stands in ("open", "closed"):
        one = document(CORPUS[name], stands=stands, outcome="rejected" if stands == "closed" else None)
        show_proposal(output, one, hexdump=True)
        list_proposals(output, [one])
    assert_harmless(out.getvalue())


def test_a_proposal_says_what_it_may_do_as_the_console_does() -> None:
    out = _Stream()
    show_proposal(Output(out, _Stream(), {}), document("sudo ls\n", chars=8))
    screen = out.getvalue().decode()
    assert "risk        high: " in screen
    assert "a line break" in screen
    assert "another user" in screen
    assert "taken back  no: " in screen
    assert "takes       16 reports, at least 228.0ms" in screen


def test_what_is_revealed_is_shown_in_place_of_the_mask_and_said_to_be_so() -> None:
    out = _Stream()
    show_proposal(Output(out, _Stream(), {}), document("***REDACTED***", masked=True, plain={"text": "hunter2"}))
    screen = out.getvalue().decode()
    assert "revealed" in screen
    assert "│hunter2│" in screen


@each(
    "more, said",
    [
        ({}, "--reveal shows them, as long as the daemon lives"),
        ({"plain": None}, "nobody holds them any more, so they cannot be typed"),
        ({"stands": "closed", "outcome": "withdrawn"}, "nobody holds them any more\n"),
        ({"stands": "closed", "outcome": "executed", "plain": None}, "nobody holds them any more\n"),
    ],
)
def test_of_what_is_masked_is_said_whether_anybody_holds_it(more: dict[str, Any], said: str) -> None:
    out = _Stream()
    show_proposal(Output(out, _Stream(), {}), document("***REDACTED***", masked=True, chars=21, **more))
    assert f"21 characters; {said}" in out.getvalue().decode()


@each(
    "action_type, payload, short",
    [
        ("TYPE_TEXT", {"text": "a\tb\n"}, "type a→b⏎"),
        ("KEY_COMBO", {"keys": ["ctrl", "c"]}, "keys ctrl+c"),
        ("MOUSE_MOVE", {"x": 1, "y": -2}, "move 1 -2"),
        ("MOUSE_CLICK", {"button": "left"}, "click left"),
    ],
)
def test_a_list_has_one_line_for_each(action_type: str, payload: dict[str, Any], short: str) -> None:
    assert in_short(action_type, payload) == short


@each("word", ["\u65e5" * 300, ("x" * 24 + " ") * 40, "plain words " * 60])
@each("columns", [60, 100])
def test_a_rationale_stays_in_its_column_and_on_its_lines(word: str, columns: int) -> None:
    out = _Stream()
    show_proposal(Output(out, _Stream(), {"COLUMNS": str(columns)}), document("a") | {"rationale": word})
    lines = out.getvalue().decode().splitlines()
    because = lines.index(next(line for line in lines if line.startswith("  because")))
    assert all(width(line) <= columns for line in lines[because : because + BECAUSE_LINES])
    assert lines[because + BECAUSE_LINES].startswith("  frame"), "no more of them"


@each("daemon, lease", [("running", ""), ("unresponsive", ", when last heard: it disarms itself 2 s later")])
def test_armed_beside_a_daemon_that_hangs_is_what_was_last_heard(daemon: str, lease: str) -> None:
    out = _Stream()
    device = {"device_id": "pla-7", "port": "/dev/x", "firmware_version": "1", "compatible": True, "error": "",
              "kill_switch_state": "ARMED", "caps_lock": False}  # fmt: skip
    _device_lines(Output(out, _Stream(), {}), {"device": device, "armed": True, "daemon": daemon})
    armed = out.getvalue().decode().splitlines()[1].strip()
    assert armed.startswith(f"armed{lease}")
    assert (armed == "armed") == (not lease)
