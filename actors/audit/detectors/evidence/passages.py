"""The passages of the code, to look for what a sentence speaks of; pure.

A sentence belongs to the passage that has most of its words, rare ones first. A word of it that stands nowhere in the
repository, neither in code nor in a comment, speaks of something that is not there.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Sequence, Set
from typing import Final, NamedTuple

from pmagent.actors.audit.matters import PLAIN, STOP, term, terms
from pmagent.contracts.audit_facts import CodePassage, Finding, RepoSurvey

CLEARLY: Final = 1.15
"""A passage fits a sentence better than another one where it weighs so many times as much."""
WORDS_MIN: Final = 2
"""A sentence belongs to a passage with which it shares so many words."""
_BEGINNING: Final = 5
"""Words that begin with so many letters of another one are of its kind: ``authenticate``, ``authentication``."""
_SAID: Final = 0.7
"""What a word of a comment weighs, and a plain one, next to a word of code."""
MET_MIN: Final = 2
"""A sentence is about this code where that has so many words of it; one more where it has none of its rare words."""
_WORD: Final = re.compile(r"[A-Za-z_]\w{2,}|\d+(?:\.\d+)?")


class Place(NamedTuple):
    """A passage and its words."""

    passage: CodePassage
    words: frozenset[str]
    said: frozenset[str]


class Passages:
    """All passages of a survey; none where it has none."""

    def __init__(self, survey: RepoSurvey, named: Container[str]) -> None:
        self._named = named
        places = [Place(one, frozenset(one.words.split()), frozenset(one.said.split())) for one in survey.passages]
        self._places = [one for one in places if not one.passage.test]
        self._tests = [one for one in places if one.passage.test]
        self._count = Counter(word for one in self._places for word in one.words | one.said)
        self.known = {word for one in places if one.passage.reached or one.passage.test for word in one.words | one.said}
        self.known |= terms(re.findall(r"[A-Za-z]+", " ".join(survey.files)))
        self.tested = {word for one in self._tests for word in one.words | one.said}
        self._tested_kinds = {word[:_BEGINNING] for word in self.tested if len(word) >= _BEGINNING}
        self._kinds = {word[:_BEGINNING] for word in self.known if len(word) >= _BEGINNING}

    def __bool__(self) -> bool:
        return bool(self._places)

    def unknown(self, said: Sequence[str], sentence: str) -> str:
        """The first of the words that nothing which runs has, nor anything of their kind, in a sentence about this
        code; "": none."""
        lost = [one for one in said if term(one) not in self.known and term(one)[:_BEGINNING] not in self._kinds]
        met = terms(_WORD.findall(sentence)) & self.known - STOP
        return lost[0] if lost and len(met) >= MET_MIN else ""

    def home(self, sentence: str) -> CodePassage | None:
        """The function to which a sentence belongs, where nothing reaches it, clearly."""
        said = terms(_WORD.findall(sentence)) - STOP
        idle = max((one for one in self._places if _is_idle(one)), key=lambda one: self._weight(one, said), default=None)
        if idle is None:
            return None
        shared = len(said & (idle.words | idle.said))
        if shared < WORDS_MIN + (term(idle.passage.name) in self._named):
            return None
        others = max((self._weight(one, said) for one in self._places if one.passage.reached), default=0.0)
        return idle.passage if self._weight(idle, said) > CLEARLY * others else None

    def untested(self, sentence: str, passing: Set[str]) -> str:
        """The words of a sentence about tests that no test has, where these are half of them; "": fewer."""
        said = [one for one in dict.fromkeys(re.findall(r"(?!test)[A-Za-z_]\w{2,}", sentence)) if term(one) not in STOP | passing]
        lost = [one for one in said if term(one) not in self.tested and term(one)[:_BEGINNING] not in self._tested_kinds]
        return f"no test knows of {lost[0]}" if self._tests and lost and 2 * len(lost) >= len(said) else ""

    def elsewhere(self, sentence: str, wanted: Set[str]) -> str:
        """Where none of the wanted words is in the functions to which the sentence belongs, nor in those that they
        name: which functions these are. "": it is there, or nobody knows where the sentence belongs."""
        said = terms(_WORD.findall(sentence)) - STOP - wanted
        runs = [one for one in self._places if one.passage.reached and one.passage.name[:1].islower()]
        most = max((self._weight(one, said) for one in runs), default=0.0)
        homes = [one for one in runs if self._weight(one, said) == most and len(said & one.words) >= WORDS_MIN]
        near = [one for one in runs if any(term(one.passage.name) in home.words for home in homes)]
        if not homes or any(one.words & wanted for one in (*homes, *near)):
            return ""
        return f"not so in {homes[0].passage.name} at {homes[0].passage.path}:{homes[0].passage.line}"

    def without(self, each: Set[str], wanted: Set[str]) -> CodePassage | None:
        """The first function that has one of ``each`` and none of the wanted words."""
        runs = (one for one in self._places if one.passage.reached and one.passage.name[:1].islower())
        return next((one.passage for one in runs if one.words & each and not one.words & wanted), None)

    def about(self, sentence: str, finding: Finding) -> bool:
        """Whether a sentence speaks of the passage in which something was found: they share a rare word, or two."""
        within = [one for one in self._places if one.passage.path == finding.path and one.passage.line <= finding.line]
        if not within:
            return False
        place = max(within, key=lambda one: one.passage.line)
        shared = (terms(_WORD.findall(sentence)) - STOP) & (place.words | place.said)
        return len(shared) >= WORDS_MIN or bool(shared - PLAIN)

    def _weight(self, place: Place, said: set[str]) -> float:
        met = said & (place.words | place.said)
        return sum(
            math.log(1 + len(self._places) / self._count[one]) * (_SAID if one in place.said else 1)
            * (_SAID if one in PLAIN else 1) for one in met
        )  # fmt: skip


def _is_idle(place: Place) -> bool:
    return not place.passage.reached and place.passage.name[:1].islower()
