"""Text from inputs: quoted safely, and read as words; pure.

Goals, contexts and tool results are data that somebody else wrote. What an answer repeats of them is cut and printable;
what is read from them are words, never instructions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pmagent.contracts.reasoning import TEXT_CHARS_MAX

QUOTED_CHARS_MAX = 200
"""So much of an input is repeated in an answer."""

READ_CHARS_MAX = 100_000
"""So much of one text is read for words; an envelope's goal is shorter."""

SAID_MAX = 60
"""So many pieces are listed in one text of an answer; the others are counted."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\xa0\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e\u2000-\u200f\u2028-\u202f"
    r"\u205f-\u206f\u3000\ud800-\uf8ff\ufeff\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001345f"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
_CLAUSE_ENDS = re.compile(r"(?<![.;:,!?\n])[.;:,!?\n]+(?:\s|$)|\s(?:but|then|and then)\s")

_NEGATORS = frozenset(
    ("no", "not", "never", "without", "non", "dont", "doesnt", "cannot", "nothing", "avoid", "avoids")
)
_OF_NAMES = frozenset(("no", "without"))
"""Negators that deny names ("no migration"), not orders that follow those."""
_NEGATED_WORDS = 2
_FILLERS = frozenset(("a", "an", "the", "any", "is", "are", "be", "to", "of", "do", "does", "yet", "longer"))

_PLURALS = (("nesses", "ness"), ("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"))


def quoted(value: Any, limit: int = QUOTED_CHARS_MAX) -> str:
    """``value`` for an answer: at most ``limit`` characters, all printable; an escape stands for any other. Of a list
    or an object only the size is told."""
    match value:
        case str():
            return bounded(printable(value[: limit + 1]), limit)
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if -(10**18) < value < 10**18 else "a very large number"
        case float():
            return repr(value)
        case list() | tuple():
            return f"a list of {len(value)}"
        case dict():
            return f"an object of {len(value)} keys"
    return f"a {type(value).__name__}"


def printable(text: str) -> str:
    """``text`` with white space as blanks, and an escape for each character that cannot be printed (controls, format
    and direction marks, lone surrogates, private use)."""
    return _UNPRINTABLE.sub(lambda found: " " if found[0].isspace() else f"\\u{ord(found[0]):04x}", text)


def is_printable(text: str) -> bool:
    """Whether ``text`` is one line without white space but blanks, and of characters that can be printed. The same to
    every Python: what ``str.isprintable`` takes for one grows with each version of Unicode."""
    return _UNPRINTABLE.search(text) is None


def bounded(text: str, limit: int = TEXT_CHARS_MAX) -> str:
    """``text``, cut with "…" where it is longer than ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def listed(pieces: Iterable[str], separator: str = "; ") -> str:
    """The pieces in one bounded text, each once; those beyond ``SAID_MAX`` are counted."""
    each = list(dict.fromkeys(pieces))
    told = each[:SAID_MAX]
    if len(each) > SAID_MAX:
        told.append(f"and {len(each) - SAID_MAX} more")
    return bounded(separator.join(told))


def words(text: str) -> list[str]:
    """The words of ``text`` in lower case: "dms_shareMismatch-count 2" are five. Apostrophes join ("don't": dont)."""
    plain = text[:READ_CHARS_MAX].replace("'", "").replace("\u2019", "")
    return [word.lower() for word in _WORDS.findall(plain)]


def clauses(text: str) -> list[str]:
    """The parts of ``text`` between commas, stops, and words that begin something new."""
    return [part for part in _CLAUSE_ENDS.split(text[:READ_CHARS_MAX]) if part.strip()]


def asserted(text: str, orders: Iterable[str] = ()) -> list[str]:
    """The words that ``text`` says, without those that it denies ("no", "without", "does not" …).

    Denial reaches two words far, and never past the end of a clause. ``orders`` are stems of verbs: behind a denied
    name an order still counts ("without delay migrate the database").
    """
    verbs = frozenset(orders)
    said: list[str] = []
    for clause in clauses(text):
        reach, denier = 0, ""
        for word in words(clause):
            if word in _NEGATORS:
                reach, denier = (1 if word == "non" else _NEGATED_WORDS), word
            elif word == "only" and reach == _NEGATED_WORDS:
                reach = 0  # "not only"
            elif not reach:
                said.append(word)
            elif word in _FILLERS:
                continue
            elif denier in _OF_NAMES and reach < _NEGATED_WORDS and _is_order(word, verbs):
                said.append(word)
                reach = 0
            else:
                reach -= 1
    return said


def _is_order(word: str, verbs: frozenset[str]) -> bool:
    """Whether ``word`` is one of the verbs, and not as the name of an act ("migration", "pushing")."""
    return stem(word) in verbs and not word.endswith(("ing", "ion", "ions", "ment"))


def denied(text: str) -> bool:
    """Whether ``text`` says no, rather than something: empty, "none", "n/a", "0", "false", "no issues" and the like."""
    first = words(text)[:1]
    return not first or first[0] in _NOTHING


_NOTHING = frozenset(
    ("none", "no", "nothing", "null", "nil", "false", "zero", "0", "n", "ok", "clean", "clear", "empty")
)


def stem(word: str) -> str:
    """The word without its ending, so that "migrations", "migrating" and "migrate" meet: a rough cut that is the same
    on both sides of each comparison."""
    for ending, instead in _PLURALS:
        if word.endswith(ending) and len(word) > len(ending) + 2:
            word = word[: -len(ending)] + instead
            break
    else:
        if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    for ending in ("ion", "ing", "ed", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return _undoubled(word[: -len(ending)])
    return word


def _undoubled(word: str) -> str:
    """The stem without a doubled end: "dropp" of "dropping" is "drop"; "miss" and "pass" keep their letters."""
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        return word[:-1]
    return word


def stems(*each: str) -> frozenset[str]:
    """The stems of a vocabulary, written as plain words."""
    return frozenset(stem(word) for text in each for word in words(text))
