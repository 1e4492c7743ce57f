"""A check's output becomes plain text: nothing that moves a cursor, and nothing hidden."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.checks.text import plain
from pmagent.clean import clean_line
from tests.support.cases import each

STAND_INS = ("\ufffd", *map(chr, range(0x2400, 0x2422)))
"""The terminal's writer puts these in the place of characters that it does not let through."""


@each("raw, text", [
    (b"one\ntwo\n", "one\ntwo\n"),
    (b"\x1b[31mred\x1b[0m and \x1b[1;32mgreen\x1b[m", "red and green"),
    (b"\x1b]0;a title\x07seen \x1b]8;;http://there\x1b\\link\x1b]8;;\x1b\\", "seen link"),
    (b"\x1b]52;c;aGVsbG8=\x07copied", "copied"),
    (b"\x1bP+q544e\x1b\\after \x1bc reset", "after  reset"),
    (b"10%\r20%\r\ndone", "10%\n20%\ndone"),
    (b"a\x00b\x07c\x7fd\te", "abcd\te"),
    (b"a\xc2\x9b31mb", "a31mb"),
    (b"\xff\xfe caf\xc3\xa9", "\ufffd\ufffd caf\u00e9"),
    ("evil \u202egnp.exe\u200b\ufeff".encode(), "evil gnp.exe"),
    (b"\x1b[", ""),
    (b"\x1b]0;a title that never ends\nand what follows", "\nand what follows"),
])
def test_control_sequences_and_what_cannot_be_seen_are_gone(raw: bytes, text: str) -> None:
    assert plain(raw, cut=False) == text


def test_what_was_cut_off_loses_its_last_line_which_may_be_half_of_anything() -> None:
    assert plain(b"one\ntwo and a hal", cut=True) == "one"
    assert plain(b"x" * 1000, cut=True) == ""


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_whatever_was_written_shows_nothing_that_a_terminal_would_obey(raw: bytes) -> None:
    text = plain(raw, cut=False)
    assert all(char in "\n\t" or ord(char) >= 0x20 for char in text)
    for line in text.replace("\t", " ").split("\n"):
        shown = clean_line(line)
        assert all(shown.count(sign) == line.count(sign) for sign in STAND_INS), "nothing was left to be made visible"
