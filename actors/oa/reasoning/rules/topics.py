"""The words of a goal that it does, without those that it only speaks about; pure.

"Document how to drop a table" drops nothing: the act is the text, the table its topic. A clause is about a topic when
it begins with a word that tells or looks ("review the migration plan"), or makes a text and then says about what
("write a section on how to …"). Doing is never taken for a topic: behind a comma or a stop a clause begins anew, behind
"and" or "then" a verb does again, and so it does where it says what the looking is for ("read the log to delete it").
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from pmagent.actors.oa.reasoning.rules.vocabulary import asserted, clauses, stem, table

_V = table("topics")
_PAIRS = frozenset((stem(one), stem(other)) for one, other in map(str.split, _V.pairs))
_JOINED = {(stem(one), other): one + other for one, other in map(str.split, _V.joined)}
"""Verbs of two words."""

LEAD = 2
"""So many words may stand before the word that tells: "a careful review of …"."""
REACH = 4


def done(goal: str, orders: Iterable[str], act: str = "") -> list[str]:
    """The words of what ``goal`` does: those that it asserts (``orders``: see there), without its topics.

    ``act`` is added for a clause whose outcome is kept as a text, where that counts as something ("write").
    """
    verbs = frozenset(orders)
    words: list[str] = []
    parts = [_joined(asserted(clause, verbs)) for clause in clauses(_spelt(goal))]
    is_ordered = any(_is_ordered(each) for each in parts)
    for each in parts:
        start = None if is_ordered else _topic(each)
        if start is None or _does(each[start:]):
            words += _headed(each)
            continue
        words += each[:start]
        is_kept = bool({stem(word) for word in each[:start]} & _V.written) or _is_placed(each[start:])
        words += [act] if act and is_kept else []
    return words


def _spelt(goal: str) -> str:
    """The goal with its signs for "and" as a word."""
    return goal.replace("&", " and ").replace("+", " and ")


def _is_ordered(words: list[str]) -> bool:
    """Whether a clause orders what another one speaks of ("… , then perform it")."""
    return any(
        stem(word) in _V.executing and set(words[at + 1 : at + 3]) & _V.referring
        for at, word in enumerate(words[: LEAD + 1])
    )


def _joined(words: list[str]) -> list[str]:
    """The words with verbs of two words as one."""
    joined: list[str] = []
    for word in words:
        both = _JOINED.get((stem(joined[-1]), word)) if joined else None
        joined[-1:] = [both] if both else [*joined[-1:], word]
    return joined


def _headed(words: list[str]) -> list[str]:
    """The words without those that only tell which text, or which message, is meant: of "migration guide", "guide"."""
    kept = []
    for at, word in enumerate(words):
        behind = [stem(one) for one in words[at + 1 : at + 3] if one != "of"][:1]
        cut, before = stem(word), stem(words[at - 1]) if at else ""
        is_name = cut in _V.nouns and at > 0 and before not in _V.namers and set(behind) & _V.text_names
        if not is_name and (cut, *behind) not in _PAIRS:
            kept.append(word)
    return kept


def looks_only(goal: str) -> bool:
    """Whether every clause of ``goal`` looks at something, and does nothing else."""
    found = False
    for clause in clauses(_spelt(goal)):
        each = asserted(clause)
        start = _topic(each)
        if start is None:
            if {stem(word) for word in each} & _V.doing:
                return False
            continue
        topic = each[start:]
        if _does(topic) or _is_placed(topic) or not {stem(word) for word in each[:start]} & (_V.looking | _V.judging):
            return False
        found = True
    return found


def _topic(words: list[str]) -> int | None:
    """Where the clause's topic begins; None when it has none."""
    how = next((at for at, pair in enumerate(pairwise(words)) if pair == ("how", "to")), None)
    for at, word in enumerate(words[: LEAD + 1]):
        cut = stem(word)
        if cut in _V.judging and {stem(one) for one in words[at + 1 : at + 2 + REACH]} & _V.records:
            return at + 1
        if cut in _V.authoring and (start := _behind_text(words, at + 1)) is not None:
            return start
        if cut in _V.looking or cut in _V.telling:
            return at + 1
        if cut in _V.doing:
            break
    return how


def _behind_text(words: list[str], at: int) -> int | None:
    """Where the topic begins of the text that is named shortly behind ``at``."""
    for number in range(at, min(at + REACH, len(words))):
        if stem(words[number]) in _V.text:
            behind = range(number + 1, min(number + REACH, len(words)))
            return next((place + 1 for place in behind if words[place] in _V.about), None)
    return None


def _does(topic: list[str]) -> bool:
    """Whether a verb within the topic does something after all."""
    for at, word in enumerate(topic):
        if stem(word) not in _V.doing:
            continue
        before = [one for one in topic[max(0, at - 2 * REACH) : at] if one not in _V.articles]
        if set(before[-2:]) & _V.again:
            return True
        is_meant = before[-1:] == ["to"] or set(before[-2:]) & _V.subjects
        if is_meant and not set(before[-REACH:]) & _V.how:
            return True
    return False


def _is_placed(topic: list[str]) -> bool:
    """Whether the topic ends in a place where a text is kept: "… into docs/db.md"."""
    return any(
        word in _V.places and {stem(one) for one in topic[at + 1 : at + 1 + REACH]} & _V.kept
        for at, word in enumerate(topic)
    )
