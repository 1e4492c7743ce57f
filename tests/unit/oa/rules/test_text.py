"""Text from inputs: cut and printable."""

from __future__ import annotations

import sys
import unicodedata
from typing import Any

from pmagent.actors.oa.reasoning.rules.text import QUOTED_CHARS_MAX, bounded, is_printable, listed, quoted
from tests.support.cases import each
from tests.support.hostile import CORPUS


def test_what_is_quoted_is_short_and_printable() -> None:
    said = {name: quoted(text) for name, text in CORPUS.items()}
    assert [name for name, one in said.items() if not one.isprintable() or len(one) > QUOTED_CHARS_MAX] == []


@each(
    "value, said",
    [
        ("a\nb", "a b"), ("\x1b[1m", "\\u001b[1m"), (None, "null"), (True, "true"), (7, "7"),
        (10**40, "a very large number"),
        (0.5, "0.5"), ([1, 2], "a list of 2"), ({"a": 1}, "an object of 1 keys"), ("x" * 300, "x" * 199 + "…"),
    ],
)  # fmt: skip
def test_values_are_quoted_as_what_they_are(value: Any, said: str) -> None:
    assert quoted(value) == said


def test_what_is_printable_does_not_grow_with_the_versions_of_unicode() -> None:
    hidden = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"}
    for char in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.ucd_3_2_0.category(char) != "Cn":  # every Python knows it
            assert is_printable(char) == (char == " " or unicodedata.category(char) not in hidden), hex(ord(char))
    assert is_printable("\U0001fadf \U0001c8d0 \u1c89 \ufffd")  # of later versions, and the one for what was lost
    assert not is_printable("a\u2029b")
    assert quoted("a\u3000b\u202ec\U000e0041") == "a b\\u202ec\\ue0041"


def test_pieces_beyond_a_number_are_counted_and_each_is_told_once() -> None:
    assert listed(["a", "b", "a"]) == "a; b"
    assert listed(map(str, range(100))).endswith("59; and 40 more")
    assert bounded("abc", 2) == "a…"
