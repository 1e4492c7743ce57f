"""The bindings of the names in a Python file: one walk over its tree, lexical scopes, what stands where; pure.

The walk is iterative and visits every node once, so that neither depth nor length of a foreign file matters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, wraps
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar

from pmagent.actors.audit.detectors.code.bound import BINDERS, Binding, Function, Scope, bind_arguments
from pmagent.actors.audit.detectors.code.mentions import SAYING, Mentions
from pmagent.actors.audit.detectors.code.source import Source
from pmagent.actors.audit.detectors.code.tree import FIELD_BY_FIELD, HOLDING, STATEMENTS, below

__all__ = ["Binding", "Frame", "Function", "Module", "Scope", "Site", "module_of", "once", "release"]

_NEW_LINE: Final = re.compile(r"\r\n|\r|\n")
_KEPT: Final = (
    ast.Call, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.ExceptHandler,
    ast.Subscript, ast.Dict, ast.Tuple, ast.Return, ast.Raise, ast.FormattedValue,
)  # fmt: skip


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
    def place(self) -> tuple[int, int]:
        """Line and column."""
        return self.line, getattr(self.node, "col_offset", 0)

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
    everything from; ``additions``: where something is put into the list of a name; ``texts``: constant ones that may be
    keys; ``memo``, ``called``, ``attributes`` and ``results``: what was found out once for all detectors."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self.tree = tree
        self.scope = Scope(tree, None)
        self.scopes: dict[ast.AST, Scope] = {tree: self.scope}
        self.mentions: dict[ast.AST, Mentions] = {tree: Mentions()}
        self.stars: list[str] = []
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


def _walk(module: Module, sites: dict[type[ast.AST], list[Site]]) -> None:  # noqa: C901 - a call a node costs a third
    """Visit every node once, in the order in which they stand; what waits is kept in groups that have the rest in
    common. ``around`` is the statement that those of a group are part of, ``frame`` the one that is being visited."""
    calls, texts = sites[ast.Call], module.texts.add
    groups: list[_Group] = [([module.tree], module.scope, None, None, "", module.mentions[module.tree])]
    while groups:
        todo, scope, around, frame, field, heard = groups.pop()
        attribute, read, said = heard.attributes.add, heard.read.add, heard.said.add
        while todo:
            node = todo.pop()
            kind = type(node)
            while kind is ast.Attribute:
                if type(node.ctx) is ast.Load:
                    attribute(node.attr)
                else:
                    said(node.attr)
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
                if kind in BINDERS:
                    BINDERS[kind](module, node, scope)
                if kind in SAYING:
                    heard.hear(node)
                if kind in FIELD_BY_FIELD:
                    groups.append((todo, scope, around, frame, field, heard))
                    groups += _parts(module, node, scope, frame, field, heard)
                    break
                todo += below(node)[::-1]
    for heard in module.mentions.values():
        heard.names |= heard.attributes


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
        bind_arguments(node.args, inner)
    if kind in _FUNCTIONS:
        own = module.mentions[node] = Mentions()
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

_TEXTS: Final[dict[type[ast.AST], Callable[[Any], Sequence[Any]]]] = {
    **dict.fromkeys((ast.List, ast.Tuple, ast.Set), attrgetter("elts")),
    ast.Compare: below,
    ast.MatchMapping: attrgetter("keys"),
    ast.Subscript: lambda node: (node.slice,) if type(node.ctx) is ast.Load else (),
}
"""Among which nodes of a node, beside a call's arguments, texts may be keys."""
_WITH_STATEMENTS: Final = frozenset((ast.ExceptHandler, ast.match_case))
"""Kinds of nodes that hold statements, and are none."""
_SPECIAL: Final = frozenset((*STATEMENTS, *_KEPT, *BINDERS, *_TEXTS, *SAYING, *FIELD_BY_FIELD, *_WITH_STATEMENTS))
"""Kinds of nodes of which there is more to note than what is below them."""
