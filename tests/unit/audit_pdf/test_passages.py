"""Whether a report explains a term or drops it, by the measure that stands in ``passages``."""

from __future__ import annotations

from pmagent.actors.audit.sources.pdf.index import DocStore
from pmagent.actors.audit.sources.pdf.layout import Paragraph
from pmagent.actors.audit.sources.pdf.passages import Mention, excerpts, explaining, summarises
from pmagent.actors.audit.sources.pdf.wire import Segment
from pmagent.actors.audit.sources.pdf.words import parts
from pmagent.contracts.audit_events import Question
from pmagent.contracts.audit_facts import Excerpt
from tests.support.cases import each

TERMS = ["Dialectical Synthesis", "Fan-In / Fan-Out", "Metacognition", "State Synchronization"]
INSTRUCTION = "Search the report for these terms and how the judges work."


def answered(*passages: Paragraph) -> list[Excerpt]:
    store = DocStore([Segment(text=each.text, page_no=each.page) for each in passages])
    with store:
        return excerpts([Question(dimension_id="depth", instruction=INSTRUCTION, terms=TERMS)], passages, store)


def of(term: str, *passages: Paragraph) -> list[Excerpt]:
    return [each for each in answered(*passages) if each.query == term]


def text(words: str, *, level: int = 0, heading: str = "", page: int = 1) -> Paragraph:
    return Paragraph(words, page, level, (), heading)


def explained(passage: str, *, headed: bool = False) -> int:
    return explaining([Mention.of(each) for each in TERMS], passage, headed=headed)


@each("dropped", [
    "We used Dialectical Synthesis, Fan-In / Fan-Out, Metacognition and State Synchronization, because all matter.",
    "The system implements Metacognition.",
    "Our robust, innovative, cutting-edge and scalable system leverages powerful Metacognition because it is good.",
    "Metacognition.", "Metacognition is key. The clone is shallow.",
    "Judges and detectives are nodes of a graph that is compiled once.",
])
def test_a_term_that_is_dropped_has_no_sentence_that_explains(dropped: str) -> None:
    assert explained(dropped) == 0


def test_sentences_of_cause_or_purpose_are_counted() -> None:
    text = (
        "Metacognition means that the chief justice looks at how good an evaluation was. "
        "It compares the spread of scores with a bound, so that a divided bench sits again. "
        "Clones live in folders of the machine."
    )
    assert explained(text) == 2


def test_what_stands_under_the_term_s_heading_may_just_describe_it() -> None:
    text = "The chief justice measures how far scores spread around their median and sends judges back."
    assert (explained(text), explained(text, headed=True)) == (0, 1)


def test_what_stands_under_a_heading_that_names_the_term_is_about_it() -> None:
    found = of(
        "Metacognition", text("4.2 Metacognition", level=2, page=3),
        text("The chief justice measures how far scores spread around their median value.", page=3),
        text("Judges read the evidence that colleagues cited and answer a second time.", page=3),
        text("5 History", level=2, page=3),
        text("Forty commits tell a story from setup through tools to orchestration.", page=3),
    )
    assert [(each.page, each.sentences, each.literal) for each in found] == [(3, 2, True)]
    assert "Forty" not in found[0].text


def test_the_items_of_a_list_belong_to_the_sentence_that_opens_it() -> None:
    found = of(
        "State Synchronization",
        text("State Synchronization happens in two places of the compiled graph, after parallel work:"),
        text("- the aggregator waits for each detective, because dictionaries of evidence are merged only once"),
        text("- the chief justice waits until each judge has appended opinions, so that no score is missed"),
        text("Nothing else."),
    )
    assert [(each.sentences) for each in found] == [2]
    assert "Nothing" not in found[0].text


def test_a_summary_explains_nothing_however_much_it_says() -> None:
    words = "Metacognition means that the chief justice looks at how good an evaluation was before it rules."
    assert [each.sentences for each in of("Metacognition", text(words, heading="1. Executive Summary"))] == [0]
    assert [each.sentences for each in of("Metacognition", text(words, heading="Architecture Overview"))] == [1]
    assert summarises("Conclusion")
    assert not summarises("How the chief justice summarises")


@each("written", [
    "fan-in/fan-out", "Fan-In / Fan-Out", "Fan In, Fan Out", "“FAN-IN/FAN-OUT”", "fan\u2011in\u2009/\u2009fan\u2011out",
    "Fan-Out/Fan-In",
])
def test_a_term_is_found_however_it_is_joined_and_cased(written: str) -> None:
    found = of("Fan-In / Fan-Out", text(f"The graph has a {written} of detectives and of judges."))
    assert [each.literal for each in found] == [True]


def test_british_spelling_is_the_same_term() -> None:
    assert of("State Synchronization", text("State synchronisation is done by reducers."))[0].literal


def test_words_of_a_term_that_stand_apart_are_found_but_not_as_it_stands() -> None:
    found = of("State Synchronization", text("The state of the graph is merged; synchronization happens in reducers."))
    assert [(each.literal, each.sentences) for each in found] == [(False, 0)]
    assert of("Metacognition", text("Thinking about thinking.")) == []


def test_a_part_of_a_word_is_not_the_term() -> None:
    assert not Mention.of("Fan-In").within(parts("fan-inside"))
    assert not Mention.of("").within(parts("anything"))


def test_passages_that_explain_most_come_first_and_the_instruction_is_answered_too() -> None:
    found = answered(
        text("Metacognition is there.", page=1),
        text("Metacognition lets the chief justice compare scores, so that a divided bench sits again.", page=7),
    )
    terms = [each for each in found if each.query == "Metacognition"]
    assert [(each.page, each.rank, each.sentences) for each in terms] == [(7, 1, 1), (1, 2, 0)]
    assert [
        each.page for each in answered(text("How three judges work on terms.", page=4)) if each.query == INSTRUCTION
    ] == [4]
