"""The matters that a report can claim of a program, as ``matters.toml`` has them, and the words of code by which they
are looked up; pure.

A word of code is the stem of a part of a name (``retry_after`` has ``retry`` and ``after``), or a whole name of several
parts in lower case without what joins them (``retryafter``), or a number.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable
from importlib.resources import files
from typing import Final, Literal

import msgspec

from pmagent.actors.audit.goals import GOALS
from pmagent.actors.oa.reasoning.rules.vocabulary import stem, words

NAME: Final = "claim.name"
"""A name in code is claimed: it is the statement's ``path``, with ``()`` where it is said to be a function or class."""
PRODUCT: Final = "claim.product"
"""Something is done with what bears this name: a product, a service, a method."""
NUMBER: Final = "claim.number"
"""A setting's number is claimed: ``path`` has it as it is written, a colon, and what code may have for it."""
TOLD: Final = "claim.told"
"""The sentence tells that something of this code does something: it is held against what is known to be lost."""
EXPLAINED: Final = "report.explained"


class Matter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of ``matters.toml``; ``words`` as they are looked up."""

    id: str
    said: str
    goals: tuple[str, ...] = ()
    flaws: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    against: frozenset[str] = frozenset()
    each: frozenset[str] = frozenset()
    scope: Literal["", "home", "not home", "tests"] = ""
    denial: bool = False
    near: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """Of what claims it."""
        return _any((self.said,))


class Patterns(dict[str, re.Pattern[str]]):
    """The patterns of a table by their names, each made when it is first used: only who reads reports needs them."""

    def __init__(self, table: dict[str, list[str]]) -> None:
        super().__init__()
        self._table = table

    def __missing__(self, name: str) -> re.Pattern[str]:
        self[name] = _any(tuple(self._table[name]))
        return self[name]


def terms(names: Iterable[str]) -> set[str]:
    """The words of code in some names."""
    return {term for name in names for term in _terms(name)}


@functools.lru_cache(maxsize=65_536)
def _terms(name: str) -> tuple[str, ...]:
    if name[:1].isdigit():
        return (name,)
    parts = words(name)
    whole = (stem("".join(parts)),) if len(parts) > 1 else ()
    return (*(stem(part) for part in parts if len(part) < 40), *(one for one in whole if len(one) < 80))


def term(name: str) -> str:
    """The one word of code that says ``name`` most closely: of several parts the whole name."""
    found = _terms(name)
    return found[-1] if found else ""


@functools.cache
def _any(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})(?!\w)", re.IGNORECASE)


def _read() -> tuple[Matter, ...]:
    found = []
    for row in _FILE["matter"]:
        unknown = {*row.get("goals", ()), *row.get("flaws", ())} - set(GOALS)
        assert not unknown, f"matters.toml: {row['id']} names no goal: {unknown}"
        listed = {name: frozenset(map(term, row.get(name, "").split())) for name in ("words", "against", "each")}
        found.append(Matter(**{**row, **listed}))
    return tuple(found)


_FILE: Final = tomllib.loads(files("pmagent.actors.audit").joinpath("matters.toml").read_text("utf-8"))
MOODS: Final = Patterns(_FILE["moods"])
"""Patterns of sentences that do not just say that something is so; ``aside`` is of headings."""
REASONS: Final = Patterns(_FILE["reasons"])
"""How a sentence explains."""
PLAIN: Final = frozenset(map(term, _FILE["plain"]["words"].split()))
"""Words of which no code has to know for a sentence with them to be true."""
STOP: Final = frozenset(map(term, _FILE["plain"]["stop"].split()))
"""Words that say nothing."""
PRODUCTS: Final = frozenset(_FILE["products"]["names"].split())
"""Names of others in lower case."""
LANGUAGES: Final = {
    name: frozenset((term(name), *map(term, codes.split()))) for name, codes in _FILE["languages"].items()
}
"""Languages of people, with the words of code for them."""
FAMILIAR: Final = frozenset(_FILE["products"]["familiar"].split())
"""Names that a program need not name to do what is said with them."""
SIGNS: Final = Patterns(_FILE["signs"])
"""The words around a name or number that is claimed."""
UNITS: Final[dict[str, list[float]]] = _FILE["units"]
"""The units that the code may count in instead: factors, by the unit's singular."""
WRITTEN: Final[dict[str, float]] = _FILE["written"]
"""Numbers in words."""
MATTERS: Final[dict[str, Matter]] = {one.id: one for one in _read()}
