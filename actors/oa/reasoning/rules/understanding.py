"""The words of a goal that the rules do not understand, and those by which it sends, reveals or removes; pure.

A goal is understood when it is English: each clause begins with a known word, and an unknown word stands only where a
noun may, as the name of something. Words that are not understood are never taken for harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from pmagent.actors.oa.reasoning.rules.actions import ORDERS
from pmagent.actors.oa.reasoning.rules.text import quoted
from pmagent.actors.oa.reasoning.rules.vocabulary import (
    READ_CHARS_MAX,
    Words,
    asserted,
    clauses,
    known,
    stem,
    stems,
    table,
)

_E = table("english")
_R = table("reach")
_KNOWN = _E.verbs | _E.nouns | known("reach", "topics", "actions")
_NOUNS = _E.nouns | _E.verbs
_STATED = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_NAME = re.compile(r"[0-9_/\\.:=@#<>{}()\[\]*$%|~^+]|[a-z][A-Z]")
_ADDRESS = re.compile(r"\w@\w")
_PLACE = re.compile(r"\b(?:https?|ftp|ssh|s3)://|\b\d{1,3}(?:\.\d{1,3}){3}\b|/dev/")
_KEPT = re.compile(
    r"\.ssh\b|\bid_(?:rsa|dsa|ecdsa|ed25519)|(?<!\w)\.env\b|\.aws\b|\.netrc|\.pgpass|\.gnupg|\.kube\b|\.git-credentials"
    r"|\.npmrc|\.pypirc|\betc/(?:passwd|shadow|sudoers)|\.(?:pem|p12|pfx|kdbx)\b",
    re.IGNORECASE,
)
_SHOWN_MAX = 12
_NAMES_RUN = 2
"""So many unknown words in a row may be a name, behind an article."""


def not_understood(goal: str) -> list[str]:
    """The words of ``goal`` that are not understood, each once; all unknown ones where they are more than a third."""
    found: list[str] = []
    unknown: list[str] = []
    count = 0
    for clause in clauses(_STATED.sub(" it ", goal[:READ_CHARS_MAX])):
        last = ""
        before: list[str] = []  # what stands before a word: "known", "joint", "article", "name", "unknown"
        for token in re.split(r"[\s\-\u2010-\u2015\"()]+", clause):
            for word in _words(token):
                count += 1
                kind = _kind(word)
                if kind == "unknown":
                    unknown.append(word)
                    found += [] if _may_be_name(word, before) else [word]
                elif kind == "name" and not before:
                    found.append(word)
                elif kind == "article" and len(before) == 1 and stem(last.lower()) in _E.nouns - _E.verbs - ORDERS:
                    found.append(last)  # "zip the folder": a noun that is used as a verb
                before.append(kind)
                last = word
    if not count:
        found = [goal.strip()]
    elif 3 * len(unknown) > count:
        found += unknown
    return [quoted(word, 40) for word in list(dict.fromkeys(found))[:_SHOWN_MAX]]


def _words(token: str) -> Iterator[str]:
    """The word, or the name, that a token is; nothing for a sign alone."""
    bare = token.strip(".,;:!?'\u2019\u201c\u201d\u2018*_")
    if not bare or not any(letter.isalnum() for letter in bare):
        return
    if _NAME.search(bare):
        yield bare
    else:
        yield from (part for part in re.split(r"['\u2019&]", bare) if part)


def _kind(word: str) -> str:
    if _NAME.search(word) and word.isascii():
        return "name"
    plain = word.lower()
    if not plain.isascii():
        return "unknown"
    if plain in _E.articles:
        return "article"
    if plain in _E.joining:
        return "joint"
    return "known" if _is_known(plain) else "unknown"


def _is_known(word: str) -> bool:
    if word in _E.function or stem(word) in _KNOWN:
        return True
    if any(word.startswith(one) and stem(word[len(one) :]) in _KNOWN for one in _E.beginnings):
        return True
    bases = (word[: -len(end)] for end in _E.endings if word.endswith(end) and len(word) > len(end) + 2)
    return any(base in _E.function or stem(base) in _KNOWN or stem(f"{base}e") in _KNOWN for base in bases)


def _may_be_name(word: str, before: list[str]) -> bool:
    """Whether an unknown word may be a noun that is not in the vocabulary: behind a known one that is no verb."""
    if not word.isascii() or not before or before[-1] == "joint":
        return False
    if before[-1] == "known":
        return len(before) > 1 or word[0].isupper()
    if before[-1] == "unknown":
        return len(before) > _NAMES_RUN and before[-_NAMES_RUN] == "article"
    return True


def outward(goal: str) -> list[str]:
    """The objections to ``goal`` as one that sends or reveals, each naming the word; [] else."""
    found = [f"the goal names {quoted(kept[0])!r}, where secrets are kept" for kept in [_KEPT.search(goal)] if kept]
    found += ["the goal names somebody's address"] if _ADDRESS.search(goal) else []
    for clause in _clauses(goal):
        cut = [stem(word) for word in clause]
        if cut and cut[0] in _R.telling and set(clause) & _R.how:
            continue
        verbs = _verbs(clause)
        secret = _secret(clause)
        if sent := [word for word in verbs if stem(word) in _R.sending]:
            found.append(f"the goal says {sent[0]!r}, which sends something out")
        elif secret and not _verb_stems(verbs) & _R.protecting:
            found.append(f"the goal is about {secret!r}, which must not be revealed")
        elif _verb_stems(verbs) & _R.moving and (away := [one for one in clause if stem(one) in _R.outside]):
            found.append(f"the goal says {verbs[0]!r} and {away[0]!r}, which may lead outside")
        elif set(cut) & _R.public and set(cut) & _R.data:
            found.append("the goal makes data public")
        elif foes := [word for word in clause if stem(word) in _R.adversary]:
            found.append(f"the goal speaks of {foes[0]!r}")
        elif stems(goal) & _R.private and (moved := _moved(clause)):
            found.append(f"the goal says {moved!r} of what may be private")
    if _PLACE.search(goal) and _verb_stems([word for clause in _clauses(goal) for word in _verbs(clause)]) & _R.moving:
        found.append("the goal moves something to or from an address")
    return found


def removing(goal: str) -> list[str]:
    """The objections to ``goal`` as one that takes something away for good, or touches all of it; [] else."""
    found = []
    for clause in _clauses(goal):
        cut = [stem(word) for word in clause]
        has = set(cut)
        verbs = [word for word in _verbs(clause) if stem(word) in _R.removing]
        handled = _verb_stems(_verbs(clause)) & _R.handling
        kept = _head(clause, _R.data if set(clause) & _R.every else _R.held)
        if verbs and (not has & _R.code or has & _R.data):
            found.append(f"the goal says {verbs[0]!r}, which may remove more than code")
        elif handled and kept:
            found.append(f"the goal handles {kept!r}, which somebody keeps")
        elif "format" in has and has & _R.media:
            found.append("the goal formats a medium")
        elif lost := [word for word in clause if stem(word) in _R.losing]:
            found.append(f"the goal says {lost[0]!r}, which may mean that something is lost")
        elif has & _R.lasting:
            found.append("the goal changes how long something is kept")
    return found


def _clauses(goal: str) -> list[list[str]]:
    return [asserted(clause, ORDERS) for clause in clauses(goal[:READ_CHARS_MAX])]


def _verbs(clause: list[str]) -> list[str]:
    """The words at which a verb stands."""
    return [word for at, word in enumerate(clause) if at == 0 or clause[at - 1] in _E.joining]


def _moved(clause: list[str]) -> str:
    return next(
        (f"{one} {other}" for one, other in pairwise(clause) if stem(one) in _R.moving and other in _R.pronouns), ""
    )


def _verb_stems(verbs: list[str]) -> Words:
    return frozenset(map(stem, verbs))


def _secret(clause: list[str]) -> str:
    """The first word that names a secret, and not something of another name ("the token parser")."""
    for one, other in pairwise(clause):
        if stem(one) in _R.secret_before and stem(other) in _R.secret_names:
            return f"{one} {other}"
    return _head(clause, _R.secret)


def _head(clause: list[str], family: Words) -> str:
    """The first word of ``family`` that is not part of another thing's name ("the log level" is no log)."""
    for one, behind in pairwise([*clause, ""]):
        if stem(one) in family and (stem(behind) not in _NOUNS or stem(behind) in _R.containers):
            return one
    return ""
