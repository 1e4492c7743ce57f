"""The index finds what a question is about, whatever stands in the question."""

from __future__ import annotations

import gc
import sqlite3
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.sources.pdf.index import EXCERPT_CHARS, DocStore, excerpt
from pmagent.actors.audit.sources.pdf.wire import Segment
from tests.support.cases import each


def store(*texts: str) -> DocStore:
    return DocStore([Segment(text=text, page_no=number) for number, text in enumerate(texts, 1)])


JUDGES = "Three judges score the evidence. The Prosecutor attacks, the Defense credits effort, the Tech Lead decides."
GRAPH = "The StateGraph fans out to three detectives; reducers merge what they return into the state."
HISTORY = "The history of the repository shows forty commits over two weeks."


def test_the_segment_that_says_most_about_the_question_comes_first() -> None:
    with store(HISTORY, JUDGES, GRAPH) as held:
        assert [hit.page_no for hit in held.search("How do the judges score evidence?")] == [2]
        assert held.search("commits in the history")[0].page_no == 1
        assert held.search("Which reducer merges the state?")[0].page_no == 3


def test_rare_words_weigh_more_than_common_ones() -> None:
    with store(*["the graph has an edge"] * 9, "the graph has a barrier") as held:
        assert held.search("graph barrier")[0].page_no == 10


def test_inflected_words_accents_and_names_are_found() -> None:
    with store(
        "Réducteurs et arêtes", "It calls with_structured_output in src/nodes/judges.py", "図表は並列を示す"
    ) as held:
        assert held.search("reducteurs")[0].page_no == 1
        assert held.search("structured output")[0].page_no == 2
        assert held.search("src/nodes/judges.py")[0].page_no == 2
        assert held.search("並列")[0].page_no == 3


@each("question", ["", "   ", "how is it?", "zebra", '"', "***", "NOT", "( ) AND", "\x00", "_"])
def test_what_says_nothing_finds_nothing(question: str) -> None:
    with store(JUDGES, GRAPH) as held:
        assert held.search(question) == []


@each(
    "question",
    [
        'judges" OR "x',
        "judges*",
        "text:judges",
        "judges NEAR(evidence, 2)",
        "judges AND NOT",
        "^judges",
        "-judges {a b}: judges",
    ],
)
def test_nothing_in_a_question_is_syntax(question: str) -> None:
    with store(JUDGES, GRAPH) as held:
        assert [hit.page_no for hit in held.search(question)] == [1]


@given(st.text(max_size=80))
def test_no_question_breaks_the_search(question: str) -> None:
    assert all(hit.page_no in {1, 2} for hit in SHARED.search(question) + SHARED.with_all(question))


SHARED = store(JUDGES, GRAPH)


def test_an_empty_store_answers_nothing() -> None:
    with store() as held:
        assert held.search("judges") == []


def test_all_words_of_a_phrase_are_wanted_where_all_are_asked_for() -> None:
    with store("state here", "synchronization there", "the state has synchronization") as held:
        assert [hit.page_no for hit in held.with_all("State Synchronization")] == [3]


def test_a_store_is_asked_from_other_threads_and_lets_go_of_its_memory() -> None:
    held = store(JUDGES)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(len(held.search("judges")))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 4
    held.close()
    held.close()
    with pytest.raises(sqlite3.ProgrammingError):
        held.search("judges")


def test_a_store_that_was_let_go_of_warns_of_nothing() -> None:
    store(GRAPH)
    gc.collect()


def test_an_excerpt_is_the_part_that_the_question_is_about() -> None:
    text = "Nothing of note. " * 60 + "The barrier joins all branches. It waits for each. " + "More of nothing. " * 60
    found = excerpt(text, "what does the barrier join?")
    assert found.startswith("The barrier joins all branches.")
    assert len(found) <= EXCERPT_CHARS
    assert excerpt("word" * 1_000, "word").endswith("…")
