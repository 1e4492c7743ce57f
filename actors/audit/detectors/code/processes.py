"""How the code starts processes and clones repositories: checked, into which place, failures told; pure.

Confidence: 1 where the call itself says so (check=True, timeout=); 0.9 where the same function looks at the return code
or catches the failure; 0.6 to 0.8 where names and assignments have to be followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Final

from pmagent.actors.audit.detectors.code.calls import RAISING, Start, starts
from pmagent.actors.audit.detectors.code.clones import Clone, clones
from pmagent.actors.audit.detectors.code.excerpts import found
from pmagent.actors.audit.detectors.code.names import bindings, called, calls_of, inside, keyword, last_name
from pmagent.actors.audit.detectors.code.notes import Notes, Waiting
from pmagent.actors.audit.detectors.code.places import place_of
from pmagent.actors.audit.detectors.code.scopes import Frame, Function, Module, Scope
from pmagent.actors.audit.lists import Lists
from pmagent.contracts.audit_facts import Finding

_LISTS: Final = Lists(__package__, "processes")

_FAILURES: Final = _LISTS.words("failures")
_OF_PROCESSES: Final = _FAILURES - {"Exception", "OSError", "FileNotFoundError", "PermissionError", "TimeoutError"}
_MAKING: Final = frozenset({"tempfile.TemporaryDirectory", "tempfile.mkdtemp", "anyio.TemporaryDirectory"})
_PLACES: Final = (ast.Name, ast.Attribute, ast.BinOp, ast.Call)


def look(module: Module, notes: Notes) -> None:
    """Note the processes and clones of a file: where clones go, and which failures are told."""
    if module.source.role != "code":
        return
    notes.counts["processes"] += len(starts(module))
    notes.counts["clones"] += len(clones(module))
    for clone in clones(module):
        _clone(module, clone, notes)
    notes.found.extend(_handled(module))
    notes.signs.update((("temporary", *one), "") for one in _temporary_arguments(module))


def _clone(module: Module, clone: Clone, notes: Notes) -> None:
    target = clone.target if clone.target is not None else clone.folder
    place = place_of(module, target, clone.site.scope)
    if place.where != "temporary" and clone.folder is not None:
        inner = place_of(module, clone.folder, clone.site.scope)
        place = inner if inner.where == "temporary" else place
    says, sure = f"{clone.kind} clones into a temporary directory", place.sure or 0.7
    function = clone.site.scope.function
    finding = found("tools.temporary_clone", module, clone.site, says=says, confidence=sure, lines=6)
    if place.where == "temporary":
        notes.found.append(finding)
    elif place.where == "unknown" and place.param and function is not None:
        signs = tuple(("temporary", function.name, name) for name in (place.param, "*"))
        notes.waiting.append(Waiting(signs, finding))
        if _makes_temporary(module):
            says = f"{clone.kind} clones into a directory that is given; the same file makes temporary ones"
            notes.found.append(found("tools.temporary_clone", module, clone.site, says=says, confidence=0.6, lines=6))
    if clone.kind == "git" and clone.dashes and clone.url is not None:
        says = "-- stands before the URL of a git clone"
        notes.found.append(found("tools.inputs_checked", module, clone.site, says=says, confidence=0.9, lines=6))


def how_checked(module: Module, started: Start) -> tuple[str, float] | None:
    """How the failure of a process that is started by argument list is looked at, and how sure that is."""
    if started.shell is not False or (
        started.words is None and isinstance(started.command, ast.Constant | ast.JoinedStr)
    ):
        return None
    check = keyword(started.call, "check")
    catching = _catching(started.site.around(), _OF_PROCESSES)
    if started.name in RAISING:
        return f"{started.name.rpartition('.')[2]} raises", 1.0
    if isinstance(check, ast.Constant) and check.value:
        return "check=True", 1.0
    if started.name.startswith(("anyio.run_process", "trio.run_process")) and check is None:
        return "raises by default", 1.0
    if _looks_at_code(module, started.site.scope.function):
        return "its return code is looked at", 0.9
    if catching and not isinstance(check, ast.Constant):
        return f"{catching} is caught", 0.7
    if isinstance(started.site.stmt, ast.Return) and any(
        _looks_at_code(module, node) for node, _site in module.functions()
    ):
        return "its result is returned to code that looks at return codes", 0.7
    return None


def _looks_at_code(module: Module, function: Function | None) -> bool:
    key = "returncode", function
    if key not in module.results:
        looked = {node.attr for node in inside(function or module.tree) if isinstance(node, ast.Attribute)}
        module.results[key] = not looked.isdisjoint(("returncode", "check_returncode"))
    return bool(module.results[key])


def _handled(module: Module) -> Iterator[Finding]:
    """Try statements around processes or git whose handlers tell: raise, return, log, or keep what went wrong."""
    seen: set[int] = set()
    for site in (*(one.site for one in starts(module)), *(one.site for one in clones(module))):
        for stmt in _tried(site.around()):
            if id(stmt) in seen:
                continue
            for handler in stmt.handlers:
                names = _caught(handler) & _FAILURES
                if names and _tells(handler):
                    seen.add(id(stmt))
                    says = f"{', '.join(sorted(names))} is caught and told"
                    sure = 0.95 if names & _OF_PROCESSES else 0.8
                    yield found("tools.errors_handled", module, handler, says=says, confidence=sure, lines=5)
    looked = starts(module) if module.may_name("returncode") else []
    for function in dict.fromkeys(one.site.scope.function for one in looked):
        for node in inside(function or module.tree):  # ``if result.returncode != 0: raise …``
            if isinstance(node, ast.If) and any(
                isinstance(one, ast.Attribute) and one.attr == "returncode" for one in ast.walk(node.test)
            ):
                leaves = (one for stmt in (*node.body, *node.orelse) for one in ast.walk(stmt))
                if any(isinstance(one, ast.Raise | ast.Return) for one in leaves):
                    says = "a return code is looked at and its failure told"
                    yield found("tools.errors_handled", module, node, says=says, confidence=0.9, lines=4)


def _makes_temporary(module: Module) -> bool:
    calls = calls_of(module, {name.rpartition(".")[2] for name in _MAKING})
    return any(called(module, call, site) in _MAKING for call, site in calls)


def _catching(frames: Iterable[Frame], names: frozenset[str]) -> str:
    for stmt in _tried(frames):
        for handler in stmt.handlers:
            common = _caught(handler) & names
            if common:
                return min(common)
    return ""


def _tried(frames: Iterable[Frame]) -> Iterator[ast.Try]:
    """The try statements in whose body the innermost of ``frames`` stands."""
    field = ""
    for frame in frames:
        if isinstance(frame.stmt, ast.Try) and field == "body":
            yield frame.stmt
        field = frame.field


def _caught(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return {"Exception"}
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {last_name(part) for part in parts}


def _tells(handler: ast.ExceptHandler) -> bool:
    """Whether a handler does more than to pass over what it caught: it raises, calls, keeps something, or returns what
    says something."""
    for stmt in handler.body:
        for node in ast.walk(stmt):
            if isinstance(node, ast.Raise | ast.Call | ast.Assign | ast.AugAssign | ast.JoinedStr):
                return True
            if isinstance(node, ast.Return) and node.value is not None and _says_something(node.value, handler.name):
                return True
    return False


def _says_something(value: ast.expr, caught: str | None) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id == caught)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(node.value))
        for node in ast.walk(value)
    )


def _temporary_arguments(module: Module) -> Iterator[tuple[str, str]]:
    """Calls of functions with a temporary directory among what they are given: the function, and the parameter's name
    where it is said ("*": by position)."""
    if not module.imports("tempfile", "anyio", "aiofiles"):
        return
    for call, site in module.calls():
        written = last_name(call.func)
        if not written or written in {"str", "Path", "print", "join", "rmtree"}:
            continue
        if any(isinstance(one, _PLACES) and _is_temporary(module, one, site.scope) for one in call.args[:6]):
            yield written, "*"
        for given in call.keywords[:12]:
            if given.arg and _is_temporary(module, given.value, site.scope):
                yield written, given.arg


def _is_temporary(module: Module, expression: ast.expr, scope: Scope) -> bool:
    if isinstance(expression, ast.Name) and not bindings(scope, expression):
        return False
    place = place_of(module, expression, scope)
    return place.where == "temporary" and place.sure >= 0.7
