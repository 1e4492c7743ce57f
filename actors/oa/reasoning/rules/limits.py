"""Constraints that leave one kind of work, or ask for something first: "read_only", "only_docs", "change freeze",
"backup required"; pure.

They name what may be done rather than what may not. Work that only looks meets none of them; work that plainly lies
outside is forbidden; where words do not tell, a person has to.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from pmagent.actors.oa.reasoning.rules.text import stem, stems

Kind = Literal["still", "only", "freeze", "first", "near"]
"""still: nothing changes. only: nothing but ``kept`` changes. freeze: nothing goes out. first: something has to be
there before. near: nothing leaves the machine."""

Verdict = Literal["", "may", "forbids"]

LEFT_MAX = 3
"""A constraint that says "only" and more words than these is a sentence, about who or when as well."""

_SENT = frozenset(("deploy", "push", "network"))
_RELEASED = frozenset(("deploy", "push", "migrate", "merge", "install", "delete", "restart"))
_CHANGING = frozenset((*_RELEASED, "write", "commit", "rename", "destroy"))
_MAKING = stems(
    "implement build add create develop introduce extend refactor rewrite rework enable disable configure set"
    " replace swap bump fix repair restore clean cleanup tidy correct adjust reword revert rollback rotate"
)

_DOCS = stems(
    "doc docs document documentation readme guide handbook manual runbook tutorial glossary wiki changelog comment"
    " docstring spelling typo wording"
)
_TESTS = stems("test tests testing spec fixture coverage")
_CODE = stems(
    "implement refactor code module function class method api endpoint parser tokenizer source src lib package"
    " dependency database table schema column config configuration server service algorithm widget component feature"
    " library script backend frontend deploy release migrate migration"
)
_KEPT: tuple[tuple[frozenset[str], frozenset[str]], ...] = (
    (_DOCS, _CODE | _TESTS),
    (_TESTS, _CODE | _DOCS),
    (_CODE, frozenset()),
)
"""Kinds of work that a constraint may leave, each with the words of what plainly lies outside."""

_FROZEN = frozenset(("freeze", "frozen", "moratorium", "lockdown"))
_OVER = frozenset(("lifted", "over", "ended", "ends", "expired", "until", "after"))
_ASKED = frozenset(("require", "required", "requires", "requiring", "need", "needs", "needed", "must", "mandatory"))
_FIRST = stems(
    "approval approve approved review reviewed sign signoff backup confirm confirmation acknowledge acknowledgement"
    " rehearsal rehearse dry supervision consent permission"
)
_ASKING = frozenset(("ask", "confirm", "check", "consult"))
_NEAR = frozenset(("offline", "local", "locally", "airgapped", "sandboxed"))
_SCOPES = frozenset(("for", "when", "while", "during", "if", "on", "at", "may", "by", "with", "after", "before"))
_FILLERS = stems(
    "only allowed touch change edit modify file under in within the to a work keep update mode restrict limited limit"
)


class Limit(msgspec.Struct, frozen=True):
    """``kept``: stems of the work that is left ("only"). ``outside``: stems of what plainly is none of it. ``acts``:
    the acts that it is about (empty: any)."""

    kind: Kind
    kept: frozenset[str] = frozenset()
    outside: frozenset[str] = frozenset()
    acts: frozenset[str] = frozenset()


def limit(each: list[str], acts: frozenset[str], *, denied: bool) -> Limit | None:
    """The limit that one clause of a constraint sets, given as its words and the acts that these name; ``denied``:
    something in it is denied, so that of the limits only "read only" is meant."""
    said = frozenset(each)
    if {"read", "only"} <= said or "readonly" in said:
        return Limit("still")
    if denied:
        return None
    if said & _FROZEN:
        return None if said & _OVER else _freeze(said)
    if said & _ASKED and {stem(word) for word in each} & _FIRST:
        return Limit("first", acts=acts - {"destroy"})
    if "before" in said and said & _ASKING:
        return Limit("first", acts=acts)
    if said & _NEAR and len(each) <= LEFT_MAX:
        return Limit("near")
    if {"dry", "run"} <= said and len(each) <= LEFT_MAX:
        return Limit("first", kept=frozenset(("dry",)))
    return _only(each, acts) if said & {"only", "solely", "exclusively", "within"} else None


def _freeze(said: frozenset[str]) -> Limit:
    """Of a code freeze code is outside; documents and tests are not."""
    code = bool({"code", "feature", "features"} & said)
    return Limit("freeze", kept=_DOCS | _TESTS if code else frozenset(), outside=_CODE if code else frozenset())


def _only(each: list[str], acts: frozenset[str]) -> Limit | None:
    left = [cut for word in each if (cut := stem(word)) not in _FILLERS]
    for kept, outside in _KEPT:
        if left and set(left) <= kept:
            return Limit("only", kept=kept, outside=outside - kept)
    if frozenset(each) & _SCOPES or len(left) > LEFT_MAX:
        return Limit("first", acts=acts) if acts else None
    return Limit("only", kept=frozenset(left)) if left else None


def meets(one: Limit, said: frozenset[str], meant: frozenset[str], *, looks: bool) -> Verdict:
    """Whether an action, as stems and as the acts and things that these mean, meets the limit. ``looks``: it is known
    to look only, or to be told by its acts alone."""
    if one.kind == "near":
        return "forbids" if meant & _SENT else ""
    if one.acts and not meant & one.acts:
        return ""
    changes = bool(meant & _CHANGING or said & _MAKING)
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
            if meant & _RELEASED or (said & one.outside and not said & one.kept):
                return "forbids"
            return "" if said & one.kept else "may"
    if said & one.kept:
        return "may" if meant & _RELEASED else ""
    return "forbids" if said & one.outside else "may"
