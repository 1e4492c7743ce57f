"""How scores are combined: by code or by a model, under which rules, and where the result goes; pure.

Everything here follows names: what is a score, and which function speaks the last word, can be told from code in no
other way. Confidence 0.9 where a function that is named for judging combines scores in at least two ways; 0.6 where it
is named for something more general.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Final

from pmagent.actors.audit.detectors.code.answers import Flow, answers, questions
from pmagent.actors.audit.detectors.code.excerpts import by_place, found
from pmagent.actors.audit.detectors.code.model_calls import ModelCall
from pmagent.actors.audit.detectors.code.names import dotted, inside, last_name
from pmagent.actors.audit.detectors.code.scopes import Function, Module, Scope, Site, module_of
from pmagent.actors.audit.detectors.code.source import Source
from pmagent.actors.audit.detectors.code.synthesis_rules import (
    branches,
    disagreements,
    is_score,
    rules,
    speaks_of_scores,
    spreads,
)
from pmagent.actors.audit.detectors.code.written_reports import reports
from pmagent.contracts.audit_facts import Finding

_JUDGING: Final = re.compile(
    r"justice|chief|synthes|verdict|arbit|deliberat|consens|jury|court|meta_?judge|(?:final|overall|total)_?score"
)
_GENERAL: Final = re.compile(r"aggregat|combin|resolv|weigh|scor|grad|reconcil|merge|rank|verdict|judg|final|overall")
_LAST_WORD: Final = re.compile(r"justice|chief|synthes|verdict|arbit|meta_?judge|supreme|moderator|final|aggregat")
_FOLDING: Final = frozenset({"builtins.min", "builtins.max", "builtins.sum", "builtins.sorted", "builtins.round",
                             "numpy.mean", "numpy.median", "numpy.average", "numpy.clip", "math.floor", "math.ceil",
                             "math.fsum"})  # fmt: skip
_GIVEN: Final = re.compile(r"(?:^|_)(?:score|rating|grade|points|verdict)(?:_|$)")
"""What a model's answer is asked for, when it is to decide."""


class SynthesisReader:
    """Finds justice.*; a Detector. Tests and examples are not looked at."""

    def __init__(self) -> None:
        self._found: list[Finding] = []
        self._functions = 0

    def take(self, source: Source) -> None:
        """Look at a file."""
        module = module_of(source)
        if module is None or source.role != "code":
            return
        asked = questions(module)
        judging = False
        for function, site in module.functions():
            if not speaks_of_scores(module, function) or not any(is_score(name) for name in _mentions(function)):
                continue
            self._functions += 1
            of_function = asked.get(function, [])
            combined = _combined(module, function, site) if not of_function else None
            if combined is not None:
                judging = True
                self._found.append(combined)
                self._found.extend(branches(module, function))
            self._found.extend(_decided(module, function, site, of_function))
        self._found.extend(rules(module, judging=judging))
        self._found.extend(spreads(module))
        self._found.extend(disagreements(module))
        self._found.extend(reports(module))

    def findings(self) -> Iterator[Finding]:
        """Deterministic synthesis, rules, variance, dissent, report files; a model that decides."""
        yield from by_place(self._found)

    @property
    def examined(self) -> Mapping[str, int]:
        """How many functions that speak of scores were looked at."""
        return {"score_functions": self._functions}


def _mentions(function: Function) -> set[str]:
    """The identifiers of a function, and the keys that it reads."""
    names = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    for node in inside(function):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                names.add(name)
            case ast.Subscript(slice=ast.Constant(value=str(name))):
                names.add(name)
    return names


def _context(module: Module, function: Function, site: Site) -> str:
    """The names by which a function is known: its own, its class's, and its file's where that has the last word."""
    around = site.scope.enclosing_class
    owner = around.node.name if around is not None and isinstance(around.node, ast.ClassDef) else ""
    stem = module.source.path.rpartition("/")[2].removesuffix(".py")
    return f"{function.name} {owner} {stem if _LAST_WORD.search(stem) else ''}".lower()


def _combined(module: Module, function: Function, site: Site) -> Finding | None:
    """A function that combines scores and asks no model."""
    scope = module.scopes.get(function, site.scope)
    signs = sorted({sign for node in inside(function) for sign in _sign(module, node, scope)})
    if not signs:
        return None
    if _JUDGING.search(_context(module, function, site)):
        sure = 0.9 if len(signs) >= 2 else 0.6
    elif _GENERAL.search(function.name.lower()) and len(signs) >= 2:
        sure = 0.6
    else:
        return None
    says = f"{function.name}() combines scores by {', '.join(signs)}; no model is asked in it"
    return found("justice.deterministic", module, site, says=says, confidence=sure)


def _sign(module: Module, node: ast.AST, scope: Scope) -> Iterator[str]:
    """How a node combines scores: by a function of numbers, by a comparison, by arithmetic."""
    match node:
        case ast.Call(func=func) if _speaks_of_score(node):
            name = dotted(module, func, scope)
            if name in _FOLDING or name.startswith("statistics."):
                yield name.rpartition(".")[2]
            elif last_name(func) in {"clamp", "median", "mean", "average", "clip"}:
                yield last_name(func)
        case ast.If(test=test) | ast.IfExp(test=test) if _compares_score(test):
            yield "if"
        case ast.BinOp(op=ast.Add() | ast.Mult() | ast.Div()) if _speaks_of_score(node):
            yield "arithmetic"


def _speaks_of_score(node: ast.AST) -> bool:
    for one in _some(node):
        match one:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)) if is_score(name[:80]):
                return True
    return False


def _compares_score(test: ast.expr) -> bool:
    return any(isinstance(one, ast.Compare) and _speaks_of_score(one) for one in _some(test))


def _some(node: ast.AST, most: int = 200) -> Iterator[ast.AST]:
    """Its nodes, a bounded number of them: expressions of foreign code nest as they like."""
    for number, one in enumerate(ast.walk(node)):
        if number >= most:
            return
        yield one


def _decided(module: Module, function: Function, site: Site, asked_here: list[ModelCall]) -> Iterator[Finding]:
    """A function with the last word that takes a score from a model's answer."""
    if not asked_here or not _LAST_WORD.search(_context(module, function, site)):
        return
    flow = answers(function, asked_here)
    folds = any(_folds_score(module, node, site) for node in inside(function))
    for node in sorted(
        (node for node in inside(function) if isinstance(node, ast.Attribute | ast.Subscript | ast.Assign)),
        key=lambda node: (node.lineno, node.col_offset),
    ):
        asked = _taken(node, flow)
        if asked is not None:
            says = f"{function.name}() takes a score from the answer to line {asked.call.lineno}"
            sure = round(min(asked.sure, 0.5 if folds else 0.85), 2)
            yield found("justice.model_decides", module, node, says=says, confidence=sure, lines=4)
            return


def _folds_score(module: Module, node: ast.AST, site: Site) -> bool:
    return (
        isinstance(node, ast.Call)
        and dotted(module, node.func, site.scope) in {"builtins.min", "builtins.max", "statistics.median"}
        and _speaks_of_score(node)
    )


def _taken(node: ast.AST, flow: Flow[ModelCall]) -> ModelCall | None:
    match node:
        case ast.Attribute(value=value, attr=name) if _GIVEN.search(name.lower()):
            return flow.source(value)
        case ast.Subscript(value=value, slice=ast.Constant(value=str(name))) if _GIVEN.search(name.lower()):
            return flow.source(value)
        case ast.Assign(targets=[target], value=ast.Call() as value) if last_name(target).lower().endswith("score"):
            return flow.source(value)
    return None
