"""Text for people: nothing in it acts on a terminal, nothing is hidden, and it fits."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from pmagent.clean import clean_block, clean_line, pad, shorten, width
from tests.support.cases import each

TEXT = st.text(st.characters(codec=None), max_size=200)


@given(TEXT)
def test_no_control_format_or_surrogate_character_is_left(text: str) -> None:
    assert not {char for char in clean_line(text) if unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}}


@each(
    "code", [*range(0x20), *range(0x7F, 0xA0), 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F),
             *range(0x2066, 0x206A), 0xFEFF, 0xE0041]
)
def test_terminal_control_bidi_and_zero_width_are_replaced_by_something_visible(code: int) -> None:
    cleaned = clean_line(f"a{chr(code)}b")
    assert chr(code) not in cleaned
    assert len(cleaned) == 3


def test_lines_stay_lines_in_a_block_and_tabs_become_blanks() -> None:
    assert clean_block("a\n\tb\r\nc\x1b[2J") == "a\n    b␍\nc␛[2J"


def test_ordinary_text_of_any_script_is_as_it_was() -> None:
    for text in ("plain", "Grüße, 世界", "e\u0301", "✓ ▸ • …"):
        assert clean_line(text) == text


def test_towers_of_marks_are_cut() -> None:
    assert len(clean_line("a" + "\u0301" * 500)) == 5


@given(TEXT, st.integers(0, 60))
def test_shortened_text_is_never_wider_than_allowed(text: str, columns: int) -> None:
    assert width(shorten(text, columns)) <= columns


@given(TEXT, st.integers(1, 60))
def test_padded_text_is_exactly_as_wide_as_asked(text: str, columns: int) -> None:
    assert width(pad(text, columns)) == columns


def test_what_is_left_out_is_shown() -> None:
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("世界世界", 5) == "世界…"
    assert shorten("a" * 10_000_000, 10) == "a" * 9 + "…"
