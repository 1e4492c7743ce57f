"""A report's text is cut into segments that lose nothing and cut no word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.sources.pdf.segments import CHUNK_CHARS, OVERLAP_CHARS, chunks, segments

LONG_WORDS = st.text(st.sampled_from("ab"), min_size=1, max_size=3 * CHUNK_CHARS)
TEXTS = st.lists(
    st.one_of(st.text(st.sampled_from("abc."), min_size=1, max_size=12), LONG_WORDS), max_size=400
).flatmap(lambda made: st.sampled_from([" ", "\n\n", ". "]).map(lambda joint: joint.join(made)))


@given(TEXTS)
def test_every_letter_is_in_a_chunk_and_chunks_are_parts_of_the_text_in_order(text: str) -> None:
    covered, start = 0, 0
    stripped = text.strip()
    for chunk in chunks(text):
        assert 0 < len(chunk) <= CHUNK_CHARS
        at = stripped.index(chunk, start)
        assert not stripped[covered:at].strip()
        start, covered = at + 1, at + len(chunk)
    assert not stripped[covered:].strip()


@given(TEXTS)
def test_neighbours_share_at_most_the_overlap(text: str) -> None:
    stripped = text.strip()
    end = start = 0
    for chunk in chunks(text):
        at = stripped.index(chunk, start)
        assert end - at <= OVERLAP_CHARS
        start, end = at + 1, at + len(chunk)


@given(st.lists(st.text(st.sampled_from("abc"), min_size=1, max_size=200), max_size=200))
def test_words_that_fit_are_never_cut(made: list[str]) -> None:
    whole = set(made)
    for chunk in chunks(" ".join(made)):
        assert set(chunk.split()) <= whole


def test_a_page_is_one_segment_by_page_and_blank_pages_are_none() -> None:
    pages = [(1, " first "), (2, " \n "), (3, "third " * 1_000)]
    by_page = segments(pages, "page")
    assert [(each["page_no"], each["text"][:5]) for each in by_page] == [(1, "first"), (3, "third")]
    by_char = segments(pages, "char")
    assert {each["page_no"] for each in by_char} == {1, 3}
    assert len(by_char) == 1 + 5


def test_a_chunk_ends_with_a_sentence_where_one_ends_late_in_it() -> None:
    sentence = "A sentence of the report that says a little. "
    first, *_ = chunks(sentence * 100)
    assert first.endswith("a little.")
