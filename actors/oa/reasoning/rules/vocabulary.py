"""The English of the rules: vocabulary.toml, and the one matcher that reads texts with it; pure.

Words meet by their stems, a denial reaches two words far within its clause, and a text is what it asserts. The file is
part of the code: it is read when this module is imported, never while something is decided.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib.resources import files
from typing import Any, Final

READ_CHARS_MAX = 100_000
"""So much of one text is read for words; an envelope's goal is shorter."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_CLAUSE_ENDS = re.compile(r"(?<![.;:,!?\n])[.;:,!?\n]+(?:\s|$)|\s(?:but|then|and then)\s")
_NEGATED_WORDS = 2
_PLURALS = (("nesses", "ness"), ("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"))

Words = frozenset[str]


class Table(dict[str, Words]):
    """The lists of one table of the vocabulary by their names, which are attributes, too."""

    def __getattr__(self, name: str) -> Words:
        if name not in self:
            raise AttributeError(f"the vocabulary has no list {name} here")
        return self[name]


def words(text: str) -> list[str]:
    """The words of ``text`` in lower case: "dms_shareMismatch-count 2" are five. Apostrophes join ("don't": dont)."""
    plain = text[:READ_CHARS_MAX].replace("'", "").replace("\u2019", "")
    return [word.lower() for word in _WORDS.findall(plain)]


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


def stems(text: str) -> Words:
    """The stems of the words of ``text``."""
    return frozenset(map(stem, words(text)))


def clauses(text: str) -> list[str]:
    """The parts of ``text`` between commas, stops, and words that begin something new."""
    return [part for part in _CLAUSE_ENDS.split(text[:READ_CHARS_MAX]) if part.strip()]


def asserted(text: str, orders: Iterable[str] = ()) -> list[str]:
    """The words that ``text`` says, without those that it denies ("no", "without", "does not" …).

    Denial reaches two words far, and never past the end of a clause. ``orders`` are stems of verbs: behind a denied
    name an order still counts ("without delay migrate the database").
    """
    verbs = frozenset(orders)
    stated: list[str] = []
    for clause in clauses(text):
        reach, denier = 0, ""
        for word in words(clause):
            if word in _NEGATION.negators:
                reach, denier = (1 if word == "non" else _NEGATED_WORDS), word
            elif word == "only" and reach == _NEGATED_WORDS:
                reach = 0  # "not only"
            elif not reach:
                stated.append(word)
            elif word in _NEGATION.fillers:
                continue
            elif denier in _NEGATION.of_names and reach < _NEGATED_WORDS and _is_order(word, verbs):
                stated.append(word)
                reach = 0
            else:
                reach -= 1
    return stated


def _is_order(word: str, verbs: Words) -> bool:
    """Whether ``word`` is one of the verbs, and not as the name of an act ("migration", "pushing")."""
    return stem(word) in verbs and not word.endswith(("ing", "ion", "ions", "ment"))


def denied(text: str) -> bool:
    """Whether ``text`` says no, rather than something: empty, "none", "n/a", "0", "false", "no issues" and the like."""
    first = words(text)[:1]
    return not first or first[0] in _NEGATION.nothing


def table(path: str) -> Table:
    """The lists of the table ``path`` of the vocabulary. Raises KeyError if it has none of that name."""
    return Table({name: _listed(each) for name, each in _found(path).items() if _is_list(each)})


def known(*paths: str) -> Words:
    """The families of words of these tables, all together. Raises KeyError if there is no table of that name."""
    families = (each for path in paths for each in _found(path).values())
    return frozenset().union(*(stems(each) for each in families if isinstance(each, str)))


def texts(path: str) -> dict[str, str]:
    """The texts of the table ``path`` of the vocabulary, in its order. Raises KeyError if it has none of that name."""
    return dict(_found(path))


def rows(path: str) -> list[dict[str, Any]]:
    """The rows of the array of tables ``path`` of the vocabulary. Raises KeyError if it has none of that name."""
    above, _, name = path.rpartition(".")
    found: list[dict[str, Any]] = _found(above)[name]
    return found


def _found(path: str) -> dict[str, Any]:
    found = _VOCABULARY
    for name in path.split("."):
        found = found[name]
    return found


def _is_list(each: Any) -> bool:
    return isinstance(each, str) or (isinstance(each, list) and isinstance(each[0], str))


def _listed(each: str | list[str]) -> Words:
    return stems(each) if isinstance(each, str) else frozenset(each)


def checked(content: str) -> dict[str, Any]:
    """The vocabulary that ``content`` holds. Raises ValueError, naming the list, for one that is empty, holds a word
    twice, or holds what no text can say."""
    vocabulary = tomllib.loads(content)
    pending = list(vocabulary.items())
    for path, held in pending:
        if isinstance(held, dict):
            pending += [(f"{path}.{name}", inner) for name, inner in held.items()]
        elif not held:
            raise ValueError(f"{path} is empty")
        elif _is_list(held):
            each = held.split() if isinstance(held, str) else held
            if len(set(each)) < len(each) or any(words(one) != one.split() for one in each):
                raise ValueError(f"{path} holds a word twice, or one that is not in lower case: {held!r}")
    return vocabulary


_VOCABULARY: Final = checked((files(__package__) / "vocabulary.toml").read_text("utf-8"))
_NEGATION: Final = table("negation")
