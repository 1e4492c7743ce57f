"""The ways of values within each function: from what it is given and asks for to what it keeps, hands on and returns;
pure.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator
from typing import Any, Final

from pmagent.actors.audit.detectors.code.answers import questions
from pmagent.actors.audit.detectors.code.flowing import NOTHING, OUT, Called, Place, Read, Variable, Work, part
from pmagent.actors.audit.detectors.code.names import bindings, last_name, parameters
from pmagent.actors.audit.detectors.code.scopes import Module, Scope
from pmagent.actors.audit.detectors.code.tree import children
from pmagent.actors.audit.lists import Lists

_LISTS: Final = Lists(__package__, "flows")

_DEPTH_MAX: Final = 40
"""Deeper in an expression only names are read."""
CHANGING: Final = _LISTS.words("changing")
"""Methods that only change what they are called on."""
_LOGGING: Final = _LISTS.words("logging")
_PLAIN: Final = _LISTS.words("plain_decorators")
_CALLABLE: Final = frozenset(("function", "class", "import"))
"""Kinds of bindings by which a name is known to be that of a function or class; else it may be any."""
_SEEN_THROUGH: Final = frozenset(("locals", "vars", "eval", "exec"))
"""Code that calls these may read any variable."""
_COMPUTED: Final = (ast.Call, ast.BinOp, ast.Compare)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


def works(module: Module) -> Iterator[Work]:
    """The functions of a file, and its own statements."""
    asked = {id(one.call) for several in questions(module).values() for one in several}
    for node, site in module.functions():
        decorators = [last_name(one) for one in node.decorator_list]
        work = _Reading(module, node, module.scopes[node], asked).work()
        known = any(one not in _PLAIN for one in decorators)
        yield work._replace(in_class=site.scope.is_class, known=known)
    yield _Reading(module, module.tree, module.scope, asked).work()


def _identity(path: str, node: Any) -> Place:
    return path, str(getattr(node, "lineno", 0)), getattr(node, "name", "")


def _is_computed(value: ast.expr) -> bool:
    return any(isinstance(one, _COMPUTED) for one in ast.walk(value))


def _chooses(value: ast.expr, names: Container[str]) -> bool:
    """Whether a value is one of several variables, as it is, or nothing."""
    match value:
        case ast.BoolOp(values=parts):
            return all(_chooses(part_of, names) for part_of in parts)
        case ast.IfExp(body=one, orelse=other):
            return _chooses(one, names) and _chooses(other, names)
        case ast.Name(id=name):
            return name in names
        case ast.Constant() | ast.List(elts=[]) | ast.Dict(keys=[]):
            return True
    return False


def _text(node: ast.AST | None) -> str:
    """The constant text that a node is; "" of any other."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


class _Reading:
    """One function, as far as it is read."""

    def __init__(self, module: Module, node: Any, scope: Scope, asked: set[int]) -> None:
        self._asked = asked
        self._path = module.source.path
        self._node = node
        self._scope = scope
        self._me = _identity(self._path, node)
        self._result: Place = ("result", *self._me)
        self._flows: list[tuple[Place, Place]] = []
        self._calls: list[Called] = []
        self._keys: dict[str, tuple[int, frozenset[Place]]] = {}
        self._updates = set[str]()
        self._variables: dict[Place, Variable] = {}
        self._replaced: list[Variable] = []
        self._given = {one.arg for one in parameters(node)} if self._me[2] else set[str]()
        self._chooses = True
        self._returns = self._raises = self._changes = self._open = False
        self._read(node.body)

    def work(self) -> Work:
        """The function as it was read."""
        function = self._node if self._me[2] else None
        rest = (function.args.vararg, function.args.kwarg) if function else ()
        return Work(
            path=self._path, name=self._me[2], first=int(self._me[1]), last=getattr(self._node, "end_lineno", 0) or 0,
            parameters=tuple(one.arg for one in parameters(function)) if function else (),
            rest=tuple(one.arg for one in rest if one is not None), in_class=False, known=False, flows=self._flows,
            calls=self._calls, keys=self._keys, updates=frozenset(self._updates),
            variables=[] if self._open else list(self._variables.values()), replaced=self._replaced,
            returns=self._returns, chooses=self._chooses, raises=self._raises, changes=self._changes,
        )  # fmt: skip

    # --- places ---

    def _variable(self, name: str) -> Place:
        found = self._scope.lookup(name)
        home = found[0].function if found is not None else None
        return ("global", name) if home is None else ("variable", *_identity(self._path, home), name)

    def _roots(self, value: ast.expr) -> list[Place]:
        """The place that holds an object: a variable, or the last key on the way to it."""
        while True:
            match value:
                case ast.IfExp(body=one, orelse=other):
                    return self._roots(one) + self._roots(other)
                case ast.Attribute(attr=key) | ast.Subscript(slice=ast.Constant(value=str(key))):
                    return [("key", key)]
                case ast.Subscript(value=inner) | ast.Call(func=ast.Attribute(value=inner)) | ast.Call(func=inner):
                    value = inner
                case ast.Name(id=name):
                    return [self._variable(name)]
                case _:
                    return []

    def _flow(self, read: Read, *to: Place) -> None:
        self._flows += [(one, target) for target in to for one in read.whole]
        self._flows += [(one, part(target)) for target in to for one in read.part]

    def _decide(self, under: Iterable[Place], *to: Place) -> None:
        """Everything done under a condition depends on it."""
        self._flows += [(one, each) for one in under for target in to for each in (target, part(target))]

    def _change(self, owner: ast.expr, which: Read, read: Read, under: frozenset[Place]) -> None:
        """A value given to an object becomes a part of it; ``which`` tells the object."""
        roots = self._roots(owner)
        given = {("variable", *self._me, one) for one in self._given}
        self._changes = self._changes or any(one in given or one[1:4] != self._me for one in roots)
        every = [each for one in roots for each in (one, ("change", *one))]
        self._flow(read, *every)
        self._decide((*under, *which.every, ("acts", *self._me)), *every)

    def _key(self, key: str, read: Read, under: Iterable[Place], value: ast.AST) -> None:
        self._flow(read, ("key", key))
        self._decide((*under, ("acts", *self._me)), ("key", key))
        if not isinstance(value, ast.Constant):
            self._keys.setdefault(key, (getattr(value, "lineno", 0), read.whole))

    # --- statements ---

    def _read(self, body: list[ast.stmt]) -> None:
        todo: list[tuple[ast.AST, frozenset[Place]]] = [(one, frozenset()) for one in reversed(body)]
        self._row(body)
        while todo:
            stmt, under = todo.pop()
            if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self._define(stmt, under)
                continue
            within = self._statement(stmt, under)
            for field in ("finalbody", "orelse", "handlers", "cases", "body"):
                block = getattr(stmt, field, None) or []
                self._row(block)
                todo += [(one, within) for one in reversed(block)]

    def _row(self, block: list[Any]) -> None:
        """Note the values in a row of assignments that another one replaces before they are read."""
        unread: dict[str, ast.Assign] = {}
        for stmt in block if len(block) > 1 else ():
            if not isinstance(stmt, ast.Assign):
                unread.clear()
                continue
            for node in ast.walk(stmt) if unread else ():
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    unread.pop(node.id, None)
                elif isinstance(node, ast.Yield | ast.Await):
                    unread.clear()
            match stmt:
                case ast.Assign(targets=[ast.Name(id=name)]):
                    if (before := unread.get(name)) is not None and _is_computed(before.value):
                        last = before.end_lineno or before.lineno
                        self._replaced.append(Variable(self._variable(name), name, before.lineno, last))
                    unread[name] = stmt

    def _define(self, stmt: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, under: frozenset[Place]) -> None:
        """A function within has its conditions and defaults from here; what a class within names is used by it."""
        if isinstance(stmt, ast.ClassDef):
            if self._me[2]:
                self._flows += [(self._variable(one.id), OUT) for one in ast.walk(stmt) if isinstance(one, ast.Name)]
            return
        inner = _identity(self._path, stmt)
        self._decide(under, ("result", *inner), ("acts", *inner))
        read = _together(self.read(one, under) for one in (*stmt.args.defaults, *filter(None, stmt.args.kw_defaults)))
        self._flow(read, *(("variable", *inner, one.arg) for one in parameters(stmt)))

    def _statement(  # noqa: C901 - one case a kind of statement
        self, stmt: Any, under: frozenset[Place]
    ) -> frozenset[Place]:
        """Read a statement without those within; the conditions under which these stand."""
        match stmt:
            case ast.Assign(targets=targets, value=value):
                read = self.read(value, under)
                for target in targets:
                    self._assign(target, read, under, value)
                    self._name(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
                self._assign(target, self.read(value, under), under, value)
                if isinstance(stmt, ast.AnnAssign):
                    self._name(target, value)
            case ast.Return(value=value) | ast.Expr(value=ast.Yield(value=value) | ast.YieldFrom(value=value)):
                if value is not None:
                    self._return(value, under)
                self._decide(under, self._result)
            case ast.Expr(value=value):
                self.read(value, under, alone=True)
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                read = self.read(value, under)
                self._assign(target, read, under, value)
                return under | read.whole
            case ast.If(test=test) | ast.While(test=test):
                return under | self.read(test, under).every
            case ast.With(items=items) | ast.AsyncWith(items=items):
                for item in items:
                    read = self.read(item.context_expr, under)
                    self._flow(read, OUT)
                    if item.optional_vars is not None:
                        self._assign(item.optional_vars, read, under, item.context_expr)
            case ast.Raise(exc=value) | ast.Assert(test=value):
                self._raises = True
                asked = self.read(value, under).every if value is not None else frozenset()
                self._flows += [(one, OUT) for one in under | asked]
            case ast.Match(subject=subject, cases=cases):
                read = self.read(subject, under)
                for case in cases:
                    read |= self._pattern(case.pattern, read)
                return under | read.every
            case ast.Break() | ast.Continue():
                self._decide(under, self._result)
        return under

    def _pattern(self, pattern: ast.pattern, read: Read) -> Read:
        """Bind the names of a pattern; the keys that it asks for."""
        asked = set[Place]()
        for node in ast.walk(pattern):
            for bound in (getattr(node, "name", None), getattr(node, "rest", None)):
                if isinstance(bound, str):
                    self._flow(read, self._variable(bound))
            asked.update(("key", key) for key in getattr(node, "kwd_attrs", ()))
        return Read(frozenset(asked))

    def _return(self, value: ast.expr, under: frozenset[Place]) -> None:
        self._flow(self.read(value, under), self._result)
        self._returns = self._returns or not isinstance(value, ast.Constant)
        self._chooses = self._chooses and _chooses(value, self._given)
        given = {one.arg: one.value for one in getattr(value, "keywords", ())}
        if "goto" in given:
            self._flows += [(one, OUT) for one in under]
        for node in (value, given.get("update")):
            if isinstance(node, ast.Dict):
                self._updates.update(filter(None, map(_text, node.keys)))

    def _name(self, target: ast.expr, value: ast.expr) -> None:
        """Note what is computed; and that a name is another one for what an object keeps."""
        if not isinstance(target, ast.Name):
            return
        place = self._variable(target.id)
        taken = value.func.value if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else value
        if isinstance(value, ast.Attribute | ast.Subscript) or taken is not value:
            for root in self._roots(taken):
                self._flows += [(("change", *place), to) for to in (root, ("change", *root))]
        if not target.id.startswith("_") and (place[1:4] == self._me or not self._me[2]) and _is_computed(value):
            first, last = value.lineno, value.end_lineno or value.lineno
            self._variables.setdefault(place, Variable(place, target.id, first, last))

    def _assign(self, target: ast.expr, read: Read, under: frozenset[Place], value: ast.expr) -> None:
        todo = [target]
        while todo:
            match todo.pop():
                case ast.Name(id=name):
                    self._flow(read, self._variable(name))
                    self._decide(under, self._variable(name))
                case ast.Attribute(attr=key, value=owner) | ast.Subscript(
                    slice=ast.Constant(value=str(key)), value=owner
                ):
                    self._key(key, read, under, value)
                    self._change(owner, self.read(owner, under), read, under)
                case ast.Subscript(value=owner, slice=index):
                    self._change(owner, self.read(owner, under), read | self.read(index, under), under)
                case ast.Starred(value=inner):
                    todo.append(inner)
                case ast.Tuple(elts=parts) | ast.List(elts=parts):
                    todo += parts

    # --- expressions ---

    def read(  # noqa: C901 - one case a kind of expression
        self, value: ast.AST, under: frozenset[Place], *, alone: bool = False, depth: int = 0
    ) -> Read:
        """The places that an expression is made of; calls, keys and assignments in it are noted."""
        if depth > _DEPTH_MAX:
            names = frozenset(self._variable(one.id) for one in ast.walk(value) if isinstance(one, ast.Name))
            return Read(names, frozenset(map(part, names)))

        def below(one: ast.AST) -> Read:
            return self.read(one, under, depth=depth + 1)

        match value:
            case ast.Constant():
                return NOTHING
            case ast.Name(id=name):
                place = self._variable(name)
                return Read(frozenset((place,)), frozenset((part(place),)))
            case ast.Await(value=inner):
                return self.read(inner, under, alone=alone, depth=depth + 1)
            case ast.Attribute(value=owner, attr=key) | ast.Subscript(
                value=owner, slice=ast.Constant(value=str(key))
            ):
                return _taken(key, below(owner))
            case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[ast.Constant(value=str(key)), *rest]):
                return _taken(key, below(owner)) | _together(map(below, rest))
            case ast.Call():
                return self._call(value, under, alone=alone, depth=depth)
            case ast.Dict(keys=keys, values=values):
                return _together(
                    self._entry(key, one, below(one), under) | (below(key) if key is not None else NOTHING)
                    for key, one in zip(keys, values, strict=True)
                )
            case ast.NamedExpr(target=target, value=inner):
                read = below(inner)
                self._assign(target, read, under, inner)
                return read
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return below(body) | below(orelse) | Read(below(test).every)
            case ast.ListComp(generators=loops) | ast.SetComp(generators=loops) | ast.GeneratorExp(
                generators=loops
            ) | ast.DictComp(generators=loops):
                asked = NOTHING
                for loop in loops:
                    self._assign(loop.target, below(loop.iter), under, loop.iter)
                    asked |= _together(map(below, loop.ifs))
                made = [value.key, value.value] if isinstance(value, ast.DictComp) else [value.elt]
                return _together(map(below, made)) | Read(asked.every, asked.every)
        found = _together(below(one) for one in children(value) if isinstance(one, ast.expr | ast.keyword))
        return Read(found.every) if isinstance(value, ast.Compare) else found

    def _entry(self, key: ast.expr | None, value: ast.expr, read: Read, under: frozenset[Place]) -> Read:
        name = _text(key)
        if not name:
            return read
        self._key(name, read, under, value)
        return Read(read.whole)

    def _call(self, call: ast.Call, under: frozenset[Place], *, alone: bool, depth: int) -> Read:
        name, attribute = last_name(call.func), isinstance(call.func, ast.Attribute)
        if isinstance(call.func, ast.Name) and self._scope.lookup(name) is not None:
            named = any(one.kind in _CALLABLE for one in bindings(self._scope, call.func))
            name = name if named else ""
        owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        base = self.read(owner, under, depth=depth + 1)
        slots: list[tuple[str | int, ast.expr]] = [
            ("*" if isinstance(one, ast.Starred) else number, one) for number, one in enumerate(call.args)
        ]
        slots += [(one.arg or "*", one.value) for one in call.keywords]
        given = tuple((slot, self.read(one, under, depth=depth + 1)) for slot, one in slots)
        place: Place = ("call", self._path, str(call.lineno), str(call.col_offset), str(call.end_col_offset))
        imported = next((one.dotted for one in bindings(self._scope, owner) if one.kind == "import"), "")
        method = attribute and not imported
        tells = name in _LOGGING and attribute and "log" in last_name(owner).lower()
        functions = tuple(last_name(one) for _, one in slots if isinstance(one, ast.Name | ast.Attribute))
        asks = id(call) in self._asked
        self._calls.append(
            Called(place, name, method, base, given, functions, under, alone, tells, asks, imported)
        )
        self._open = self._open or name in _SEEN_THROUGH
        if attribute and name in CHANGING:
            self._change(owner, base, _together(read for _, read in given), under)
        return Read(frozenset((place,)), frozenset((part(place),)))


def _together(reads: Iterable[Read]) -> Read:
    found = NOTHING
    for one in reads:
        found |= one
    return found


def _taken(key: str, owner: Read) -> Read:
    place: Place = ("key", key)
    return Read(owner.part | {place}, owner.part | {part(place)})
