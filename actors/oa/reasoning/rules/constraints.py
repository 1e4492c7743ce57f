"""Constraints of the task, held against what an action says; pure.

A constraint forbids when a part of it begins with a denial ("no_db_writes", "Never push to main"). Its words are read
as acts (write, push, bypass …), as things acted on (database, guards …), each with general synonyms, and as other
words that have to occur as they stand. It hits an action that says its act and its thing; an act said without the
other words is a maybe, for a person to judge. What allows one kind of work only, or something else first, is a limit.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from pmagent.actors.oa.reasoning.rules.limits import Limit, limit, meets
from pmagent.actors.oa.reasoning.rules.text import quoted
from pmagent.actors.oa.reasoning.rules.topics import done, looks_only
from pmagent.actors.oa.reasoning.rules.vocabulary import Table, Words, clauses, stem, table, words

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
    of texts. What can be read of a broken list still counts."""
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
    told = f"oa_context.constraints holds {wrong[0]}: it has to be a list of short texts" if wrong else ""
    return [_constraint(entry) for entry in entries if isinstance(entry, str)], told


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
    said, meant, looks = frozenset(each), _meant(each), command or looks_only(action)
    if _SQL.search(action):
        meant |= {"write", "database"}
    found = []
    for constraint in constraints:
        met = [hit for ban in constraint.bans if (hit := _met(ban, constraint.text, said, meant))]
        met += [
            _hit(constraint.text, sure=verdict == "forbids")
            for one in constraint.limits
            if (verdict := meets(one, said, meant, looks=looks))
        ]
        if met:
            found.append(next((hit for hit in met if hit.sure), met[0]))
    return found


def _meant(each: list[str]) -> Words:
    """The acts and things of the words (given as stems), and what these imply."""
    said = frozenset(each)
    meant = {name for table in (_ACTS, _THINGS, _IMPLIED_BY) for name, family in table.items() if said & family}
    for name in list(meant):
        meant.update(_IMPLIED.get(name, ()))
    if "roll" in said and "out" in said:
        meant.add("deploy")
    if "install" in meant and said & _V.packaged:
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


def _met(ban: _Ban, constraint: str, said: Words, meant: Words) -> Hit | None:
    enough = any if ban.either else all
    if ban.acts and not enough(act in meant for act in sorted(ban.acts)):
        return None
    if ban.things and not enough(thing in meant for thing in sorted(ban.things)):
        return None
    unsaid = sorted(ban.others - said)
    if unsaid and not (ban.acts and ban.acts & meant):
        return None
    return _hit(constraint, sure=not unsaid and not ban.conditional)


def _hit(constraint: str, *, sure: bool) -> Hit:
    if sure:
        return Hit(constraint, f"the constraint {constraint!r} forbids it", sure=True)
    what = f"the constraint {constraint!r} may apply: confirm that it does not, or that it is met"
    return Hit(constraint, what, sure=False)
