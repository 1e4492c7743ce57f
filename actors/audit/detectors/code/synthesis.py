"""How scores are combined: by code or by a model, by which rules, and where the result goes; pure.

The flow of values counts, not the names of functions: a score is an attribute, key or parameter of that name, and
whatever is computed from it. Code that folds several of them combines scores; within it

- a **cap** is ``min(score, limit)``, or a limit that is assigned where a condition holds;
- a **weight** multiplies scores, or takes one judge's score before the others';
- **facts** stand over opinions where opinions are left out that cite nothing, or nothing that was found;
- a **spread** is the highest less the lowest score, or their variance, held against a limit;
- a **dissent** is told where a text is made under a condition on the spread, or something is named for it.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from pmagent.actors.audit.detectors.code.answers import Flow, answers, questions
from pmagent.actors.audit.detectors.code.excerpts import found
from pmagent.actors.audit.detectors.code.model_calls import ModelCall
from pmagent.actors.audit.detectors.code.names import inside, last_name, parameters
from pmagent.actors.audit.detectors.code.notes import Notes
from pmagent.actors.audit.detectors.code.scopes import Function, Module, Scope
from pmagent.actors.audit.detectors.code.usage import does_nothing
from pmagent.actors.audit.detectors.code.written_reports import reports
from pmagent.actors.audit.lists import Lists
from pmagent.contracts.audit_facts import Finding

_LISTS: Final = Lists(__package__, "synthesis")

_SCORE: Final = re.compile(r"(?:^|_)(?:scores?|ratings?|grades?|points|marks?|verdicts?|votes?)(?:_|$)", re.IGNORECASE)
_WORDS: Final = ("score", "rating", "grade", "points", "mark", "verdict", "vote", "opinion", "dissent")
_SEVERAL: Final = re.compile(r"(?:^|_)(?:scores|ratings|grades|opinions|votes|verdicts|judge?ments)$", re.IGNORECASE)
_LAST_WORD: Final = re.compile(r"justice|chief|synthes|verdict|arbit|meta_?judge|supreme|final|aggregat")
_CITES: Final = re.compile(r"evidence|cite|citation|exhibit|place|source|fact|found|support|proof|ref|quote|clue")
_SPREAD: Final = re.compile(r"(?:^|_)(?:variance|spread|disagreement|divergence|range|gap|std_?dev|stdev)(?:_|$)")
_FOLDS: Final = _LISTS.words("folds")
_TELLING: Final = frozenset((
    ast.Assign, ast.Attribute, ast.AugAssign, ast.BinOp, ast.Call, ast.If, ast.IfExp, ast.Name, ast.Return,
    ast.Subscript, ast.comprehension,
))  # fmt: skip
"""Kinds of nodes that can read, fold, limit or weigh a score."""
_SCORED: Final = frozenset((ast.Attribute, ast.Subscript, ast.Call))
_APART: Final = frozenset((ast.Attribute, ast.BinOp, ast.Call, ast.Name))
_FOLDING: Final = frozenset((ast.Call, ast.AugAssign))
_RULING: Final = frozenset((ast.Attribute, ast.BinOp, ast.Call, ast.If, ast.Subscript, ast.comprehension))
_TREATING: Final = frozenset((ast.If, ast.IfExp, ast.Return))
"""Of them those that can be scores, say how far they lie apart, fold them, rule over them, treat wide spreads."""
_ORDERS: Final = (ast.Gt, ast.GtE, ast.Lt, ast.LtE)
_SHORT: Final = 4
"""A function of more statements does more than to say how far scores lie apart."""
_VARIANCES: Final = frozenset(("variance", "pvariance", "stdev", "pstdev", "std", "var", "ptp"))


def look(module: Module, notes: Notes) -> None:
    """Note how the functions of a file combine scores, or take them from a model."""
    if module.source.role != "code":
        return
    asked = questions(module)
    speaking = list(_speaking(module))
    spreading = {function.name for function in speaking if _returns_spread(module, function)}
    for function in speaking:
        one = _Combination(module, function, asked.get(function, []), spreading)
        notes.counts["score_functions"] += one.scores
        notes.found.extend(one.findings())
    notes.found.extend(reports(module))


class _Combination:
    """One function that speaks of scores."""

    def __init__(self, module: Module, function: Function, asked: list[ModelCall], spreading: set[str]) -> None:
        self._module = module
        self._function = function
        self._scope: Scope = module.scopes[function]
        self._spreading = spreading
        self.asked = asked
        nodes = [node for node in inside(function) if type(node) in _TELLING]
        scores = {id(node): "score" for node in nodes if type(node) in _SCORED and _is_score(node)}
        named = {one.arg: "score" for one in parameters(function) if _SCORE.search(one.arg)}
        self._scores: Flow[str] = Flow(function, scores, named, ever=True)
        apart = (node for node in nodes if type(node) in _APART)
        self._spreads: Flow[str] = Flow(
            function, {id(node): "spread" for node in apart if self._is_spread(node)}, ever=True
        )
        self._nodes = nodes
        self.scores = bool(scores or named)
        self._folding = [node for node in nodes if self.scores and type(node) in _FOLDING and self._folds(node)]
        self.combines = bool(self._folding)

    def findings(self) -> Iterator[Finding]:
        """The findings in the function."""
        if not self.asked:
            folds = self._folding
            if folds:
                ways = ", ".join(dict.fromkeys(last_name(getattr(one, "func", None)) or "a sum" for one in folds))
                says = f"{self._function.name}() combines scores by {ways}; no model is asked in it"
                ruled = len(set(map(ast.dump, folds))) + any(True for _ in self._ruled())
                yield self._found("justice.deterministic", self._function, says, 0.9 if ruled > 1 else 0.6)
            yield from self._ruled()
        for node in self._nodes:
            if type(node) in _TREATING:
                yield from self._apart(node)
        yield from self._decided()

    def _found(self, goal: str, node: ast.AST, says: str, sure: float) -> Finding:
        return found(goal, self._module, node, says=says, confidence=sure, lines=4)

    def is_apart(self, value: ast.expr) -> bool:
        """Whether a value says how far scores lie apart."""
        return self._spreads.source(value) is not None

    def _known(self) -> str:
        """The names by which the function is known: its own, and its class's."""
        around = self._scope.enclosing_class
        owner = around.node.name if around is not None and isinstance(around.node, ast.ClassDef) else ""
        return f"{self._function.name} {owner}".lower()

    def _folds(self, node: ast.AST) -> bool:
        match node:
            case ast.Call(func=func, args=[values, *_]) if last_name(func) in _FOLDS:
                return len(node.args) == 1 and self._scores.source(values) is not None
            case ast.AugAssign(value=value):
                return self._scores.source(value) is not None
        return False

    def _ruled(self) -> Iterator[Finding]:
        for node in self._nodes:
            if type(node) in _RULING:
                yield from self._rules(node)

    def _rules(self, node: ast.AST) -> Iterator[Finding]:
        match node:
            case ast.Call(func=ast.Name(id="min"), args=[one, other]) if not self._is_clamp(node):
                if (self._scores.source(one) is None) != (self._scores.source(other) is None):
                    yield self._found("justice.rules", node, "a cap of a score", 0.8)
            case ast.If(body=body) if any(self._limits(stmt) for stmt in body):
                yield self._found("justice.rules", node.test, "a cap of a score: a limit is assigned", 0.8)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                if (self._scores.source(left) is None) != (self._scores.source(right) is None):
                    yield self._found("justice.rules", node, "a weight of scores", 0.8)
            case ast.Attribute(value=ast.Subscript(slice=ast.Constant(value=str(judge)))) if _is_score(node):
                yield self._found("justice.rules", node, f"the score of {judge} goes before the others'", 0.7)
            case ast.Subscript(value=ast.Name(id=held), slice=ast.Constant(value=str(judge)), ctx=ast.Load()):
                if held in self._scores.names and not _SCORE.search(judge):
                    yield self._found("justice.rules", node, f"the score of {judge} goes before the others'", 0.7)
            case ast.comprehension(ifs=tests) if any(map(_asks_for_facts, tests)):
                says = "opinions are left out that rest on nothing that was found"
                yield self._found("justice.facts", tests[0], says, 0.8)

    def _limits(self, stmt: ast.stmt) -> bool:
        match stmt:
            case ast.Assign(targets=[target], value=ast.Constant(value=int() | float())):
                return self._scores.source(target) is not None or _SCORE.search(last_name(target)) is not None
        return False

    def _is_clamp(self, node: ast.AST) -> bool:
        """``max(1, min(5, score))`` keeps a score in its range."""
        return any(
            isinstance(around, ast.Call) and last_name(around.func) == "max" and node in around.args
            for around in self._nodes
        )

    def _is_spread(self, node: ast.AST) -> bool:
        """Whether a node is how far scores lie apart."""
        match node:
            case ast.BinOp(left=high, op=ast.Sub(), right=low):
                if self._scores.source(high) is None or self._scores.source(low) is None:
                    return False
                return _end(high) != _end(low) or {_end(high), _end(low)} == {""}
            case ast.Call(func=func, args=[values, *_]):
                known = last_name(func) in _VARIANCES and self._scores.source(values) is not None
                return known or (isinstance(func, ast.Name) and func.id in self._spreading)
            case ast.Attribute(attr=name) | ast.Name(id=name, ctx=ast.Load()):
                return _SPREAD.search(name.lower()) is not None
        return False

    def _apart(self, node: ast.AST) -> Iterator[Finding]:
        """The treatment of scores that lie far apart."""
        match node:
            case ast.If(test=test, body=body, orelse=[]) if does_nothing(body) and self._scores.source(test):
                says = "nothing is done where this holds of the scores"
                yield self._found("justice.without_effect", node, says, 0.9)
            case ast.If(test=test, body=body) if self._spreads.source(test) is not None:
                told = all(isinstance(stmt, ast.Expr) and any(map(_tells, ast.walk(stmt))) for stmt in body)
                says = "a wide spread of scores is only told" if told else "a wide spread of scores is treated apart"
                yield self._found("justice.variance", test, says, 0.5 if told else 0.9)
                if any(_tells(one) for stmt in body for one in ast.walk(stmt)):
                    yield self._found("justice.dissent", node, "told where the scores lie far apart", 0.8)
            case ast.IfExp(test=test, body=body) if self._spreads.source(test) is not None:
                yield self._found("justice.variance", test, "a wide spread of scores is treated apart", 0.9)
                if any(map(_tells, ast.walk(body))):
                    yield self._found("justice.dissent", node, "told where the scores lie far apart", 0.8)
            case ast.Return(value=ast.Compare(ops=[op]) as test) if isinstance(op, _ORDERS) and self.is_apart(test):
                yield self._found("justice.variance", node, "whether scores lie far apart is asked", 0.9)

    def _decided(self) -> Iterator[Finding]:
        """A score that is taken from a model's answer by who has several scores before it, or whose file combines
        them."""
        if not self.asked:
            return
        flow = answers(self._function, self.asked)
        several = self.combines or _LAST_WORD.search(self._known()) or any(map(_SEVERAL.search, _given(self._function)))
        limited = self.combines or any(True for _ in self._ruled())
        for node in self._nodes if several else ():
            match node:
                case (
                    ast.Attribute(value=value, attr=name)
                    | ast.Subscript(value=value, slice=ast.Constant(value=str(name)))
                ):
                    asked = flow.source(value) if _SCORE.search(name) else None
                case ast.Assign(targets=[target], value=value):
                    asked = flow.source(value) if _SCORE.search(last_name(target)) else None
                case _:
                    asked = None
            if asked is not None:
                says = f"{self._function.name}() takes a score from the answer to line {asked.call.lineno}"
                sure = round(min(asked.sure, 0.5 if limited else 0.85), 2)
                yield self._found("justice.model_decides", node, says, sure)
                return


def _speaking(module: Module) -> Iterator[Function]:
    """The functions whose lines speak of scores at all: most do not."""
    lines = sorted(set(_lines(module.source.text.casefold())))
    for function, _ in module.functions():
        at = bisect_left(lines, function.lineno)
        if at < len(lines) and lines[at] <= (function.end_lineno or function.lineno):
            yield function


def _lines(text: str) -> Iterator[int]:
    """The lines of a text that have one of the words; several times as fast as a pattern."""
    for word in _WORDS:
        line, place = 1, 0
        while (start := text.find(word, place)) >= 0:
            line += text.count("\n", place, start)
            yield line
            place = start + 1


def _given(function: Function) -> Iterator[str]:
    """The names of parameters, and of keys and attributes that are read."""
    yield from (one.arg for one in parameters(function))
    for node in inside(function):
        match node:
            case ast.Subscript(slice=ast.Constant(value=str(name))) | ast.Attribute(attr=name, ctx=ast.Load()):
                yield name


def _is_score(node: ast.AST) -> bool:
    match node:
        case (
            ast.Attribute(attr=name, ctx=ast.Load())
            | ast.Subscript(slice=ast.Constant(value=str(name)), ctx=ast.Load())
        ):
            return _SCORE.search(name[:80]) is not None
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(name)), *_]):
            return _SCORE.search(name[:80]) is not None
    return False


def _end(value: ast.expr) -> str:
    """Which end of a row of scores a value is: of ``max(…)`` and ``s[-1]``, of ``min(…)`` and ``s[0]``."""
    match value:
        case ast.Call(func=func):
            return last_name(func)
        case ast.Subscript(slice=ast.UnaryOp()):
            return "max"
        case ast.Subscript(slice=ast.Constant(value=0)):
            return "min"
    return ""


def _returns_spread(module: Module, function: Function) -> bool:
    """Whether a function says whether, or how far, scores lie apart."""
    if len(function.body) > _SHORT:
        return False
    one = _Combination(module, function, [], set())
    returned = module.scopes[function].returned
    return any(map(one.is_apart, returned[:8]))


def _asks_for_facts(test: ast.expr) -> bool:
    """Whether a condition is about what an opinion cites."""
    for node in ast.walk(test):
        match node:
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)) if _CITES.search(name.lower()):
                return True
    return False


def _tells(node: ast.AST) -> bool:
    """Whether a node puts a text or a table together."""
    match node:
        case ast.JoinedStr() | ast.DictComp():
            return True
        case ast.Call(func=ast.Attribute(attr="join" | "format" | "append" | "write" | "extend")):
            return True
    return False
