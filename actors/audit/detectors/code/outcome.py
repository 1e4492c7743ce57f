"""Questions to models that are asked side by side without a graph; pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from pmagent.actors.audit.detectors.code.answers import questions
from pmagent.actors.audit.detectors.code.excerpts import found
from pmagent.actors.audit.detectors.code.names import calls_of, last_name, walk
from pmagent.actors.audit.detectors.code.notes import Notes, Waiting
from pmagent.actors.audit.detectors.code.scopes import Module, Site
from pmagent.contracts.audit_facts import Finding

_GATHERING: Final = frozenset(("gather", "create_task", "TaskGroup"))
_MAPPING: Final = frozenset(("map", "submit", "run_in_executor", "to_thread"))


def look(module: Module, notes: Notes) -> None:
    """Note the functions of a file that ask a model, and those that are called side by side."""
    if module.source.role == "code":
        for one in questions(module):
            if one is not None:
                notes.signs["asks", one.name, ""] = ""
        notes.waiting.extend(Waiting((("asks", name, ""),), finding) for name, finding in _at_once(module))


def _at_once(module: Module) -> Iterator[tuple[str, Finding]]:
    """Functions that are called side by side without a graph, by name: tasks of a workflow in a comprehension, what is
    gathered, what a pool of threads maps or is given."""
    tasks = {function.name for function, _ in module.functions() if any(map(_is_task, function.decorator_list))}
    for call, site in calls_of(module, _GATHERING | _MAPPING | tasks):
        written, names = last_name(call.func), set[str]()
        if written in _GATHERING:
            names = {last_name(one.func) for one in ast.walk(call) if isinstance(one, ast.Call)}
        elif written in _MAPPING:
            names = {last_name(one) for one in call.args}
        elif written in tasks and isinstance(call.func, ast.Name) and _is_repeated(call, site):
            names = {written}
        for name in names - {written} if written not in tasks else names:
            says = f"{name}() is called side by side, by {written}()"
            yield name, found("judges.parallel", module, site, says=says, confidence=0.8, lines=4)


def _is_task(decorator: ast.expr) -> bool:
    return last_name(decorator) == "task"


def _is_repeated(call: ast.Call, site: Site) -> bool:
    """Whether a call is the element of a comprehension."""
    rows = (node for node in walk(site.stmt) if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp))
    return any(call in walk(row) for row in rows)
