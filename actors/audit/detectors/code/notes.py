"""The notes that detectors take, a file at a time, and what follows from them when all files are seen; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from pmagent.actors.audit.detectors.code.classes import MODELS, ClassTable
from pmagent.actors.audit.detectors.code.excerpts import by_place, clean
from pmagent.actors.audit.lists import Lists
from pmagent.contracts.audit_facts import Finding

_LISTS: Final = Lists(__package__, "notes")

_COUNTS: Final = _LISTS.ordered("counts")
_SETTINGS: Final = "project.environment"

Sign = tuple[str, str, str | int]
"""A kind of sign, the function that it is of, and what it says of it."""


class Waiting(NamedTuple):
    """A finding that holds if one of these signs is found; ``says``: what its text says of that then."""

    signs: tuple[Sign, ...]
    finding: Finding
    says: str = ""


class Binding(NamedTuple):
    """A binding of answers to a schema whose kind is looked up when all classes are known."""

    how: str
    schema: str
    path: str
    line: int
    code: str
    sure: float


class Notes:
    """The findings and counts, the signs that were seen, and where the first of a kind was."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.counts: Counter[str] = Counter(dict.fromkeys(_COUNTS, 0))
        self.signs: dict[Sign, str] = {}
        self.waiting: list[Waiting] = []
        self.bindings: list[Binding] = []
        self.examined_in_code = 0
        self.first_examined = ""

    def findings(self, classes: ClassTable) -> Iterator[Finding]:
        """Each place once for a goal; and that there is no unsafe call, where calls that could be were examined."""
        bound = [_structured(one, classes) for one in self.bindings]
        checked = [one for one, binding in zip(bound, self.bindings, strict=True) if _checks(binding, classes)]
        validated = [msgspec.structs.replace(one, goal="output.validated", confidence=0.9) for one in checked]
        every = by_place([*self.found, *self._settled(), *bound, *validated])
        yield from (one for one in every if one.goal != _SETTINGS)
        if self.examined_in_code and not any(one.goal in _OF_CALLS for one in every):
            text = f"calls that start processes, evaluate code or load objects: {self.examined_in_code} examined"
            text = f"{text}, none unsafe"
            path, _, line = self.first_examined.rpartition(":")
            yield Finding(goal="tools.no_unsafe_calls", path=path, line=int(line), text=text, confidence=0.9)

    def settings(self) -> list[Finding]:
        """Where the code reads the environment."""
        return by_place(one for one in self.found if one.goal == _SETTINGS)

    def _settled(self) -> Iterator[Finding]:
        """The findings that waited for a sign that was seen; who calls somebody that asks asks as well."""
        for _ in range(2):
            asking = {name for kind, name, _said in self.signs if kind == "asks"}
            callers = {name for kind, name, said in self.signs if kind == "calls" and said in asking}
            self.signs.update((("asks", name, ""), "") for name in callers - asking)
        for one in self.waiting:
            where = next((self.signs[sign] for sign in one.signs if sign in self.signs), None)
            if where is not None:
                text = f"{one.says.format(where)}\n{one.finding.text}"[:2_000] if one.says else one.finding.text
                yield msgspec.structs.replace(one.finding, text=text)


_OF_CALLS: Final = frozenset(
    f"security.{name}" for name in ("os_system", "shell", "evaluation", "unsafe_load", "clone_in_place", "sql")
)


def _checks(one: Binding, classes: ClassTable) -> bool:
    """Whether what is bound gives a model that validated itself, or raises."""
    known = classes.known(one.schema, one.path) if one.schema else None
    return known is not None and known.kind in MODELS and one.how != "bind_tools"


def _structured(one: Binding, classes: ClassTable) -> Finding:
    known = classes.known(one.schema, one.path) if one.schema else None
    says, sure = f"{one.how} binds to {one.schema.rpartition('.')[2].lstrip(':') or 'a schema'}", one.sure
    if known is not None and known.kind in MODELS:
        says, sure = f"{says}, a {known.kind} ({known.where})", max(sure, 0.9)
    text = clean(f"{says}\n{one.code}")
    return Finding(goal="output.structured", path=one.path, line=one.line, text=text, confidence=sure)
