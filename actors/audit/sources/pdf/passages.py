"""The passages of a report about the terms of a rubric, and whether they explain or only drop a term; pure.

A term occurs where its words stand one behind the other, whatever joins them and however they are cased: "Fan-In /
Fan-Out" occurs in "the fan-in/fan-out". A passage is the paragraph that names the term, with the items of a list that
it opens; or what stands under a heading that names it. ``Excerpt.sentences`` counts the sentences of it that explain
(``assertion.explains``; under such a heading, also ``describes``), none of a summary, none that names ``LISTED`` of the
question's terms. 0: the term is dropped there without explanation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pmagent.actors.audit.lists import Lists
from pmagent.actors.audit.sources.pdf.assertion import describes, explains
from pmagent.actors.audit.sources.pdf.index import EXCERPT_CHARS, DocStore
from pmagent.actors.audit.sources.pdf.layout import LISTED_ITEM, Paragraph
from pmagent.actors.audit.sources.pdf.words import clipped, parts, sentences
from pmagent.contracts.audit_events import Question
from pmagent.contracts.audit_facts import Excerpt

_LISTS: Final = Lists(__package__, "passages")

LISTED: Final = 3
PARAGRAPHS: Final = 6
"""So many paragraphs after the first belong to a passage at most."""
TERM_TOP: Final = 5
"""So many passages are kept of each term that occurs, and ``LOOSE_TOP`` where only its words do, apart."""
LOOSE_TOP: Final = 2
INSTRUCTION_TOP: Final = 5
TERMS_MAX: Final = 60

_SUMMARY: Final = _LISTS.pattern("summary")

def excerpts(questions: Sequence[Question], passages: Sequence[Paragraph], store: DocStore) -> list[Excerpt]:
    """The excerpts for every term of the questions, ``query`` being the term, and for their instructions, ``query``
    being these whole. A term that two questions share is looked for once."""
    split = [tuple(parts(passage.text)) for passage in passages]
    found: list[Excerpt] = []
    done: set[str] = set()
    for question in questions:
        terms = question.terms[:TERMS_MAX]
        for term in terms:
            if term not in done:
                done.add(term)
                found += _of_term(term, terms, passages, split) or _loosely(term, store)
        hits = store.search(question.instruction, INSTRUCTION_TOP)
        found += [
            Excerpt(query=question.instruction, page=hit.page_no, rank=rank, text=hit.text, literal=False, sentences=0)
            for rank, hit in enumerate(hits, 1)
        ]
    return found


class Mention(NamedTuple):
    """A term's words, to be looked for in the words of a text."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, term: str) -> Mention:
        """The words of ``term``."""
        return cls(tuple(parts(term)))

    def within(self, text: Sequence[str]) -> bool:
        """Whether they stand in these words side by side, in any order: a fan-out / fan-in is a fan-in / fan-out."""
        size, wanted = len(self.words), sorted(self.words)
        return any(word in wanted and sorted(text[at : at + size]) == wanted for at, word in enumerate(text))


def _of_term(
    term: str, terms: Sequence[str], passages: Sequence[Paragraph], split: Sequence[Sequence[str]]
) -> list[Excerpt]:
    """The passages in which the term occurs: those that explain most first, then in their order."""
    mention, all_terms = Mention.of(term), [Mention.of(each) for each in terms]
    found: list[tuple[int, int, str]] = []
    covered = -1
    for place, passage in enumerate(passages):
        if place <= covered or not mention.within(split[place]):
            continue
        covered = _last(passages, place)
        text = " ".join(each.text for each in passages[place : covered + 1])
        count = 0
        if not summarises(passage.heading):
            first = place + 1 if passage.level else place
            below = "\n".join(each.text for each in passages[first : covered + 1])
            count = explaining(all_terms, below, headed=bool(passage.level))
        found.append((count, passage.page, _around(text, mention)))
    found.sort(key=lambda each: -each[0])
    return [
        Excerpt(query=term, page=page, rank=rank, text=text, literal=True, sentences=count)
        for rank, (count, page, text) in enumerate(found[:TERM_TOP], 1)
    ]


def summarises(heading: str) -> bool:
    """Whether what stands under ``heading`` sums up, introduces or lists: it explains nothing."""
    return bool(_SUMMARY.match(heading))


def _last(passages: Sequence[Paragraph], place: int) -> int:
    """Where the passage ends that begins at ``place``: with what stands under a heading, or a list that is opened."""
    last = place
    while last + 1 < len(passages) and last - place < PARAGRAPHS and not passages[last + 1].level:
        if not passages[place].level and not (
            LISTED_ITEM.match(passages[last + 1].text) and (last > place or passages[last].text.rstrip().endswith(":"))
        ):
            break
        last += 1
    return last


def explaining(mentions: Sequence[Mention], text: str, *, headed: bool = False) -> int:
    """How many sentences of a passage explain, those left out that list the terms of ``mentions``; under a heading that
    names the term, also how many describe how it works here."""
    said = (parts(one) for one in sentences(text) if explains(one) or (headed and describes(one)))
    return sum(sum(one.within(found) for one in mentions) < LISTED for found in said)


def _around(text: str, mention: Mention) -> str:
    """The part of ``text``, of up to an excerpt's length, that begins with the sentence that names the term."""
    if len(text) <= EXCERPT_CHARS:
        return text
    pieces = list(sentences(text))
    for place, piece in enumerate(pieces):
        if mention.within(parts(piece)):
            return clipped(" ".join(pieces[place:]), EXCERPT_CHARS)
    return clipped(text, EXCERPT_CHARS)


def _loosely(term: str, store: DocStore) -> list[Excerpt]:
    """Segments that hold the words of a term of several, apart from each other."""
    if len(Mention.of(term).words) < 2:
        return []
    return [
        Excerpt(query=term, page=hit.page_no, rank=rank, text=hit.text, literal=False, sentences=0)
        for rank, hit in enumerate(store.with_all(term, LOOSE_TOP), 1)
    ]
