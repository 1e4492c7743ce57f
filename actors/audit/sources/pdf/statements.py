"""Sentences of a report that claim something of this code, or explain it; pure.

A claim stands in running text as something that is so (``assertion``); headings, plans, negations, quotations, others'
work, requirements and questions claim nothing. A claim is of a matter (``actors/audit/matters.toml``), of a name in
code, of a product, or of a setting's number.
"""

from __future__ import annotations

import builtins
import itertools
import keyword
import re
import sys
from collections.abc import Container, Iterable, Iterator
from typing import Final, NamedTuple

from pmagent.actors.audit.matters import (
    EXPLAINED,
    FAMILIAR,
    LANGUAGES,
    MATTERS,
    MOODS,
    NAME,
    NUMBER,
    PRODUCT,
    PRODUCTS,
    SIGNS,
    TOLD,
    UNITS,
    WRITTEN,
)
from pmagent.actors.audit.sources.pdf.assertion import aside, asserted, explains, instructs, tells
from pmagent.actors.audit.sources.pdf.layout import Paragraph
from pmagent.actors.audit.sources.pdf.words import STOP_WORDS, clipped, listed, sentences, words
from pmagent.contracts.audit_facts import Finding

EACH_MAX: Final = 5
"""So many statements are kept of each matter."""
MANY_MAX: Final = 200
"""And so many of names, of numbers, of explanations, and of what is told besides."""
IN_SENTENCE_MAX: Final = 40
"""So many words of a sentence are looked at for each kind of claim."""
TEXT_CHARS: Final = 400
SENTENCE_CHARS: Final = 2_000
READ_MAX: Final = 10_000
"""So many sentences of a report are looked at; longer ones, and what is no sentence, do not count."""
_CONFIDENCE: Final = 0.8
_WORDS_MIN: Final = 4

_IDENTIFIER: Final = re.compile(r"(?<![\w./@-])(?:--[a-z][\w-]+|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?(?![\w/@])")
_CAMEL: Final = re.compile(r"[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+$")
_SNAKE: Final = re.compile(r"_*[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+$")
_CAPITAL: Final = re.compile(r"(?<=[a-z,] )(?:[A-Z][\w.-]*[a-z0-9]|[a-z]{2,}[A-Z]\w*|[A-Z]{5,})(?:[\u2019'](?=s\b))?")
_WORD: Final = re.compile(r"(?<![\w./-])[A-Za-z][\w-]*(?!/)")
_PLAINLY: Final = re.compile(r"(?<![\w./`@-])(?:(?<=\A)[A-Z])?[a-z]{3,}(?![\w/`@(]|\.\w)")
"""A word that is no name."""
_TITLED: Final = re.compile(r"[\s-]+[A-Z][a-z]")
"""A row of capitals is a title."""
_LANGUAGE: Final = re.compile(
    rf"(?:\b(?:in|into|from|to|and|or)|,)\s+({'|'.join(LANGUAGES)})\b(?!\s+(?!and\b|or\b)[a-z])", re.IGNORECASE
)
_ADDRESS: Final = re.compile(r"\b\w+://\S+|\bwww\.\S+|\S+@\S+")
_ENDINGS: Final = listed("py md txt json toml yaml yml cfg ini html csv pdf js ts sh lock db sql xml png svg log")
_NUMBER: Final = re.compile(
    rf"(?<![\w.-])(\d[\d,]*(?:\.\d+)?|{'|'.join(WRITTEN)})[\s-]*({'|'.join(UNITS)}|[a-z]{{3,}}(?=s\b))s?\b"
    r"|(?<![\w.-])(\d[\d,]*(?:\.\d+)?)\s*(%)"
    r"|\b(?:below|above|under|over|than|exceeds)\s+(\d+\.\d+)()(?![\w.])",
    re.IGNORECASE,
)
_NAME_CHARS: Final = 3
_BEFORE: Final = 20
"""So near before a number of things its setting is looked for."""
_CHANCE: Final = 3
"""Numbers up to this stand in any code."""


class Said(NamedTuple):
    """A claim of a sentence: the matter, and the name or number."""

    goal: str
    about: str = ""


def statements(passages: Iterable[Paragraph]) -> tuple[list[Finding], int]:
    """The statements of the passages, by matter, then in the order of the report: ``path`` is the name or number that
    is claimed, ``line`` the page. And how many sentences tell anything of this code."""
    kept: dict[str, dict[tuple[str, str], Finding]] = {}
    telling = looked = 0
    for passage in passages:
        if passage.level or passage.code:
            continue
        place = 0
        beside = aside(passage.heading, *passage.above)
        planned = any(MOODS["planned"].search(one) for one in (passage.heading, *passage.above))
        for written in sentences(passage.text):
            place = max(passage.text.find(written, place), 0)
            if len(written) > SENTENCE_CHARS or not _is_sentence(written) or looked == READ_MAX:
                continue
            looked += 1
            sentence = _ADDRESS.sub(lambda found: " " * len(found.group()), written)
            codes = [(begin - place, end - place) for begin, end in passage.codes]
            full = {goal for goal in MATTERS if len(kept.get(goal, ())) >= EACH_MAX}
            told = [] if beside else [*claimed(sentence, codes, full), *_told(sentence)]
            telling += not beside and tells(sentence)
            if not planned and explains(sentence):
                told.append(Said(EXPLAINED, passage.heading[:TEXT_CHARS]))
            for said in told:
                mine = kept.setdefault(said.goal, {})
                if len(mine) < (EACH_MAX if said.goal in MATTERS else MANY_MAX):
                    text = clipped(written, TEXT_CHARS)
                    mine.setdefault((said.about, text), Finding(
                        goal=said.goal, path=said.about, line=passage.page, text=text, confidence=_CONFIDENCE,
                    ))  # fmt: skip
    order = (*MATTERS, NAME, PRODUCT, NUMBER, TOLD, EXPLAINED)
    return [finding for goal in order for finding in kept.get(goal, {}).values()], telling


def _is_sentence(text: str) -> bool:
    """Whether it is more than a cell of a table, or a title."""
    said = words(text)
    return len(said) >= _WORDS_MIN and any(word in STOP_WORDS for word in said)


def claimed(sentence: str, codes: Iterable[tuple[int, int]] = (), full: Container[str] = ()) -> list[Said]:
    """The claims of the sentence; ``codes``: its parts in a font for code; ``full``: matters not to be looked for."""
    if not tells(sentence) or instructs(sentence):
        return []
    found = [
        Said(matter.id)
        for matter in MATTERS.values()
        if matter.id not in full
        and any(asserted(sentence, *one.span(), denial=matter.denial) for one in _some(matter.pattern, sentence))
    ]
    return [*found, *_names(sentence, list(codes)), *_products(sentence), *_numbers(sentence)]


def _told(sentence: str) -> Iterator[Said]:
    """That something does something now: the words for what does not go without saying."""
    if tells(sentence) and not instructs(sentence):
        ends = [*(one.start() for one in re.finditer("[,;:]", sentence)), len(sentence)]
        if any(asserted(sentence, end, end) for end in ends):
            yield Said(TOLD, " ".join(_spoken(sentence) if _acts(sentence) else ()))


def _acts(sentence: str) -> bool:
    """Whether a sentence tells of what is done now, and no story."""
    return bool(SIGNS["acts"].search(sentence)) and not SIGNS["narrated"].search(sentence)


def _spoken(sentence: str) -> Iterator[str]:
    for one in _some(_PLAINLY, sentence):
        word = one.group().lower()
        if word not in STOP_WORDS and asserted(sentence, *one.span()):
            yield word


def _some(pattern: re.Pattern[str], sentence: str) -> Iterator[re.Match[str]]:
    return itertools.islice(pattern.finditer(sentence), IN_SENTENCE_MAX)


def _names(sentence: str, codes: list[tuple[int, int]]) -> Iterator[Said]:
    """Names that only code has: in a font for code or between backticks, or written as no word is."""
    for one in _some(_IDENTIFIER, sentence):
        start, end = one.span()
        in_code = any(begin <= start and end <= stop for begin, stop in codes) or sentence[start - 1 : start] == "`"
        name = one.group().removesuffix("()")
        last = name.rpartition(".")[2]
        called = SIGNS["called"].match(sentence, end)
        written = in_code or name.startswith("--") or _SNAKE.match(last) or (called and _CAMEL.match(last))
        before = sentence[:start]
        others = SIGNS["naming"].search(before) or (name.startswith("--") and SIGNS["foreign"].search(before))
        if not written or len(last) < _NAME_CHARS or _is_familiar(name) or others:
            continue
        if asserted(sentence, start, end, near=True):
            yield Said(NAME, f"{name}()" if called or one.group().endswith("()") else name)


def _is_familiar(name: str) -> bool:
    """Whether a name is Python's own, or a file's."""
    first, _, last = name.rpartition(".")
    known = name in FAMILIAR or hasattr(builtins, name) or keyword.iskeyword(name)
    return known or first.partition(".")[0] in sys.stdlib_module_names or (bool(first) and last in _ENDINGS)


def _products(sentence: str) -> Iterator[Said]:
    """Names of others that something is done with."""
    for one in _WORD.finditer(sentence):
        if one.group().lower() in PRODUCTS and asserted(sentence, *one.span()):
            yield Said(PRODUCT, one.group())
    for one in _some(_LANGUAGE, sentence):
        if _acts(sentence) and asserted(sentence, *one.span()):
            yield Said(PRODUCT, one[1])
    for one in _some(_CAPITAL, sentence):
        name = one.group().rstrip(".'\u2019")
        named = name in FAMILIAR or keyword.iskeyword(name) or _TITLED.match(sentence, one.end())
        if named or not name.isalnum():
            continue
        if SIGNS["using"].search(sentence[: one.start()]) and asserted(sentence, *one.span()):
            yield Said(PRODUCT, name)


def _numbers(sentence: str) -> Iterator[Said]:
    """Numbers that the code would have to hold."""
    if not SIGNS["setting"].search(sentence) or SIGNS["measured"].search(sentence):
        return
    for one in _some(_NUMBER, sentence):
        number, unit = next((one[at], one[at + 1].lower()) for at in (1, 3, 5) if one[at])
        before = sentence[max(0, one.start() - _BEFORE) : one.start()]
        if unit and unit not in UNITS and not SIGNS["setting"].search(before):
            continue
        value = float(WRITTEN.get(number.lower(), 0) or number.replace(",", ""))
        factors = UNITS.get(unit, [1])
        told = value > _CHANCE or value % 1 or (len(factors) > 1 and value >= 1)
        if MOODS["wished"].search(sentence[: one.start()]):
            continue
        if told and asserted(sentence, *one.span(), denial=True):
            same = dict.fromkeys(f"{value * factor:.10g}" for factor in factors)
            yield Said(NUMBER, f"{one.group().strip()}: {' '.join(same)}")
