"""Constraints of the task, held against what an action says; pure.

A constraint forbids when a part of it begins with a denial ("no_db_writes", "Never push to main"). Its words are read
as acts (write, push, bypass …), as things acted on (database, guards …), each with general synonyms, and as other
words that have to occur as they stand. It hits an action that says its act and its thing; an act said without the
other words is a maybe, for a person to judge.

A constraint is a limit when it leaves one kind of work, or asks for something first: "read_only", "only_docs", "change
freeze", "backup required". Work that only looks meets none of them; work that plainly lies outside is forbidden; where
words do not tell, a person has to.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from pmagent.actors.oa.reasoning.rules.text import quoted
from pmagent.actors.oa.reasoning.rules.topics import done, looks_only
from pmagent.actors.oa.reasoning.rules.vocabulary import Table, Words, clauses, stem, table, words

Kind = Literal["still", "only", "freeze", "first", "near"]
"""still: nothing changes. only: nothing but ``kept`` changes. freeze: nothing goes out. first: something has to be
there before. near: nothing leaves the machine."""

Verdict = Literal["", "may", "forbids"]

LEFT_MAX = 3
"""A constraint that says "only" and more words than these is a sentence, about who or when as well."""

_L = table("limits")
_KEPT = ((_L.docs, _L.code | _L.tests), (_L.tests, _L.code | _L.docs), (_L.code, Words()))
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
    words = frozenset(each)
    if {"read", "only"} <= words or "readonly" in words:
        return Limit("still")
    if denied:
        return None
    if words & _L.frozen:
        return None if words & _L.over else _freeze(words)
    if words & _L.asked and _L.first.intersection(map(stem, each)):
        return Limit("first", acts=acts - {"destroy"})
    if "before" in words and words & _L.asking:
        return Limit("first", acts=acts)
    if words & _L.near and len(each) <= LEFT_MAX:
        return Limit("near")
    if {"dry", "run"} <= words and len(each) <= LEFT_MAX:
        return Limit("first", kept=frozenset(("dry",)))
    return _only(each, acts) if words & _L.only else None


def _freeze(words: Words) -> Limit:
    """Of a code freeze code is outside; documents and tests are not."""
    code = bool(_L.code_names & words)
    return Limit("freeze", kept=_L.docs | _L.tests, outside=_L.code) if code else Limit("freeze")


def _only(each: list[str], acts: Words) -> Limit | None:
    left = [cut for word in each if (cut := stem(word)) not in _L.fillers]
    for kept, outside in _KEPT:
        if left and set(left) <= kept:
            return Limit("only", kept=kept, outside=outside - kept)
    if _L.scopes.intersection(each) or len(left) > LEFT_MAX:
        return Limit("first", acts=acts) if acts else None
    return Limit("only", kept=frozenset(left)) if left else None


def meets(one: Limit, words: Words, meant: Words, *, looks: bool) -> Verdict:
    """Whether an action, as stems and as the acts and things that these mean, meets the limit. ``looks``: it is known
    to look only, or to be told by its acts alone."""
    if one.kind == "near":
        return "forbids" if meant & _L.sent else ""
    if one.acts and not meant & one.acts:
        return ""
    changes = bool(meant & _L.changing or words & _L.making)
    if not changes:
        outside_only = words & one.outside - one.kept and not words & one.kept
        return "may" if one.kind == "only" and not looks and outside_only else ""
    match one.kind:
        case "still":
            return "forbids"
        case "first":
            return "" if words & one.kept else "may"
        case "freeze":
            if meant & _L.released or (words & one.outside and not words & one.kept):
                return "forbids"
            return "" if words & one.kept else "may"
    if words & one.kept:
        return "may" if meant & _L.released else ""
    return "forbids" if words & one.outside else "may"


CONSTRAINTS_MAX = 200
CHARS_MAX = 2_000
"""So much of one constraint is read; a longer one is told."""

_V = table("constraints")
_ACTS = table("constraints.acts")
_THINGS = table("constraints.things")
_IMPLIED = table("constraints.implied")
_IMPLIED_BY = table("constraints.implied_by")
_MAKING_REACH = 3
_SQL = re.compile(r"\b(?:INSERT\s+INTO|DELETE\s+FROM|(?:ALTER|CREATE|DROP|TRUNCATE)\s+TABLE|UPDATE\s+\S+\s+SET)\b")
"""A statement that writes, as it stands in a goal: in capitals, so that no sentence is taken for one."""
ACT_WORDS: Words = frozenset().union(*_ACTS.values())
"""Stems of every act: orders that a denial of a name does not reach."""


class Hit(msgspec.Struct, frozen=True):
    """A constraint that an action meets. ``sure``: it forbids; otherwise it may, and ``what`` is for a person."""

    constraint: str
    what: str
    sure: bool


class _Ban(msgspec.Struct, frozen=True):
    acts: Words
    things: Words
    others: Words
    either: bool
    conditional: bool


class Constraint(msgspec.Struct, frozen=True):
    """A constraint of the task, as it stands and as what it bans."""

    text: str
    bans: list[_Ban]
    limits: list[Limit] = []


def read(given: Any) -> tuple[list[Constraint], str]:
    """The constraints in ``oa_context.constraints``, and what is wrong with it ("" if nothing is): it has to be a list
    of texts. The readable part of a broken list still counts."""
    if given is None:
        return [], ""
    if isinstance(given, str):
        return [_constraint(given)], "oa_context.constraints is one text, not a list of texts"
    if not isinstance(given, list):
        return [], f"oa_context.constraints is {quoted(given)}, not a list of texts"
    entries = given[:CONSTRAINTS_MAX]
    wrong = [quoted(entry) for entry in entries if not isinstance(entry, str)]
    wrong += [f"{quoted(text, 40)}, too long" for text in entries if isinstance(text, str) and len(text) > CHARS_MAX]
    if len(given) > CONSTRAINTS_MAX:
        wrong.append(f"more than {CONSTRAINTS_MAX} entries")
    objection = f"oa_context.constraints holds {wrong[0]}: it has to be a list of short texts" if wrong else ""
    return [_constraint(entry) for entry in entries if isinstance(entry, str)], objection


def _constraint(text: str) -> Constraint:
    bans: list[_Ban] = []
    limits: list[Limit] = []
    for clause in clauses(text[:CHARS_MAX]):
        each = words(clause)
        start = next((n for n, word in enumerate(each) if word in _V.denials), None)
        if found := limit(each, _named_in(_ACTS, each), denied=start is not None):
            limits.append(found)
        elif start is not None:
            ban = _ban(each[start + 1 :], each[start])
            bans += [ban] if ban.acts or ban.things or ban.others else []
    return Constraint(quoted(text), bans, limits)


def _named_in(table: Table, each: list[str]) -> Words:
    """The entries of the table that the words name."""
    cuts = {stem(word) for word in each}
    return frozenset(name for name, family in table.items() if cuts & family)


def hits(constraints: list[Constraint], action: str, *, command: bool = False) -> list[Hit]:
    """The constraints that the action meets, in their order; the first reason of each. Of a ``command`` every word
    counts: an option that is called "no" denies nothing."""
    if not constraints:
        return []
    each = [stem(word) for word in (words(action) if command else done(action, ACT_WORDS, "write"))]
    stated, meant, looks = frozenset(each), _meant(each), command or looks_only(action)
    if _SQL.search(action):
        meant |= {"write", "database"}
    found = []
    for constraint in constraints:
        met = [hit for ban in constraint.bans if (hit := _met(ban, constraint.text, stated, meant))]
        met += [
            _hit(constraint.text, sure=verdict == "forbids")
            for one in constraint.limits
            if (verdict := meets(one, stated, meant, looks=looks))
        ]
        if met:
            found.append(next((hit for hit in met if hit.sure), met[0]))
    return found


def _meant(each: list[str]) -> Words:
    """The acts and things of the words (given as stems), and what these imply."""
    words = frozenset(each)
    meant = {name for table in (_ACTS, _THINGS, _IMPLIED_BY) for name, family in table.items() if words & family}
    for name in list(meant):
        meant.update(_IMPLIED.get(name, ()))
    if "roll" in words and "out" in words:
        meant.add("deploy")
    if "install" in meant and words & _V.packaged:
        meant.add("network")
    stored = _THINGS.database
    if any(word in _V.making and stored & set(each[n + 1 : n + 1 + _MAKING_REACH]) for n, word in enumerate(each)):
        meant.add("write")
    return frozenset(meant)


def _ban(each: list[str], denial: str) -> _Ban:
    acts: set[str] = set()
    things: set[str] = set()
    others: set[str] = set()
    conditional = False
    for word in each:
        if word in _V.exceptions and word != denial:
            conditional = True
            break
        if word in _V.scopes:
            break
        if word in _V.denials:
            continue
        cut = stem(word)
        named = [name for name, family in _ACTS.items() if cut in family]
        owned = [name for name, family in _THINGS.items() if cut in family]
        acts.update(named)
        things.update(owned)
        if not named and not owned and cut not in _V.fillers:
            others.add(cut)
    return _Ban(frozenset(acts), frozenset(things), frozenset(others), "or" in each or "and" in each, conditional)


def _met(ban: _Ban, constraint: str, words: Words, meant: Words) -> Hit | None:
    enough = any if ban.either else all
    if ban.acts and not enough(act in meant for act in sorted(ban.acts)):
        return None
    if ban.things and not enough(thing in meant for thing in sorted(ban.things)):
        return None
    unsaid = sorted(ban.others - words)
    if unsaid and not (ban.acts and ban.acts & meant):
        return None
    return _hit(constraint, sure=not unsaid and not ban.conditional)


def _hit(constraint: str, *, sure: bool) -> Hit:
    if sure:
        return Hit(constraint, f"the constraint {constraint!r} forbids it", sure=True)
    what = f"the constraint {constraint!r} may apply: confirm that it does not, or that it is met"
    return Hit(constraint, what, sure=False)
