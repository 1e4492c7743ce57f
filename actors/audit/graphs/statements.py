"""The effects of the audited program's statements on its names and graphs, kind by kind; pure. See ``run``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from pmagent.actors.audit.graphs.arguments import Arguments
from pmagent.actors.audit.graphs.calls import call
from pmagent.actors.audit.graphs.members import bind_class
from pmagent.actors.audit.graphs.methods import list_method, removed, update
from pmagent.actors.audit.graphs.prebuilt import workflow
from pmagent.actors.audit.graphs.pure import added, truth
from pmagent.actors.audit.graphs.scope import Scope
from pmagent.actors.audit.graphs.values import Const, External, Func, Imported, Map, Module, Seq, Thing, one_of

if TYPE_CHECKING:
    from pmagent.actors.audit.graphs.run import Run

Flow = Literal["on", "ends", "breaks", "next"]
"""The way on behind a statement: the next one, nothing more of this function, of this loop, of this round."""

RETURNS_MAX: Final = 4_000


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
        list_method(before, "extend", [value], {}, sure=run.sure(before))
    elif isinstance(before, Map):
        update(before, value, sure=run.sure(before))
    else:
        run.assign(statement.target, added(statement.op, before, value), scope)
    return "on"


def _delete(run: Run, statement: ast.Delete, scope: Scope) -> Flow:
    for target in statement.targets:
        if isinstance(target, ast.Subscript):
            owner = run.value(target.value, scope)
            if isinstance(owner, Seq | Map):
                removed(owner, run.value(target.slice, scope), sure=run.sure(owner))
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
    items = run.value(statement.iter, scope)
    left, run.left = run.left, set()
    _, flow = run.rounds(statement.target, items, scope, _follow(run, statement.body, scope))
    run.left = (run.left - {"next", "breaks"}) | left
    if flow != "on":
        return "ends" if flow == "ends" else "on"
    return run.block(statement.orelse, scope)


def _while(run: Run, statement: ast.While, scope: Scope) -> Flow:
    if truth(run.value(statement.test, scope)) is not False:
        left, run.left = run.left, set()
        run.perhaps(_follow(run, statement.body, scope), scope)
        run.left = (run.left - {"next", "breaks"}) | left
    return run.block(statement.orelse, scope)


def _with(run: Run, statement: ast.With | ast.AsyncWith, scope: Scope) -> Flow:
    for item in statement.items:
        value = run.value(item.context_expr, scope)
        if isinstance(value, Seq):  # what a generator yields that is a context
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
        handlers = [_follow(run, handler.body, scope) for handler in statement.handlers]
        flow = run.ways([body, *handlers], scope, midway=True)
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


STATEMENTS: Final[dict[type[ast.stmt], Callable[[Run, Any, Scope], Flow]]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Delete: _delete,
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
}
"""The handler of each kind of statement; those that are not here bind and add nothing."""
