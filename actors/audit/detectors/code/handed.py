"""Clones into a place that the function's caller gives: what the callers in the repository give; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from pmagent.actors.audit.detectors.code.names import last_name, parameters
from pmagent.actors.audit.detectors.code.places import place_of
from pmagent.actors.audit.detectors.code.scopes import Module, Site
from pmagent.contracts.audit_facts import Finding

_CLONING: Final = re.compile(r"clone|checkout|fetch|download|repo|pull|git", re.IGNORECASE)
_SURE: Final = 0.8


class _Waiting(NamedTuple):
    """A clone in ``function`` that goes where its parameter says, the one in ``order`` of a call."""

    function: str
    parameter: str
    order: int
    finding: Finding


class Handed:
    """Brings together clones and the calls of the functions in which they stand, known by their simple names."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._given: dict[tuple[str, str | int], str] = {}

    def wait(self, module: Module, site: Site, parameter: str, finding: Finding) -> None:
        """A clone whose place a caller gives. Clones in tests and examples are nobody's flaw."""
        function = site.scope.function
        if function is None or module.source.role != "code":
            return
        names = [one.arg for one in parameters(function)]
        names = names[1:] if names[:1] in (["self"], ["cls"]) else names
        index = names.index(parameter) if parameter in names else -1
        self._waiting.append(_Waiting(function.name, parameter, index, finding))

    def take(self, module: Module) -> None:
        """Note calls that give a fixed place, or one in the working directory, to a function that may clone."""
        if module.source.role != "code":
            return
        for call, site in module.calls():
            written = last_name(call.func)
            if not _CLONING.search(written):
                continue
            given: list[tuple[str | int, ast.expr]] = [*enumerate(call.args)]
            given += [(one.arg, one.value) for one in call.keywords if one.arg]
            for key, value in given[:12]:
                place = place_of(module, value, site.scope)
                if place.where in {"working", "fixed"} and place.sure >= _SURE and not place.param:
                    where = f"{module.source.path}:{call.lineno}"
                    self._given.setdefault((written, key), where)

    def findings(self) -> Iterator[Finding]:
        """The clones that some caller sends into a fixed place or into the working directory."""
        for one in self._waiting:
            where = self._given.get((one.function, one.parameter)) or self._given.get((one.function, one.order))
            if where:
                finding = one.finding
                text = f"{one.parameter} is a fixed place, or below the working directory, in the call at {where}"
                text = f"{text}\n{finding.text}"
                yield Finding(
                    goal=finding.goal, path=finding.path, line=finding.line, text=text[:2_000], confidence=_SURE
                )
