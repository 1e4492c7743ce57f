"""Questions to models that are asked side by side without a graph; pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from pmagent.actors.audit.detectors.code.answers import questions
from pmagent.actors.audit.detectors.code.excerpts import found
from pmagent.actors.audit.detectors.code.names import calls_of, inside, last_name, walk
from pmagent.actors.audit.detectors.code.notes import Notes, Waiting
from pmagent.actors.audit.detectors.code.scopes import Module, Site
from pmagent.contracts.audit_facts import Finding

STAGE: Final = "stage"
"""Of a finding on its way: a function starts several workers and waits for them, which is a stage where there is no
graph."""
_GATHERING: Final = frozenset(("gather", "create_task", "TaskGroup"))
_MAPPING: Final = frozenset(("map", "submit", "run_in_executor", "to_thread"))


def look(module: Module, notes: Notes) -> None:
    """Note the functions of a file that ask a model, and those that are called side by side."""
    if module.source.role == "code":
        for one in questions(module):
            if one is not None:
                notes.signs["asks", one.name, ""] = ""
        at_once = list(_at_once(module))
        notes.waiting.extend(Waiting((("asks", name, ""),), finding) for name, finding in at_once)
        started = {name for name, _ in at_once}
        for function, _ in module.functions():
            if function.name in started:
                called = {last_name(node.func) for node in inside(function) if isinstance(node, ast.Call)}
                notes.signs.update((("calls", function.name, name), "") for name in called)
        notes.waiting.extend(_in_a_row(module))
        notes.found.extend(_stages(module))


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


def _stages(module: Module) -> Iterator[Finding]:
    """Functions that gather what several calls give, or start several tasks in a group."""
    seen = set[object]()
    for call, site in calls_of(module, ("gather", "create_task", "start_soon")):
        function = site.scope.function
        several = len(call.args) > 1 or any(isinstance(one, ast.Starred) for one in call.args)
        several = several or _is_repeated(call, site) or any(
            isinstance(one.stmt, ast.For | ast.AsyncFor) for one in site.around()
        )  # fmt: skip
        calls = [one for one in walk(function or call) if isinstance(one, ast.Call)]
        tasks = sum(last_name(one.func) == last_name(call.func) for one in calls)
        grouped = last_name(call.func) == "gather" or any(
            isinstance(one.stmt, ast.AsyncWith) for one in site.around()
        )  # fmt: skip
        if function is not None and function not in seen and grouped and (several or tasks > 1):
            seen.add(function)
            says = f"{function.name}() starts several workers side by side, and waits for all of them"
            yield found(STAGE, module, site, says=says, confidence=0.8, lines=3)


def _in_a_row(module: Module) -> Iterator[Waiting]:
    """Calls in a loop that are given the list to which the loop adds what they gave before."""
    for call, site in module.calls() if module.additions else ():
        given = {one.id for one in call.args if isinstance(one, ast.Name) and (site.scope, one.id) in module.additions}
        around = site.around() if given else ()
        loop = next((one.stmt for one in around if isinstance(one.stmt, ast.For | ast.AsyncFor)), None)
        if loop is None:
            continue
        for node in ast.walk(loop):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=held), attr="append" | "extend"), args=[added]):
                    if held in given and call in ast.walk(added):
                        says = f"{last_name(call.func)}() is asked in a loop, and given {held}, what was said before"
                        finding = found("judges.in_sequence", module, site, says=says, confidence=0.85, lines=4)
                        yield Waiting((("asks", last_name(call.func), ""),), finding)


def _is_task(decorator: ast.expr) -> bool:
    return last_name(decorator) == "task"


def _is_repeated(call: ast.Call, site: Site) -> bool:
    """Whether a call is the element of a comprehension."""
    rows = (node for node in walk(site.stmt) if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp))
    return any(call in walk(row) for row in rows)
