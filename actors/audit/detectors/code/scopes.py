"""The bindings of the names in a Python file: one walk over its tree, lexical scopes, what stands where; pure.

The walk is iterative and visits every node once, so that neither depth nor length of a foreign file matters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, wraps
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, TypeVar

from pmagent.actors.audit.detectors.code.mentions import SAYING, Mentions, rewrites
from pmagent.actors.audit.detectors.code.source import Source
from pmagent.actors.audit.detectors.code.tree import FIELD_BY_FIELD, HOLDING, STATEMENTS, below

Function = ast.FunctionDef | ast.AsyncFunctionDef

_NEW_LINE: Final = re.compile(r"\r\n|\r|\n")
_KEPT: Final = (
    ast.Call, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.ExceptHandler,
    ast.Subscript, ast.Dict, ast.Tuple, ast.Return, ast.Raise, ast.FormattedValue,
)  # fmt: skip


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


T = TypeVar("T")


class Frame(NamedTuple):
    """A statement and, in ``parent``, the one that it is part of; ``field`` says which part (body, handlers …)."""

    stmt: ast.stmt
    field: str
    parent: Frame | None

    def outward(self) -> Iterator[Frame]:
        """This statement and those around it, up to the function, class or module that they are the body of."""
        frame: Frame | None = self
        while frame is not None and not isinstance(frame.stmt, Function | ast.ClassDef):
            yield frame
            frame = frame.parent


class Site(NamedTuple):
    """A node, the scope in which its names are read, and the statement in which it stands."""

    node: ast.AST
    scope: Scope
    frame: Frame | None

    @property
    def line(self) -> int:
        """From 1."""
        return getattr(self.node, "lineno", 0)

    @property
    def stmt(self) -> ast.AST:
        """The statement in which it stands; the node itself, where there is none."""
        return self.node if self.frame is None else self.frame.stmt

    def around(self) -> Iterator[Frame]:
        """The statements around it within its function, the nearest first."""
        return iter(()) if self.frame is None else self.frame.outward()


_Group = tuple[list[Any], Scope, "Frame | None", "Frame | None", str, Mentions]


class Module:
    """A source that parsed, walked once. ``mentions``: of it and of each function; ``stars``: modules that it imports
    everything from; ``additions``: where something is put into the list of a name; ``stored``: attributes that are
    given a value; ``texts``: constant ones that may be keys; ``memo``, ``called``, ``attributes`` and ``results``: what
    was found out once for all detectors."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self.tree = tree
        self.scope = Scope(tree, None)
        self.scopes: dict[ast.AST, Scope] = {tree: self.scope}
        self.mentions: dict[ast.AST, Mentions] = {tree: Mentions()}
        self.stars: list[str] = []
        self.stored: list[ast.Attribute] = []
        self.texts: set[str] = set()
        self.imported: set[str] = set()
        self.lines = _NEW_LINE.split(source.text) if "\r" in source.text else source.text.split("\n")
        self.memo: dict[str, frozenset[str]] = {}
        self.called: dict[ast.Call, str] = {}
        self.attributes: dict[tuple[Scope, str], str] = {}
        self.results: dict[object, Any] = {}
        self._sites: dict[type[ast.AST], list[Site]] = {kind: [] for kind in _KEPT}
        _walk(self, self._sites)
        self._calls = [(site.node, site) for site in self._sites[ast.Call] if isinstance(site.node, ast.Call)]
        self.additions = _additions(self._sites[ast.Call])

    def may_name(self, *words: str) -> bool:
        """Whether an identifier of the file can be, or contain, one of ``words``: Python takes letters of other
        alphabets for them."""
        return not self.source.text.isascii() or any(word in self.source.text for word in words)

    def sites(self, *kinds: type[ast.AST]) -> Sequence[Site]:
        """All nodes of these kinds (calls, functions, classes, assignments …), in the order in which they stand."""
        if len(kinds) == 1:
            return self._sites[kinds[0]]
        if kinds not in self.results:
            found = [site for kind in kinds for site in self._sites[kind]]
            self.results[kinds] = sorted(found, key=attrgetter("node.lineno", "node.col_offset"))
        together: list[Site] = self.results[kinds]
        return together

    def calls(self) -> Sequence[tuple[ast.Call, Site]]:
        """All calls."""
        return self._calls

    def functions(self) -> Iterator[tuple[Function, Site]]:
        """All functions and methods; the site's scope is the one around."""
        for site in self.sites(ast.FunctionDef, ast.AsyncFunctionDef):
            if isinstance(site.node, Function):
                yield site.node, site

    def classes(self) -> Iterator[tuple[ast.ClassDef, Site]]:
        """All classes; the site's scope is the one around."""
        for site in self._sites[ast.ClassDef]:
            if isinstance(site.node, ast.ClassDef):
                yield site.node, site

    def imports(self, *packages: str) -> bool:
        """Whether the file imports one of these packages or something of it."""
        if "imported" not in self.memo:
            parts = (name.split(".") for name in self.imported)
            self.memo["imported"] = frozenset(".".join(one[:n]) for one in parts for n in range(1, len(one) + 1))
        return not self.memo["imported"].isdisjoint(packages)


def once(function: Callable[[Module], T]) -> Callable[[Module], T]:
    """``function`` of a module, computed once for all detectors."""

    @wraps(function)
    def looked_up(module: Module) -> T:
        if function not in module.results:
            module.results[function] = function(module)
        found: T = module.results[function]
        return found

    return looked_up


def _additions(calls: list[Site]) -> dict[tuple[Scope, str], list[Site]]:
    """Calls ``name.append(x)``, ``name.extend(x)`` and ``name.insert(i, x)``, by scope and name."""
    found: dict[tuple[Scope, str], list[Site]] = {}
    for site in calls:
        match site.node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" | "insert")):
                found.setdefault((site.scope, name), []).append(site)
    return found


@lru_cache(maxsize=2)
def _module(source: Source) -> Module | None:
    return None if source.tree is None else Module(source, source.tree)


def module_of(source: Source) -> Module | None:
    """The walked source, or None if it did not parse. Kept for the detectors that look at the same source next."""
    return _module(source)


def release(source: Source) -> None:
    """Let go of a source that all detectors have seen. Its scopes refer to themselves: by itself its memory would only
    be found by looking through everything for garbage, which takes as long as to parse it."""
    module = _module(source)
    for scope in () if module is None else module.scopes.values():
        scope.bindings.clear()
        scope.attributes.clear()
    _module.cache_clear()


def _walk(module: Module, sites: dict[type[ast.AST], list[Site]]) -> None:
    """Visit every node once, in the order in which they stand; what waits is kept in groups that have the rest in
    common. ``around`` is the statement that those of a group are part of, ``frame`` the one that is being visited."""
    calls, stored, texts = sites[ast.Call], module.stored.append, module.texts.add
    groups: list[_Group] = [([module.tree], module.scope, None, None, "", module.mentions[module.tree])]
    while groups:
        todo, scope, around, frame, field, heard = groups.pop()
        attribute, read, said = heard.attributes.add, heard.loads.append, heard.said.add
        while todo:
            node = todo.pop()
            kind = type(node)
            while kind is ast.Attribute:
                if type(node.ctx) is ast.Load:
                    attribute(node.attr)
                else:
                    said(node.attr)
                    if type(node.ctx) is ast.Store:
                        stored(node)
                node = node.value
                kind = type(node)
            if kind is ast.Name:
                (read if type(node.ctx) is ast.Load else said)(node.id)
            elif kind is ast.Constant:
                heard.constant(node.value)
            elif kind is ast.Call:
                calls.append(_made(Site, (node, scope, frame)))
                for one in node.args:
                    if type(one) is ast.Constant and type(one.value) is str:
                        texts(one.value)
                for given in reversed(node.keywords):
                    if given.arg:
                        said(given.arg)
                    todo.append(given.value)
                todo += node.args[::-1]
                todo.append(node.func)
            elif kind not in _SPECIAL:
                todo += below(node)[::-1]
            else:
                if kind in STATEMENTS:
                    frame = _made(Frame, (node, field, around))
                elif kind in _WITH_STATEMENTS:
                    frame = around
                if kind in sites:
                    sites[kind].append(_made(Site, (node, scope, frame)))
                if kind in _TEXTS:
                    for one in _TEXTS[kind](node):
                        if type(one) is ast.Constant and type(one.value) is str:
                            texts(one.value)
                if kind in _BINDERS:
                    _BINDERS[kind](module, node, scope)
                if kind in SAYING:
                    heard.hear(node)
                if kind in FIELD_BY_FIELD:
                    groups.append((todo, scope, around, frame, field, heard))
                    groups += _parts(module, node, scope, frame, field, heard)
                    break
                todo += below(node)[::-1]
    for heard in module.mentions.values():
        heard.names |= heard.attributes
        heard.read.update(heard.loads)


_made: Final = tuple.__new__
"""Makes a named tuple of its fields in a third of the time that its own class takes."""


def _parts(
    module: Module, node: Any, scope: Scope, frame: Frame | None, field: str, heard: Mentions
) -> Iterator[_Group]:
    """The parts of a node of which it matters in which field something stands, the last one first. A function's
    decorators and defaults are run with the module, its annotations are its own. ``frame``: the node's own, or the
    one around an expression."""
    inner, own, kind = scope, heard, type(node)
    if kind in _SCOPES:
        inner = module.scopes[node] = Scope(node, scope)
    if kind in _CALLED:
        _bind_arguments(node.args, inner)
    if kind in _FUNCTIONS:
        own = module.mentions[node] = Mentions()
        own.rewrites = rewrites(node.body)
        heard.rewrites = heard.rewrites or own.rewrites
        heard.nested = True
        heard = module.mentions[module.tree]
    for name in reversed(HOLDING[kind]):
        value: Any = getattr(node, name, None)
        if name == "args" and kind in _FUNCTIONS:
            for given in reversed(value._fields):
                if part := _reversed(getattr(value, given)):
                    by = heard if given in ("defaults", "kw_defaults") else own
                    yield part, scope, frame, frame, name, by
        elif value:
            by = own if name in ("body", "returns") else heard
            within = inner if name == "body" else scope
            yield _reversed(value), within, frame, frame, field if kind is ast.Lambda else name, by


def _reversed(value: Any) -> list[Any]:
    if type(value) is list:
        return value[::-1] if None not in value else [one for one in reversed(value) if one is not None]
    return [value] if value is not None else []


_FUNCTIONS: Final = frozenset((ast.FunctionDef, ast.AsyncFunctionDef))
_CALLED: Final = _FUNCTIONS | {ast.Lambda}
_SCOPES: Final = _CALLED | {ast.ClassDef}

def _bind_arguments(arguments: ast.arguments, scope: Scope) -> None:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    for argument, default in zip(positional, [*defaults, *arguments.defaults], strict=False):
        scope.bind(argument.arg, Binding("param", argument, scope.parent or scope, default))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=False):
        scope.bind(argument.arg, Binding("param", argument, scope.parent or scope, default))
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            scope.bind(rest.arg, Binding("param", rest, scope))


def _bind_assign(_module: Module, node: ast.AST, scope: Scope) -> None:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                _bind_target(target, "value", value, node, scope)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            _bind_target(target, "value", value, node, scope)
        case ast.AugAssign(target=target, value=value):
            _bind_target(target, "augmented", value, node, scope)


def _bind_loop(_module: Module, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.For | ast.AsyncFor | ast.comprehension)
    _bind_target(node.target, "loop", node.iter, node.target, scope)


def _bind_with(_module: Module, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.withitem)
    if node.optional_vars is not None:
        _bind_target(node.optional_vars, "with", node.context_expr, node.optional_vars, scope)


def _bind_name(_module: Module, node: ast.AST, scope: Scope) -> None:
    """Bind the name that a statement or pattern itself introduces."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            scope.bind(name, Binding("function", node, scope))
        case ast.ClassDef(name=name):
            scope.bind(name, Binding("class", node, scope))
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            scope.bind(name, Binding("other", node, scope))


def _bind_elsewhere(_module: Module, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.Global | ast.Nonlocal)
    scope.elsewhere.update(node.names)


def _bind_returned(_module: Module, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.Return | ast.Yield)
    if node.value is not None:
        scope.returned.append(node.value)


def _bind_import(module: Module, node: ast.AST, scope: Scope) -> None:
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


_BINDERS: Final[dict[type[ast.AST], Callable[[Module, ast.AST, Scope], None]]] = {
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
_TEXTS: Final[dict[type[ast.AST], Callable[[Any], Sequence[Any]]]] = {
    **dict.fromkeys((ast.List, ast.Tuple, ast.Set), attrgetter("elts")),
    ast.Compare: below,
    ast.MatchMapping: attrgetter("keys"),
    ast.Subscript: lambda node: (node.slice,) if type(node.ctx) is ast.Load else (),
}
"""Among which nodes of a node, beside a call's arguments, texts may be keys."""
_WITH_STATEMENTS: Final = frozenset((ast.ExceptHandler, ast.match_case))
"""Kinds of nodes that hold statements, and are none."""
_SPECIAL: Final = frozenset((*STATEMENTS, *_KEPT, *_BINDERS, *_TEXTS, *SAYING, *FIELD_BY_FIELD, *_WITH_STATEMENTS))
"""Kinds of nodes of which there is more to note than what is below them."""
