"""Constraints that leave one kind of work, or ask for something first: "read_only", "only_docs", "change freeze",
"backup required"; pure.

They name what may be done rather than what may not. Work that only looks meets none of them; work that plainly lies
outside is forbidden; where words do not tell, a person has to.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from pmagent.actors.oa.reasoning.rules.vocabulary import Words, stem, table

Kind = Literal["still", "only", "freeze", "first", "near"]
"""still: nothing changes. only: nothing but ``kept`` changes. freeze: nothing goes out. first: something has to be
there before. near: nothing leaves the machine."""

Verdict = Literal["", "may", "forbids"]

LEFT_MAX = 3
"""A constraint that says "only" and more words than these is a sentence, about who or when as well."""

_V = table("limits")
_KEPT = ((_V.docs, _V.code | _V.tests), (_V.tests, _V.code | _V.docs), (_V.code, Words()))
"""Kinds of work that a constraint may leave, each with the words of what plainly lies outside."""


class Limit(msgspec.Struct, frozen=True):
    """``kept``: stems of the work that is left ("only"). ``outside``: stems of what plainly is none of it. ``acts``:
    the acts that it is about (empty: any)."""

    kind: Kind
    kept: Words = Words()
    outside: Words = Words()
    acts: Words = Words()


def limit(each: list[str], acts: Words, *, denied: bool) -> Limit | None:
    """The limit that one clause of a constraint sets, given as its words and the acts that these name; ``denied``:
    something in it is denied, so that of the limits only "read only" is meant."""
    said = frozenset(each)
    if {"read", "only"} <= said or "readonly" in said:
        return Limit("still")
    if denied:
        return None
    if said & _V.frozen:
        return None if said & _V.over else _freeze(said)
    if said & _V.asked and _V.first.intersection(map(stem, each)):
        return Limit("first", acts=acts - {"destroy"})
    if "before" in said and said & _V.asking:
        return Limit("first", acts=acts)
    if said & _V.near and len(each) <= LEFT_MAX:
        return Limit("near")
    if {"dry", "run"} <= said and len(each) <= LEFT_MAX:
        return Limit("first", kept=frozenset(("dry",)))
    return _only(each, acts) if said & _V.only else None


def _freeze(said: Words) -> Limit:
    """Of a code freeze code is outside; documents and tests are not."""
    code = bool(_V.code_names & said)
    return Limit("freeze", kept=_V.docs | _V.tests if code else frozenset(), outside=_V.code if code else frozenset())


def _only(each: list[str], acts: Words) -> Limit | None:
    left = [cut for word in each if (cut := stem(word)) not in _V.fillers]
    for kept, outside in _KEPT:
        if left and set(left) <= kept:
            return Limit("only", kept=kept, outside=outside - kept)
    if _V.scopes.intersection(each) or len(left) > LEFT_MAX:
        return Limit("first", acts=acts) if acts else None
    return Limit("only", kept=frozenset(left)) if left else None


def meets(one: Limit, said: Words, meant: Words, *, looks: bool) -> Verdict:
    """Whether an action, as stems and as the acts and things that these mean, meets the limit. ``looks``: it is known
    to look only, or to be told by its acts alone."""
    if one.kind == "near":
        return "forbids" if meant & _V.sent else ""
    if one.acts and not meant & one.acts:
        return ""
    changes = bool(meant & _V.changing or said & _V.making)
    if not changes:
        return (
            "may" if one.kind == "only" and not looks and said & one.outside - one.kept and not said & one.kept else ""
        )
    match one.kind:
        case "still":
            return "forbids"
        case "first":
            return "" if said & one.kept else "may"
        case "freeze":
            if meant & _V.released or (said & one.outside and not said & one.kept):
                return "forbids"
            return "" if said & one.kept else "may"
    if said & one.kept:
        return "may" if meant & _V.released else ""
    return "forbids" if said & one.outside else "may"
