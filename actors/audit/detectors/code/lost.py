"""Files that are overwritten, and results that are none; pure. For values that reach nobody see ``arrivals``.

- A **file** is overwritten where a loop writes to a path that no name of the loop is part of.
- A **canned** result is a constant text that is written as a file, or a copy of a file that came with the program.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from pmagent.actors.audit.detectors.code.excerpts import found
from pmagent.actors.audit.detectors.code.names import (
    argument,
    bindings,
    called,
    calls_of,
    parameters,
    walk,
)
from pmagent.actors.audit.detectors.code.notes import Notes, Waiting
from pmagent.actors.audit.detectors.code.scopes import Module, Scope, Site
from pmagent.contracts.audit_facts import Finding

_OPENING: Final = frozenset(("builtins.open", "io.open", "codecs.open"))
_COPYING: Final = frozenset(("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.move"))
_DATA: Final = re.compile(r"[\w./-]+\.(?:json|jsonl|csv|md|txt|pdf|xlsx|html)")
_TEXT_MIN: Final = 20
"""A shorter constant is a mark or a header, and no result."""
_SCORED: Final = re.compile(r"(?:score|grade|rating|verdict|mark)\W.*\d", re.IGNORECASE | re.DOTALL)


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
    """The loops around; the one in whose own line something stands is none, for that is looked over once."""
    return [one.stmt for one in site.around() if isinstance(one.stmt, ast.For | ast.AsyncFor) and one is not site.frame]


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
