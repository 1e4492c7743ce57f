"""Words and sentences of reports, and what is taken out of their text."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.sources.pdf.words import clean, clipped, parts, sentences, telling, words
from pmagent.events.unseen import UNSEEN
from tests.support.cases import each


@each("text, cleaned", [
    ("a\x00b\x1b[31mc", "ab[31mc"),
    ("user\u202egpj.exe", "usergpj.exe"),
    ("zero\u200bwidth \ufeffmark", "zerowidth mark"),
    ("tab\tand  blanks\u00a0here", "tab and blanks here"),
    ("one\r\ntwo\rthree", "one\ntwo\nthree"),
    ("soft\u00adhyphen", "softhyphen"),
    ("half \ud83d pair", "half ? pair"),
    ("tag\U000e0041s", "tags"),
])
def test_characters_that_hide_or_reorder_others_are_taken_out(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(st.text(st.characters()))
def test_a_cleaned_text_is_seen_whole_encodes_and_stays_as_it_is(text: str) -> None:
    cleaned = clean(text)
    assert not re.search(f"[{UNSEEN}]", cleaned)
    cleaned.encode()
    assert clean(cleaned) == cleaned


@each("text, found", [
    ("It runs. It stops.", ["It runs.", "It stops."]),
    (
        "See e.g. Judges, cf. Fig. 3, by J. Doe et al. Then stop.",
        ["See e.g. Judges, cf. Fig. 3, by J. Doe et al. Then stop."],
    ),
    ("It is in src/state.py. The rest is not.", ["It is in src/state.py.", "The rest is not."]),
    ("Version 1.2 holds. Is it so? Yes!", ["Version 1.2 holds.", "Is it so?", "Yes!"]),
    ('He said "done." Then he left.', ['He said "done."', "Then he left."]),
    ("a line\nanother line", ["a line", "another line"]),
    ("図を見る。次へ進む。", ["図を見る。", "次へ進む。"]),
    ("  ", []),
])
def test_sentences_end_where_readers_end_them(text: str, found: list[str]) -> None:
    assert list(sentences(text)) == found


@given(st.text(st.sampled_from("aB .!?\n\"')(1。")))
def test_no_letter_is_lost_between_sentences(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


def test_names_stay_whole_as_words_and_fall_apart_into_parts() -> None:
    assert words("See src/nodes/judges.py, with_structured_output!") == [
        "see", "src/nodes/judges.py", "with_structured_output",
    ]
    assert parts("Fan-In / Fan-Out") == ["fan", "in", "fan", "out"]
    assert parts("state synchronisation") == parts("State Synchronization")
    assert telling("How do the judges in 図 work?") == ["judges", "図", "work"]


@given(st.text(), st.integers(2, 50))
def test_what_is_clipped_is_no_longer_than_asked(text: str, most: int) -> None:
    cut = clipped(text, most)
    assert len(cut) <= most
    assert cut == text or cut.endswith("…")
