"""Whether a sentence says of this code that something is so, or tells of plans, wishes, others' words and others' work,
or denies it; and whether it explains; pure. The words are those of ``matters.toml``."""

from __future__ import annotations

import functools
import re
from typing import Final

from pmagent.actors.audit.lists import Lists
from pmagent.actors.audit.matters import MOODS, REASONS
from pmagent.actors.audit.sources.pdf.words import STOP_WORDS, parts

_LISTS: Final = Lists(__package__, "assertion")

REASON_WORDS: Final = {"cause": 5, "price": 3}
"""An explanation of this kind has so many words of its own at least."""
MECHANISM_WORDS: Final = 7
PRAISE_MAX: Final = 1
"""A sentence with more words of praise than this explains nothing."""
_OPENING: Final = " (-*\u2022\u2013"
_NEAR: Final = 4
"""So many words before it "no" and "without" are looked for."""
_CLAUSE: Final = _LISTS.pattern("clause")
_QUOTED: Final = _LISTS.pattern("quoted")
_RELATIVE: Final = _LISTS.pattern("relative")
"""Words that name a thing by what it is not: "an answer that does not fit is asked for again"."""
_QUOTED_WORDS: Final = 4
"""Of a name or term in quotation marks it can still be said that it is so; not of what has as many words as this."""


def aside(*headings: str) -> bool:
    """Whether what stands under these headings is said of something that is not there: plans, gaps, alternatives,
    others' work."""
    return any(MOODS["aside"].search(heading) for heading in headings)


@functools.lru_cache(maxsize=64)
def tells(sentence: str) -> bool:
    """Whether a sentence tells of this code as it is: it is no question, no order, no plan, and nobody else's words or
    work."""
    return not (
        sentence.rstrip().endswith("?")
        or MOODS["ordered"].match(sentence.lstrip(_OPENING))
        or MOODS["attributed"].search(sentence)
        or MOODS["planned"].search(sentence)
        or any(one.start() == 0 for one in _quotations(sentence))
    )


def instructs(sentence: str) -> bool:
    """Whether a sentence tells of a change, or what its reader can do or see: it claims nothing but its paths."""
    return bool(MOODS["told"].match(sentence.lstrip(_OPENING)) or MOODS["addressed"].search(sentence))


def asserted(sentence: str, start: int, end: int, *, denial: bool = False, near: bool = False) -> bool:
    """Whether ``sentence`` says of what stands at ``start`` to ``end`` that it is so: it tells of this code, does not
    quote it, and its clause neither wishes or denies it before nor takes it back after. With ``denial`` what stands
    there is itself that something is not; with ``near`` only the words right before it deny it. In doubt it is not."""
    if not tells(sentence) or any(one.start() < start and end < one.end() for one in _quotations(sentence)):
        return False
    first, last = 0, len(sentence)
    for border in _CLAUSE.finditer(sentence):
        if border.end() <= start:
            first = border.end()
        elif border.start() >= end:
            last = border.start()
            break
    before, after = _RELATIVE.sub(" ", sentence[first:start]), sentence[end:last]
    if MOODS["wished"].search(before) or MOODS["wished"].search(after):
        return False
    nearest = " ".join(before.split()[-_NEAR:])
    denied = (
        MOODS["denied"].search(nearest if near else before)
        or MOODS["denied_near"].search(nearest)
        or MOODS["taken_back"].search(after)
        or MOODS["inside"].search(sentence[start:end])
    )
    return denial or not denied


def explains(sentence: str) -> bool:
    """Whether a sentence gives a cause, a purpose, a consequence or a price of how something is made here, in words of
    its own."""
    if MOODS["planned"].search(sentence) or MOODS["attributed"].search(sentence) or sentence.rstrip().endswith("?"):
        return False
    if len(MOODS["praise"].findall(sentence)) > PRAISE_MAX:
        return False
    own = {word for word in parts(sentence) if word not in STOP_WORDS and len(word) > 1}
    return any(len(own) >= least and REASONS[kind].search(sentence) for kind, least in REASON_WORDS.items())


def describes(sentence: str) -> bool:
    """Whether a sentence says of something how it works here: in many words of its own, and without praise."""
    own = {word for word in parts(sentence) if word not in STOP_WORDS and len(word) > 1}
    return len(own) >= MECHANISM_WORDS and tells(sentence) and not MOODS["praise"].search(sentence)


def _quotations(sentence: str) -> list[re.Match[str]]:
    return [one for one in _QUOTED.finditer(sentence) if len(one.group().split()) >= _QUOTED_WORDS]
