"""The meanings of names in a Python file: scopes, and how each kind of node binds names in them; pure."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, Protocol

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Importing(Protocol):
    """A file's ``imported`` names, and the modules from which it imports everything."""

    imported: set[str]
    stars: list[str]


class Binding(NamedTuple):
    """A place where a name gets a meaning. ``value``: the expression it is bound to (of a loop: what is looped over, of
    a with statement: the context manager), to be read in ``scope``. ``dotted``: of an import, what it imports."""

    kind: Literal["import", "value", "augmented", "with", "loop", "param", "function", "class", "other"]
    node: ast.AST
    scope: Scope
    value: ast.expr | None = None
    dotted: str = ""

    @property
    def line(self) -> int:
        """Where it stands."""
        return getattr(self.node, "lineno", 0)


class Scope:
    """A module, class, function or lambda. ``attributes``, of a class: what its methods assign to ``self``, and what
    its body binds. ``returned``, of a function: what it returns or yields."""

    __slots__ = ("attributes", "bindings", "elsewhere", "node", "parent", "returned")

    def __init__(self, node: ast.AST, parent: Scope | None) -> None:
        self.node = node
        self.parent = parent
        self.bindings: dict[str, list[Binding]] = {}
        self.attributes: dict[str, list[Binding]] = {}
        self.elsewhere: set[str] = set()  # declared global or nonlocal here
        self.returned: list[ast.expr] = []

    @property
    def is_class(self) -> bool:
        """Whether names bound here are seen by the body of the class only."""
        return isinstance(self.node, ast.ClassDef)

    @property
    def function(self) -> Function | None:
        """The nearest function around, or this one."""
        scope: Scope | None = self
        while scope is not None and not isinstance(scope.node, Function):
            scope = scope.parent
        return None if scope is None or not isinstance(scope.node, Function) else scope.node

    @property
    def enclosing_class(self) -> Scope | None:
        """The nearest class around, or this one."""
        scope: Scope | None = self
        while scope is not None and not scope.is_class:
            scope = scope.parent
        return scope

    def bind(self, name: str, binding: Binding) -> None:
        """Add a meaning of ``name``, where Python would bind it."""
        home = self
        if name in self.elsewhere:
            while home.parent is not None:
                home = home.parent
        home.bindings.setdefault(name, []).append(binding)
        if home.is_class:
            home.attributes.setdefault(name, []).append(binding)

    def lookup(self, name: str) -> tuple[Scope, list[Binding]] | None:
        """Where ``name`` is bound as it is seen from here, and to what; None: a builtin, or nothing known."""
        scope: Scope | None = self
        first = True
        while scope is not None:
            if name in scope.bindings and (first or not scope.is_class):
                return scope, scope.bindings[name]
            first = False
            scope = scope.parent
        return None


def bind_arguments(arguments: ast.arguments, scope: Scope) -> None:
    """Bind the parameters of a function or lambda in its ``scope``."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    for argument, default in zip(positional, [*defaults, *arguments.defaults], strict=False):
        scope.bind(argument.arg, Binding("param", argument, scope.parent or scope, default))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=False):
        scope.bind(argument.arg, Binding("param", argument, scope.parent or scope, default))
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            scope.bind(rest.arg, Binding("param", rest, scope))


def _bind_assign(_module: Importing, node: ast.AST, scope: Scope) -> None:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                _bind_target(target, "value", value, node, scope)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            _bind_target(target, "value", value, node, scope)
        case ast.AugAssign(target=target, value=value):
            _bind_target(target, "augmented", value, node, scope)


def _bind_loop(_module: Importing, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.For | ast.AsyncFor | ast.comprehension)
    _bind_target(node.target, "loop", node.iter, node.target, scope)


def _bind_with(_module: Importing, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.withitem)
    if node.optional_vars is not None:
        _bind_target(node.optional_vars, "with", node.context_expr, node.optional_vars, scope)


def _bind_name(_module: Importing, node: ast.AST, scope: Scope) -> None:
    """Bind the name that a statement or pattern itself introduces."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            scope.bind(name, Binding("function", node, scope))
        case ast.ClassDef(name=name):
            scope.bind(name, Binding("class", node, scope))
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            scope.bind(name, Binding("other", node, scope))


def _bind_elsewhere(_module: Importing, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.Global | ast.Nonlocal)
    scope.elsewhere.update(node.names)


def _bind_returned(_module: Importing, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.Return | ast.Yield)
    if node.value is not None:
        scope.returned.append(node.value)


def _bind_import(module: Importing, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.Import | ast.ImportFrom)
    if isinstance(node, ast.Import):
        for alias in node.names:
            module.imported.add(alias.name)
            name = alias.asname or alias.name.partition(".")[0]
            dotted = alias.name if alias.asname else name
            scope.bind(name, Binding("import", node, scope, dotted=dotted))
        return
    base = "." * node.level + (node.module or "")
    module.imported.add(base)
    for alias in node.names:
        if alias.name == "*":
            module.stars.append(base)
            continue
        dotted = f"{base}.{alias.name}" if base.strip(".") else f"{base}{alias.name}"
        module.imported.add(dotted)
        scope.bind(alias.asname or alias.name, Binding("import", node, scope, dotted=dotted))


def _bind_target(
    target: ast.expr, kind: Literal["value", "augmented", "loop", "with"], value: ast.expr, node: ast.AST, scope: Scope
) -> None:
    """Bind what stands left of an assignment; ``a, b = x, y`` one by one where both sides are written out."""
    todo: list[tuple[ast.expr, ast.expr, Literal["value", "augmented", "loop", "with", "other"]]] = [
        (target, value, kind)
    ]
    while todo:
        left, right, how = todo.pop()
        match left:
            case ast.Name(id=name):
                scope.bind(name, Binding(how, node, scope, right))
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                around = scope.enclosing_class
                if around is not None and scope is not around:
                    around.attributes.setdefault(name, []).append(Binding(how, node, scope, right))
            case ast.Starred(value=inner):
                todo.append((inner, right, "other"))
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                values = right.elts if isinstance(right, ast.Tuple | ast.List) and how == "value" else []
                if len(values) == len(parts) and not any(isinstance(one, ast.Starred) for one in [*parts, *values]):
                    todo.extend(zip(reversed(parts), reversed(values), ["value"] * len(parts), strict=True))
                else:
                    todo.extend((part, right, "loop" if how == "loop" else "other") for part in reversed(parts))


BINDERS: Final[dict[type[ast.AST], Callable[[Importing, ast.AST, Scope], None]]] = {
    **dict.fromkeys((ast.Import, ast.ImportFrom), _bind_import),
    **dict.fromkeys((ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.AugAssign), _bind_assign),
    **dict.fromkeys((ast.For, ast.AsyncFor, ast.comprehension), _bind_loop),
    **dict.fromkeys(
        (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar), _bind_name
    ),
    **dict.fromkeys((ast.Global, ast.Nonlocal), _bind_elsewhere),
    **dict.fromkeys((ast.Return, ast.Yield), _bind_returned),
    ast.withitem: _bind_with,
}
"""How each kind of node gives names a meaning."""
