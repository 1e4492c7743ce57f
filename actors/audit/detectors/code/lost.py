"""Values that are lost though something reads code for them: overwritten, made of constants, read by nobody; pure.

- A **file** is overwritten where a loop writes to a path that no name of the loop is part of.
- A **canned** result is a constant text that is written as a file, or a copy of a file that came with the program.
- A **key** of a state is lost that nobody reads, where nobody is given the whole state.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator
from typing import Final

from pmagent.actors.audit.detectors.code.answers import questions
from pmagent.actors.audit.detectors.code.excerpts import found
from pmagent.actors.audit.detectors.code.names import (
    argument,
    bindings,
    called,
    calls_of,
    last_name,
    parameters,
    walk,
)
from pmagent.actors.audit.detectors.code.notes import Notes, Waiting
from pmagent.actors.audit.detectors.code.scopes import Function, Module, Scope, Site
from pmagent.contracts.audit_facts import Finding

_OPENING: Final = frozenset(("builtins.open", "io.open", "codecs.open"))
_COPYING: Final = frozenset(("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.move"))
_DATA: Final = re.compile(r"[\w./-]+\.(?:json|jsonl|csv|md|txt|pdf|xlsx|html)")
_TEXT_MIN: Final = 20
"""A shorter constant is a mark or a header, and no result."""
_SCORED: Final = re.compile(r"(?:score|grade|rating|verdict|mark)\W.*\d", re.IGNORECASE | re.DOTALL)
_INVOKING: Final = frozenset(("invoke", "ainvoke"))
_STREAMING: Final = frozenset(("stream", "astream", "astream_events", "batch", "abatch", "get_state", "update_state"))
_STATE: Final = "state"
_WHOLE: Final = frozenset(("items", "values", "model_dump", "model_dump_json", "dict", "json", "copy"))


def look(module: Module, notes: Notes) -> None:
    """Note what a file loses."""
    if module.source.role != "code":
        return
    notes.waiting.extend(_repeated(module, notes))
    notes.found.extend(_canned(module))


# --- files and keys that are overwritten ---------------------------------------------------------------------------


def _repeated(module: Module, notes: Notes) -> Iterator[Waiting]:
    """Files that each turn of a loop writes anew, here or by a function that is called there."""
    for call, site in calls_of(module, ("open", "write_text", "write_bytes", "to_csv", "to_json")):
        target = _target(module, call, site)
        if target is None:
            continue
        names = {node.id for node in walk(target) if isinstance(node, ast.Name)}
        loops = _loops(site)
        if loops and names.isdisjoint(_varying(loops)):
            says = f"each turn of the loop of line {loops[0].lineno} overwrites this file"
            notes.found.append(found("outcome.unused", module, site, says=says, confidence=0.85, lines=3))
        function = site.scope.function
        if function is not None and not loops and isinstance(target, ast.Constant):
            notes.signs["overwrites", function.name, ""] = ast.unparse(target)
    for call, site in module.calls():
        if type(call.func) is ast.Name and _loops(site) and site.scope.lookup(call.func.id) is not None:
            finding = found("outcome.unused", module, site, says="called in a loop", confidence=0.8, lines=3)
            yield Waiting((("overwrites", call.func.id, ""),), finding, "each turn overwrites {}")


def _target(module: Module, call: ast.Call, site: Site) -> ast.expr | None:
    """The path that a call writes from the beginning."""
    if called(module, call, site) in _OPENING and call.args:
        mode = argument(call, 1, "mode")
        return call.args[0] if isinstance(mode, ast.Constant) and str(mode.value)[:1] in ("w", "x") else None
    if not isinstance(call.func, ast.Attribute) or call.func.attr == "open":
        return None
    if call.func.attr in ("write_text", "write_bytes"):
        return call.func.value
    appending = argument(call, 99, "mode")
    return argument(call, 0, "path_or_buf") if appending is None else None


def _loops(site: Site) -> list[ast.For | ast.AsyncFor]:
    return [one.stmt for one in site.around() if isinstance(one.stmt, ast.For | ast.AsyncFor)]


def _varying(loops: list[ast.For | ast.AsyncFor]) -> set[str]:
    """Names that can have another value in each turn."""
    return {
        node.id for loop in loops for node in ast.walk(loop)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }  # fmt: skip


# --- results that are none -----------------------------------------------------------------------------------------


def _canned(module: Module) -> Iterator[Finding]:
    """Constant texts that are written as whole files by who is given something, and copies of what was there."""
    for call, site in calls_of(module, ("write_text", *(name.rpartition(".")[2] for name in _COPYING))):
        if called(module, call, site) in _COPYING and call.args:
            texts = [node.value for node in walk(call.args[0]) if isinstance(node, ast.Constant)]
            if any(isinstance(text, str) and _DATA.fullmatch(text) for text in texts):
                says = "the result is a copy of a file that was there before"
                yield found("outcome.constant", module, site, says=says, confidence=0.75, lines=3)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "write_text" and call.args:
            text, function = _constant(call.args[0], site.scope), site.scope.function
            names = [node.value for node in walk(call.func.value) if isinstance(node, ast.Constant)]
            told = any(isinstance(name, str) and _DATA.fullmatch(name) for name in names)
            if told and len(text) >= _TEXT_MIN and function is not None and parameters(function):
                says = "the text that is written is a constant"
                yield found("outcome.constant", module, site, says=says, confidence=0.8, lines=3)
                if _SCORED.search(text):
                    yield found("justice.constant", module, site, says=says, confidence=0.9, lines=3)


def _constant(value: ast.expr, scope: Scope) -> str:
    """The constant text that an expression surely is; "" of any other."""
    if isinstance(value, ast.Name):
        known = bindings(scope, value)
        values = [one.value for one in known if one.kind == "value"]
        if len(known) != 1 or not values or values[0] is None:
            return ""
        value = values[0]
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


# --- over all files ------------------------------------------------------------------------------------------------


class LossReader:
    """Is given every Python file, then says which names of modules and keys of a state nobody reads; tests read
    nothing."""

    def __init__(self) -> None:
        self._functions: set[str] = set()
        self._loaded: set[str] = set()
        self._globals: list[tuple[str, str, int]] = []
        self._keys: set[str] = set()
        self._whole = set[tuple[str, str]]()
        self._returning = set(_INVOKING) | {_STATE}
        self._invoked = False

    def take(self, module: Module) -> None:
        """Look at a file that ships."""
        self._functions.update(one.name for one, _ in module.functions())
        for heard in module.mentions.values():
            self._loaded |= heard.read
            self._keys |= heard.attributes
            self._invoked = self._invoked or not heard.attributes.isdisjoint(_INVOKING)
        self._keys |= module.texts
        for stmt in module.tree.body:
            match stmt:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call()) if not name.startswith("__"):
                    self._globals.append((name, module.source.path, stmt.lineno))
        if module.may_name(*_RUNNING):
            self._take_states(module)

    def _take_states(self, module: Module) -> None:
        """Follow the state that a run gave back, and the one that a node is given."""
        asked, states = _asked(module), _states(module)
        holding = {name for names in states.values() for name in names}

        def take(one: ast.AST, site: Site, target: str) -> None:
            if type(one) is ast.Name and one.id in holding and not isinstance(body := _body(site), ast.ClassDef):
                self._take_whole(states.get(body, {}).get(one.id, ()), target)

        def run(one: ast.AST, site: Site, target: str) -> None:
            if _is_run(one, asked) and not isinstance(_body(site), ast.ClassDef):
                self._take_whole(_INVOKING, target)

        for call, site in module.calls():
            name = last_name(call.func)
            if name in _WHOLE and isinstance(call.func, ast.Attribute):
                take(call.func.value, site, "*")
            if name in _STREAMING and not isinstance(_body(site), ast.ClassDef):
                self._take_whole(_INVOKING, "*")
            for one in call.args:
                (take if type(one) is ast.Name else run)(one, site, name if name != "run" else "")
            for given in call.keywords:
                if given.arg is None:
                    take(given.value, site, "*")
        for site in module.sites(ast.FormattedValue):
            take(getattr(site.node, "value", site.node), site, "*")
        returns = (site for site in module.sites(ast.Return) if _is_run(getattr(site.node, "value", None), asked))
        self._returning.update(body.name for body in map(_body, returns) if isinstance(body, Function))

    def _take_whole(self, sources: Iterable[str], target: str) -> None:
        """Somebody is given the whole of what came from one of these functions."""
        if target:
            self._whole.update((source, target) for source in sources)

    def unread_names(self) -> Iterator[tuple[str, str, int]]:
        """Names that a module gives a computed value, and that no code reads: name, path and line."""
        yield from (one for one in self._globals if one[0] not in self._loaded | self._keys)

    def reads(self, key: str) -> bool:
        """Whether code reads this key of a state, or may do so with a whole state."""
        taken = {target for source, target in self._whole if source in self._returning}
        return key in self._keys or not self._invoked or not taken <= self._functions


_RUNNING: Final = ("invoke", "state", "State", "stream", "batch")
"""A file without any of these words neither runs a graph nor holds its state."""


def _body(site: Site) -> Function | ast.ClassDef | None:
    """The function or class of which something is a part, decorators, defaults and bases included; None: the module."""
    if site.frame is not None and isinstance(site.frame.stmt, Function | ast.ClassDef):
        return site.frame.stmt
    scope: Scope | None = site.scope
    while scope is not None:
        if isinstance(scope.node, Function | ast.ClassDef):
            return scope.node
        scope = scope.parent
    return None


def _is_run(value: ast.AST | None, asked: Container[int]) -> bool:
    """Whether a value is what a run gives back of something that is no model."""
    while isinstance(value, ast.Await):
        value = value.value
    return isinstance(value, ast.Call) and last_name(value.func) in _INVOKING and id(value) not in asked


def _states(module: Module) -> dict[Function | None, dict[str, set[str]]]:
    """By function (None: the module's own code), names that may hold a state, and the functions from which it may have
    come: what a run gave back, and the parameter of a node."""
    asked = _asked(module)
    found: dict[Function | None, dict[str, set[str]]] = {}
    for call, site in module.calls():
        match site.stmt:
            case ast.Assign(targets=[ast.Name(id=name)]) if id(call) not in asked and not site.scope.is_class:
                found.setdefault(site.scope.function, {}).setdefault(name, set()).add(last_name(call.func))
    for function, _ in module.functions():
        first = next((one for one in parameters(function) if one.arg != "self"), None)
        if first is not None and (first.arg == "state" or last_name(first.annotation).endswith("State")):
            found.setdefault(function, {})[first.arg] = {_STATE}
    return found


def _asked(module: Module) -> set[int]:
    """The calls that ask a model."""
    return {id(one.call) for several in questions(module).values() for one in several}
