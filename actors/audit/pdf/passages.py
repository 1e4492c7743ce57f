"""What a report says about the terms of a rubric: passages, and whether they explain or only drop a term; pure.

A term occurs where its words stand one behind the other, whatever joins them and however they are cased: "Fan-In /
Fan-Out" occurs in "the fan-in/fan-out". A sentence is **about** a term when all of this holds:

1. it names the term; or it is one of the next ``FOLLOWING`` sentences of that paragraph, or of the paragraph under a
   heading that names the term, and, unless under such a heading, begins with a word that points back (this, it, each …)
   or shares a telling word with the sentence before;
2. it says something of its own: at least ``OWN_WORDS`` telling words that are neither in the term nor praise
   (``robust``, ``cutting-edge`` …);
3. it names fewer than ``LISTED`` of the question's terms: a list of terms explains none of them.

``Excerpt.sentences`` counts these. 0: the term is dropped there without explanation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from actors.audit.pdf.index import EXCERPT_CHARS, DocStore
from actors.audit.pdf.layout import Paragraph
from actors.audit.pdf.words import STOP_WORDS, clipped, listed, parts, sentences
from contracts.audit_events import Question
from contracts.audit_facts import Excerpt

FOLLOWING: Final = 3
OWN_WORDS: Final = 5
LISTED: Final = 3
TERM_TOP: Final = 5
"""So many passages are kept of each term that occurs, and ``LOOSE_TOP`` where only its words do, apart."""
LOOSE_TOP: Final = 2
INSTRUCTION_TOP: Final = 5
TERMS_MAX: Final = 60

_PRAISE: Final = listed(
    """
    advanced amazing art autonomous best brilliant comprehensive cutting digital edge elegant enterprise
    excellent fully fundamental grade holistic important innovative intelligent key leverage leverages leveraged
    leveraging modern novel powerful production professional rich robust scalable seamless seamlessly
    significant smart sophisticated state strong synergy system systems truly ultimate unique utilize utilizes
    utilizing various whole world concept concepts principle principles paradigm paradigms embodies embrace
    embraces demonstrate demonstrates showcase showcases implement implements implemented employ employs apply
    applies report project
    """
)
_POINTS_BACK: Final = re.compile(
    r"(?:this|that|these|those|it|its|they|their|each|both|here|there|such|which|then|first|second|finally|instead|otherwise|thus"
    r"|therefore|hence|so|when|because|for example|for instance|in practice|concretely|specifically|as a result)\b",
    re.IGNORECASE,
)


def excerpts(questions: Sequence[Question], passages: Sequence[Paragraph], store: DocStore) -> list[Excerpt]:
    """What was found for every term of the questions, ``query`` being the term, and for their instructions, ``query``
    being these whole. A term that two questions share is looked for once."""
    found: list[Excerpt] = []
    done: set[str] = set()
    for question in questions:
        terms = question.terms[:TERMS_MAX]
        for term in terms:
            if term not in done:
                done.add(term)
                found += _of_term(term, terms, passages) or _loosely(term, store)
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
        """Whether they stand in these words one behind the other."""
        size = len(self.words)
        return bool(size) and any(tuple(text[at : at + size]) == self.words for at in range(len(text) - size + 1))


def _of_term(term: str, terms: Sequence[str], passages: Sequence[Paragraph]) -> list[Excerpt]:
    """The passages in which the term occurs: those that explain most first, then in their order."""
    mention, all_terms = Mention.of(term), [Mention.of(each) for each in terms]
    found: list[tuple[int, int, str]] = []
    for place, passage in enumerate(passages):
        if not mention.within(parts(passage.text)):
            continue
        under = passages[place + 1] if passage.level and place + 1 < len(passages) else None
        if under is not None and not under.level and not mention.within(parts(under.text)):
            text = f"{passage.text}: {under.text}"
            count = about(mention, all_terms, under.text, headed=True)
        else:
            before = passages[place - 1] if place and passages[place - 1].level else None
            headed = before is not None and mention.within(parts(before.text))
            text, count = passage.text, about(mention, all_terms, passage.text, headed=headed)
        found.append((count, passage.page, _around(text, mention)))
    found.sort(key=lambda each: -each[0])
    return [
        Excerpt(query=term, page=page, rank=rank, text=text, literal=True, sentences=count)
        for rank, (count, page, text) in enumerate(found[:TERM_TOP], 1)
    ]


def about(mention: Mention, terms: Sequence[Mention], text: str, *, headed: bool = False) -> int:
    """How many sentences of a paragraph are about the term; ``headed``: the heading above names it."""
    return sum(_about(mention, terms, text, headed=headed))


def _about(mention: Mention, terms: Sequence[Mention], text: str, *, headed: bool) -> Iterator[bool]:
    left = FOLLOWING if headed else 0
    last: set[str] = set()
    for sentence in sentences(text):
        found = parts(sentence)
        own = {word for word in found if word not in STOP_WORDS and word not in _PRAISE and len(word) > 1}
        own -= set(mention.words)
        if mention.within(found):
            left, follows = FOLLOWING, True
        else:
            follows = left > 0 and (headed or bool(_POINTS_BACK.match(sentence)) or bool(own & last))
            left = left - 1 if follows else 0
        last = own
        listed = sum(each.within(found) for each in terms)
        yield follows and len(own) >= OWN_WORDS and listed < LISTED


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
