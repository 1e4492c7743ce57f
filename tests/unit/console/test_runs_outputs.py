"""The output of programs, as it is shown: all of it or both ends, each character to be seen."""

from __future__ import annotations

import html
import re
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.clean import clean_block
from pmagent.console.pages.reading.outputs import MARKS_MAX, shown, text
from pmagent.console.pages.rendering import visible
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from tests.support.cases import each
from tests.support.hostile import CORPUS
from tests.support.pages import assert_unseen


def plain(markup: str) -> str:
    """The text that a reader sees of it."""
    return html.unescape(re.sub(r"<[^>]+>", "", markup))


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    """An empty store."""
    return BlobStore(RealDisk(), str(tmp_path / "blobs"))


@each(
    "raw, seen",
    [
        pytest.param(b"two\nlines", "two\nlines", id="lines"),
        pytest.param(b"\x1b[31mred", "U+001B[31mred", id="escape"),
        pytest.param(b"over\rwritten", "overU+000Dwritten", id="carriage_return"),
        pytest.param(b"a\tb", "a⇥b", id="tab"),
        pytest.param(b"\0", "U+0000", id="nul"),
        pytest.param(b"caf\xc3\xa9 \xff\xfe", "café \\xff\\xfe", id="no_utf8"),
        pytest.param("safe\u202egnp".encode(), "safeU+202Egnp", id="bidi"),
        pytest.param(("z" + "\u0301" * 9).encode(), "z" + "\u0301" * 4 + "U+0301 x5", id="climbing"),
        pytest.param(b"<b>&amp;", "<b>&amp;", id="markup"),
        pytest.param(b"\xed\xa0\x80", "\\xed\\xa0\\x80", id="surrogate"),
    ],
)
def test_every_character_is_seen(raw: bytes, seen: str) -> None:
    assert plain(text(raw)) == seen


@given(st.binary(max_size=300))
def test_nothing_of_any_bytes_is_obeyed(raw: bytes) -> None:
    assert_unseen(text(raw))


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200))
def test_what_can_be_seen_is_left_as_it_is(said: str) -> None:
    assert plain(text(said.encode())) == said


@given(st.one_of(st.text(max_size=100), st.sampled_from(list(CORPUS.values()))))
def test_what_is_started_is_shown_with_every_character(said: str) -> None:
    assert_unseen(visible(said[:2_000]))


def test_marks_are_bounded() -> None:
    shown_ = text(b"\0" * (MARKS_MAX + 500))
    assert shown_.count("<span") == MARKS_MAX
    assert shown_.endswith(clean_block("\0" * 500))
    assert len(text(b"\0" * 65_536)) < 400_000


@each("size, cut", [(0, 0), (1, 0), (200, 0), (201, 1), (5_000, 4_800)])
def test_both_ends_are_shown_and_what_is_cut_is_counted(store: BlobStore, size: int, cut: int) -> None:
    content = bytes(33 + number % 90 for number in range(size))
    found = shown(store, store.put(content), 100)
    assert (found.size, found.cut, found.trouble) == (size, cut, "")
    if cut:
        assert (plain(found.head), plain(found.tail)) == (content[:100].decode(), content[-100:].decode())
    else:
        assert (plain(found.head), found.tail) == (content.decode(), "")


def test_a_large_output_is_shown_from_its_ends(store: BlobStore) -> None:
    content = b"first\n" + b"." * 5_000_000 + b"\nlast"
    found = shown(store, store.put(content))
    assert found.head.startswith("first")
    assert found.tail.endswith("last")
    assert len(found.head) + len(found.tail) + found.cut == len(content)


def test_what_is_not_there_is_told(store: BlobStore) -> None:
    found = shown(store, sha256(b"gone").hexdigest())
    assert found.trouble.startswith("there is no blob")
