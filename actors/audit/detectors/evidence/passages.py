"""The passages of the code, to look for what a sentence speaks of; pure.

A sentence belongs to the passage that has most of its words, rare ones first. A word of it that stands nowhere in the
repository, neither in code nor in a comment, speaks of something that is not there.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from pmagent.actors.audit.matters import PLAIN, STOP, term, terms
from pmagent.contracts.audit_facts import CodePassage, Finding, RepoSurvey

CLEARLY: Final = 1.5
"""A passage fits a sentence better than another one where it weighs so many times as much."""
SHARED_MIN: Final = 2
"""A sentence is about a passage, or this code, with which it shares so many words."""
_BEGINNING: Final = 5
"""Words with so many first letters in common are of one kind: ``authenticate``, ``authentication``."""
_NAMED: Final = 1.5
_SAID: Final = 0.7
"""The weights of words of a name, and of words of comments or plain ones, beside a rare word of code."""
_WORD: Final = re.compile(r"[A-Za-z_]\w{2,}|\d+(?:\.\d+)?")
_APART: Final = re.compile(
    r"\b(?:no|none|without|never|nothing|nobody|neither|nor|not|since|because|so\s+that)\b[^,;:.]*", re.IGNORECASE
)
"""A part of a sentence that says what is not so, or why: code need not know its words."""
_LETTERS_MIN: Final = 4
"""Shorter words never count as unknown."""


class Place(NamedTuple):
    """A passage, the words of its name, those of its code, and all of its words."""

    passage: CodePassage
    name: AbstractSet[str]
    code: AbstractSet[str]
    words: AbstractSet[str]


class Vocabulary:
    """Words, and what is of their kind."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words: Final = frozenset(words)
        self._kinds = {one[:_BEGINNING] for one in self.words if len(one) >= _BEGINNING}

    def lacks(self, said: Iterable[str]) -> list[str]:
        """Those of the words of a sentence that are none of these, nor of their kind."""
        return [one for one in said if term(one) not in self.words and term(one)[:_BEGINNING] not in self._kinds]


class Passages:
    """All passages of a survey; none where it has none. ``named``: the words of code that runs; where there are none,
    too little was read to say what is not there."""

    def __init__(self, survey: RepoSurvey, named: AbstractSet[str]) -> None:
        self._named = named
        every = [_place(one) for one in survey.passages if named]
        self._places = [one for one in every if not one.passage.test]
        self._functions = [one for one in self._places if one.passage.name[:1].islower()]
        self._running = [one for one in self._functions if one.passage.reached]
        self._count = Counter(word for one in self._places for word in one.words)
        files = terms(re.findall(r"[A-Za-z]+", " ".join(survey.files)))
        self.known = Vocabulary(files.union(*(one.words for one in every if one.passage.reached or one.passage.test)))
        self._tested = Vocabulary(word for one in every if one.passage.test for word in one.words)

    def __bool__(self) -> bool:
        return bool(self._places)

    def unknown(self, said: Sequence[str], sentence: str) -> str:
        """The first of the words that nothing which runs has, nor anything of their kind, in a sentence about this
        code; "": none."""
        apart = PLAIN | terms(_WORD.findall(" ".join(_APART.findall(sentence))))
        rare = (one for one in said if len(one) >= _LETTERS_MIN and term(one) not in apart)
        lost = self.known.lacks(one for one in rare if not one.endswith("ly"))
        return lost[0] if lost and len(_words(sentence) & self.known.words) >= SHARED_MIN else ""

    def untested(self, sentence: str, passing: AbstractSet[str]) -> str:
        """A word of a sentence about tests that no test has, where these are half of its words but for those in
        ``passing``; "": fewer."""
        said = [one for one in re.findall(r"\b(?!test)[A-Za-z_]\w{2,}", sentence) if term(one) not in STOP | passing]
        lost = self._tested.lacks(one for one in said if len(one) > _LETTERS_MIN)
        return lost[0] if self._tested.words and lost and 2 * len(lost) >= len(said) else ""

    def idle(self, sentence: str) -> CodePassage | None:
        """The function to which a sentence belongs, clearly, where nothing reaches it."""
        said = _words(sentence)
        best = self._best((one for one in self._functions if not one.passage.reached), said)
        if best is None or len(said & best.words) < SHARED_MIN + (term(best.passage.name) in self._named):
            return None
        other = self._best((one for one in self._places if one.passage.reached), said)
        clearly = other is None or self._weight(best, said) > CLEARLY * self._weight(other, said)
        return best.passage if clearly else None

    def home(self, sentence: str, apart: AbstractSet[str]) -> Place | None:
        """The function that runs to which a sentence belongs, the words ``apart`` left out, if it is told well enough:
        by a rare word of the code among others."""
        said = _words(sentence) - apart
        named = [one for one in self._running if one.passage.path.rpartition("/")[2] in sentence]
        best = self._best(named or self._running, said)
        shared = said & best.code if best is not None else set[str]()
        return best if len(shared) >= SHARED_MIN + (not shared - PLAIN) else None

    def around(self, home: Place) -> list[Place]:
        """A function with those that it calls and that call it, two calls far, and the rest of its file."""
        found = [home]
        for _ in range(2):
            names = {term(one.passage.name) for one in found}
            spoken = set[str]().union(*(one.code for one in found))
            found += [one for one in self._running if one not in found
                      and (term(one.passage.name) in spoken or names & one.code)]  # fmt: skip
        return found + [one for one in self._places if one.passage.path == home.passage.path and not one.passage.name]

    def without(self, each: AbstractSet[str], wanted: AbstractSet[str]) -> CodePassage | None:
        """The first function that has one of ``each`` and none of the wanted words."""
        return next((one.passage for one in self._running if one.code & each and not one.code & wanted), None)

    def about(self, sentence: str, finding: Finding) -> bool:
        """Whether a sentence speaks of the passage in which something was found: they share a rare word, or two."""
        before = (one for one in self._places if one.passage.path == finding.path and one.passage.line <= finding.line)
        place = max(before, key=lambda one: one.passage.line, default=None)
        shared = _words(sentence) & place.words if place is not None else set[str]()
        return len(shared) >= SHARED_MIN or bool(shared - PLAIN)

    def _best(self, places: Iterable[Place], said: AbstractSet[str]) -> Place | None:
        return max(places, key=lambda one: self._weight(one, said), default=None)

    def _weight(self, place: Place, said: AbstractSet[str]) -> float:
        return sum(
            math.log(1 + len(self._places) / self._count[one])
            * (_NAMED if one in place.name else 1 if one in place.code else _SAID)
            * (_SAID if one in PLAIN else 1)
            for one in said & place.words
        )


def _place(passage: CodePassage) -> Place:
    code = set(passage.words.split())
    return Place(passage, terms([passage.name]), code, code.union(passage.said.split()))


def _words(sentence: str) -> set[str]:
    return terms(_WORD.findall(sentence)) - STOP
