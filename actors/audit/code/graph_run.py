"""Follows the statements of the audited program as far as its graphs depend on them, without running any of it; pure.

A partial evaluation: what cannot be known is unknown, a condition that cannot be decided goes both ways (what is added
in one of them remembers that, see ``Arms``), a loop over something known is followed item by item. Steps, depth and the
number of rounds are bounded, so that the time is in proportion to the length of what is read.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Final, Literal

from actors.audit.code.graph_arguments import Arguments
from actors.audit.code.graph_calls import call
from actors.audit.code.graph_evaluate import evaluate
from actors.audit.code.graph_members import bind_class, store_attribute, store_item
from actors.audit.code.graph_prebuilt import workflow
from actors.audit.code.graph_program import Program
from actors.audit.code.graph_pure import added, extend, items_of, merge, truth
from actors.audit.code.graph_scope import Fork, Scope
from actors.audit.code.graph_values import (
    UNKNOWN,
    Arms,
    Builder,
    Compiled,
    Const,
    External,
    Func,
    Imported,
    Inst,
    Map,
    Module,
    OneOf,
    Seq,
    Thing,
    Value,
    one_of,
)

Flow = Literal["on", "ends", "breaks", "next"]
"""What happens behind a statement: the next one, nothing more of this function, of this loop, of this round."""

DEPTH_MAX: Final = 150
ROUNDS_MAX: Final = 256
RETURNS_MAX: Final = 4_000
STEPS_MIN: Final = 400
"""So many steps there are always."""


class Run:
    """A walk through the program; holds what has been found."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.builders: list[Builder] = []
        self.instances: dict[ast.ClassDef, Inst] = {}
        self.entered: set[ast.AST] = set()
        self.entered_on: set[tuple[ast.AST, ast.ClassDef]] = set()
        self.stack: list[Func] = []
        self.defined: list[Func] = []
        self.arms: Arms = ()
        self.steps = 0
        self.purse = 0
        self.exhausted = False
        self._depth = 0
        self._conditions = 0
        self._modules: dict[str, Scope] = {}

    def within(self, steps: int, work: Callable[[], Value]) -> tuple[Value, bool]:
        """Follow something for so many steps at most, as long as the purse (the steps for all of it) lasts; whether
        they were too few comes with the result."""
        outer, before = self.steps, self.exhausted
        allowed = self.steps = max(min(steps, self.purse), STEPS_MIN)
        self.exhausted = False
        result = work()
        self.purse -= allowed - max(self.steps, 0)
        cut, self.exhausted, self.steps = self.exhausted, before, outer
        return result, cut

    def module(self, path: str) -> Scope:
        """The names of a module, as its statements leave them. In a circle of imports: as far as they have come."""
        if (scope := self._modules.get(path)) is not None:
            return scope
        scope = self._modules[path] = Scope(path, "module")
        if (tree := self.program.tree(path)) is not None:
            arms, self.arms = self.arms, ()
            stack, self.stack = self.stack, []
            scope.bind("__name__", Const("__main__"))
            self.block(tree.body, scope)
            self.arms, self.stack = arms, stack
        return scope

    def member(self, path: str, name: str) -> Value:
        """What a name of a module or of a package stands for."""
        if not path.endswith("/") and (value := self.module(path).names.get(name)) is not None:
            return self.settled(value)
        inside = self.program.inside(path, name)
        return UNKNOWN if inside is None else Module(inside)

    def settled(self, value: Value) -> Value:
        """The value itself, where it is one that another module has."""
        if isinstance(value, Imported):
            if self._depth >= DEPTH_MAX:
                return UNKNOWN
            self._depth += 1
            found = self.member(value.path, value.name)
            self._depth -= 1
            return found
        if isinstance(value, OneOf) and any(isinstance(option, Imported) for option in value.options):
            return one_of(map(self.settled, value.options))
        return value

    def value(self, node: ast.expr, scope: Scope) -> Value:
        """What an expression stands for; what it does to graphs is done."""
        self.steps -= 1
        if self.steps < 0:
            self.exhausted = True
            return UNKNOWN
        if self._depth >= DEPTH_MAX:
            return UNKNOWN
        self._depth += 1
        try:
            return evaluate(self, node, scope)
        finally:
            self._depth -= 1

    def block(self, statements: Sequence[ast.stmt], scope: Scope) -> Flow:
        """Follow statements one after the other."""
        if self._depth >= DEPTH_MAX:
            return "on"
        arms = self.arms
        self._depth += 1
        flow: Flow = "on"
        for statement in statements:
            self.steps -= 1
            if self.steps < 0:
                self.exhausted = True
                break
            if (follow := _STATEMENTS.get(type(statement))) is not None:
                flow = follow(self, statement, scope)
            if flow != "on":
                break
        self._depth -= 1
        self.arms = arms
        return flow

    def condition(self) -> int:
        """A number for a condition that was not there before."""
        self._conditions += 1
        return self._conditions

    def ways(self, bodies: Sequence[Callable[[], Flow]], scope: Scope) -> Flow:
        """Go several ways, of which the program takes one. Behind it, what follows belongs to the ways that go on; if
        just one does, it remembers that (until the block ends that this stands in)."""
        condition, arms = self.condition(), self.arms
        fork = Fork(scope)
        flows: list[Flow] = []
        for number, body in enumerate(bodies):
            fork.begin()
            self.arms = (*arms, (condition, number))
            flow = body()
            flows.append(flow)
            fork.end(goes_on=flow == "on")
        fork.join()
        self.arms = arms
        if "on" not in flows:
            return flows[0] if len(set(flows)) == 1 else "next"
        if flows.count("on") == 1 and len(flows) > 1:
            self.arms = (*arms, (condition, flows.index("on")))
        return "on"

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Bind a value to a target of an assignment."""
        if isinstance(target, ast.Name):
            _named(value, target.id)
            scope.bind(target.id, value)
        elif isinstance(target, ast.Attribute):
            _named(value, target.attr)
            store_attribute(self.value(target.value, scope), target.attr, value, merge=bool(self.arms))
        elif isinstance(target, ast.Subscript):
            store_item(self.value(target.value, scope), self.value(target.slice, scope), value)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value, scope)
        elif isinstance(target, ast.Tuple | ast.List):
            for part, item in zip(target.elts, _unpacked(target.elts, value), strict=True):
                self.assign(part, item, scope)

    def rounds(self, target: ast.expr, items: Value, scope: Scope, body: Callable[[], Flow]) -> bool:
        """Follow a loop: once for each item that is known, else once with an unknown one. Returns whether the items
        are all known."""
        found = items_of(items)
        if found is None or found.open:
            known = found.items if found is not None else []
            for item in known[:ROUNDS_MAX] or [UNKNOWN]:
                self.assign(target, item, scope)
                body()
            return False
        for item in found.items[:ROUNDS_MAX]:
            self.assign(target, item, scope)
            if body() in ("breaks", "ends") or self.exhausted:
                break
        return len(found.items) <= ROUNDS_MAX


def _unpacked(parts: Sequence[ast.expr], value: Value) -> list[Value]:
    """What each of several targets gets."""
    found = items_of(value)
    if found is None or found.open:
        return [one_of(found.items) if found is not None and found.items else UNKNOWN] * len(parts)
    star = next((at for at, part in enumerate(parts) if isinstance(part, ast.Starred)), None)
    if star is None:
        return found.items if len(found.items) == len(parts) else [UNKNOWN] * len(parts)
    behind = len(parts) - star - 1
    if len(found.items) < star + behind:
        return [UNKNOWN] * len(parts)
    end = len(found.items) - behind
    return [*found.items[:star], Seq(found.items[star:end]), *found.items[end:]]


def _named(value: Value, name: str) -> None:
    """A graph is called by the name of what holds it; the compiled one's name counts more."""
    if isinstance(value, Compiled):
        if not value.builder.named:
            value.builder.name = name
    elif isinstance(value, Builder) and not value.name:
        value.name = name


def _expression(run: Run, statement: ast.Expr, scope: Scope) -> Flow:
    if not isinstance(statement.value, ast.Constant):
        run.value(statement.value, scope)
    return "on"


def _assign(run: Run, statement: ast.Assign, scope: Scope) -> Flow:
    value = run.value(statement.value, scope)
    for target in statement.targets:
        run.assign(target, value, scope)
    return "on"


def _annotated(run: Run, statement: ast.AnnAssign, scope: Scope) -> Flow:
    if statement.value is not None:
        run.assign(statement.target, run.value(statement.value, scope), scope)
    return "on"


def _augmented(run: Run, statement: ast.AugAssign, scope: Scope) -> Flow:
    value = run.value(statement.value, scope)
    before = run.value(statement.target, scope)
    if isinstance(before, Seq) and isinstance(statement.op, ast.Add):
        extend(before, value)
    elif isinstance(before, Map):
        merge(before, value)
    else:
        run.assign(statement.target, added(statement.op, before, value), scope)
    return "on"


def _return(run: Run, statement: ast.Return, scope: Scope) -> Flow:
    value = run.value(statement.value, scope) if statement.value is not None else Const(None)
    if len(scope.returned) < RETURNS_MAX:
        scope.returned.append(value)
    return "ends"


def _raise(run: Run, statement: ast.Raise, scope: Scope) -> Flow:
    if statement.exc is not None:
        run.value(statement.exc, scope)
    return "ends"


def _if(run: Run, statement: ast.If, scope: Scope) -> Flow:
    bodies: list[Callable[[], Flow]] = []
    orelse: Sequence[ast.stmt] = [statement]
    while len(orelse) == 1 and isinstance(orelse[0], ast.If):
        one = orelse[0]
        decided = truth(run.value(one.test, scope))
        if decided is False:
            orelse = one.orelse
            continue
        bodies.append(_follow(run, one.body, scope))
        if decided:
            return bodies[0]() if len(bodies) == 1 else run.ways(bodies, scope)
        orelse = one.orelse
    if not bodies:
        return run.block(orelse, scope)
    return run.ways([*bodies, _follow(run, orelse, scope)], scope)


def _follow(run: Run, body: Sequence[ast.stmt], scope: Scope) -> Callable[[], Flow]:
    return lambda: run.block(body, scope)


def _for(run: Run, statement: ast.For | ast.AsyncFor, scope: Scope) -> Flow:
    run.rounds(statement.target, run.value(statement.iter, scope), scope, _follow(run, statement.body, scope))
    return run.block(statement.orelse, scope) if statement.orelse else "on"


def _while(run: Run, statement: ast.While, scope: Scope) -> Flow:
    if truth(run.value(statement.test, scope)) is not False:
        run.block(statement.body, scope)
    return "on"


def _with(run: Run, statement: ast.With | ast.AsyncWith, scope: Scope) -> Flow:
    for item in statement.items:
        value = run.value(item.context_expr, scope)
        if isinstance(value, Seq) and value.open:
            value = one_of(value.items)
        if item.optional_vars is not None:
            run.assign(item.optional_vars, value, scope)
    return run.block(statement.body, scope)


def _try(run: Run, statement: ast.Try, scope: Scope) -> Flow:
    def body() -> Flow:
        flow = run.block(statement.body, scope)
        return run.block(statement.orelse, scope) if flow == "on" else flow

    if statement.handlers:
        arms = run.arms
        flow = run.ways([body, *(_follow(run, handler.body, scope) for handler in statement.handlers)], scope)
        run.arms = arms
    else:
        flow = body()
    last = run.block(statement.finalbody, scope)
    return flow if last == "on" else last


def _match(run: Run, statement: ast.Match, scope: Scope) -> Flow:
    run.value(statement.subject, scope)
    bodies = [_follow(run, case.body, scope) for case in statement.cases]
    last = statement.cases[-1]
    whole = last.guard is None and isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
    return run.ways(bodies if whole else [*bodies, lambda: "on"], scope)


_Kind = Literal["plain", "static", "class", "property"]
_KINDS: Final[dict[str, _Kind]] = {
    "staticmethod": "static",
    "classmethod": "class",
    "property": "property",
    "cached_property": "property",
}


def _function(run: Run, statement: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Flow:
    """Bind a function. Decorators of the repository are called, for they may enter it somewhere; what they give is
    taken to be the function still."""
    kind: _Kind = "plain"
    entry = False
    made_by: list[Func] = []
    for node in reversed(statement.decorator_list):
        made = run.value(node, scope)
        whole = made.name if isinstance(made, External) else made.maker if isinstance(made, Thing) else ""
        name = whole.rpartition(".")[2]
        entry = entry or (name == "entrypoint" and whole.startswith("langgraph."))
        made_by.extend([made] if isinstance(made, Func) else [])
        kind = _KINDS.get(name, kind)
    function = Func(statement, scope, statement.name, kind=kind)
    if scope.kind == "function":
        run.defined.append(function)
    for decorator in made_by:
        call(run, decorator, Arguments([function]))
    scope.bind(statement.name, workflow(run, function) if entry else function)
    return "on"


def _class(run: Run, statement: ast.ClassDef, scope: Scope) -> Flow:
    body = Scope(scope.path, "class", scope)
    bases = [run.value(base, scope) for base in statement.bases]
    run.block(statement.body, body)
    scope.bind(statement.name, bind_class(statement, scope, body.names, bases))
    return "on"


def _import(run: Run, statement: ast.Import, scope: Scope) -> Flow:
    for alias in statement.names:
        name = alias.name if alias.asname else alias.name.partition(".")[0]
        path = run.program.locate(name, 0, scope.path)
        scope.bind(alias.asname or name, External(name) if path is None else Module(path))
    return "on"


def _import_from(run: Run, statement: ast.ImportFrom, scope: Scope) -> Flow:
    module = statement.module or ""
    path = run.program.locate(module, statement.level, scope.path)
    for alias in statement.names:
        if alias.name == "*":
            if path is not None and not path.endswith("/"):
                for name, value in list(run.module(path).names.items()):
                    if not name.startswith("_"):
                        scope.bind(name, value)
        else:
            outside = External(f"{module}.{alias.name}")
            scope.bind(alias.asname or alias.name, outside if path is None else Imported(path, alias.name))
    return "on"


def _global(_run: Run, statement: ast.Global, scope: Scope) -> Flow:
    scope.share(statement.names, scope.module)
    return "on"


def _nonlocal(_run: Run, statement: ast.Nonlocal, scope: Scope) -> Flow:
    for name in statement.names:
        scope.share([name], scope.owner_of(name))
    return "on"


def _stops(flow: Flow) -> Callable[[Run, ast.stmt, Scope], Flow]:
    return lambda _run, _statement, _scope: flow


_STATEMENTS: Final[dict[type[ast.stmt], Callable[[Run, ast.stmt, Scope], Flow]]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.TryStar: _try,
    ast.Match: _match,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.Break: _stops("breaks"),
    ast.Continue: _stops("next"),
}  # type: ignore[assignment]
