"""The keys of the state that a node's function reads and writes, by its syntax tree; pure.

Only what is written out counts: keys as literals, updates as dict literals, ``Command(update=…)``, a model of the
state. Anything that cannot be followed makes the reading ``open``: it may do more than what is listed, and never less.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from pmagent.actors.audit.detectors.code.names import inside, last_name
from pmagent.actors.audit.graphs.members import ancestry, class_attribute
from pmagent.actors.audit.graphs.values import Class, Func, Inst, Value

if TYPE_CHECKING:
    from pmagent.actors.audit.graphs.run import Run

DEPTH_MAX: Final = 4
"""So deep calls are followed that hand the state on."""
_STEPS: Final = 200
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_MAPPING: Final = frozenset((
    "get", "items", "keys", "values", "copy", "update", "pop", "setdefault", "model_dump", "model_copy", "dict", "json",
))  # fmt: skip


class Updates(msgspec.Struct, eq=False):
    """Keys of the state with the line of their first use. ``soft``: reads that bear a missing key (``get``, or behind a
    test of it). ``all_kept``: it returns the whole state again. ``open``: it may write more. ``idle``: its body does
    nothing at all; ``fixed``: it returns constants without a look at anything; ``hollow``: records made of constants,
    with little of the state among them. ``pauses``: it waits for a person. ``changed``: keys whose value it may change
    in place. ``sometimes``: of ``writes``, those that not every way out of it makes."""

    reads: dict[str, int] = {}
    soft: dict[str, int] = {}
    writes: dict[str, int] = {}
    all_kept: bool = False
    open: bool = False
    idle: bool = False
    fixed: bool = False
    hollow: bool = False
    pauses: bool = False
    sometimes: set[str] = set()
    changed: set[str] = set()


class UpdateReader:
    """Reads functions, each once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._known: dict[tuple[ast.AST, str], Updates] = {}

    def read(self, function: Func, depth: int = 0) -> Updates:
        """The reads and writes of a function whose first free parameter is the state."""
        name = state_parameter(function)
        known = self._known.get((function.node, name))
        if known is not None:
            return known
        found = self._known[function.node, name] = Updates()
        body: Sequence[ast.AST] = function.node.body if isinstance(function.node, _FUNCTIONS) else [function.node.body]
        found.idle, found.fixed = _idle(body, name), _fixed(body)
        found.hollow, found.changed = self._is_hollow(function, name), set(_changed(function.node, name))
        self._reads(function, name, found, depth)
        returned = list(_returned(function))
        ways: list[Updates] = [Updates() for _ in returned]
        for value, way in zip(returned, ways, strict=True):
            self._writes(function, name, value, way, depth)
            found.all_kept, found.open = found.all_kept or way.all_kept, found.open or way.open
        always = set(found.writes).union(*(way.writes for way in ways[:1])).intersection(*(
            set(found.writes).union(way.writes) for way in ways
        ))  # fmt: skip
        for key, line in ((key, line) for way in ways for key, line in way.writes.items()):
            found.writes.setdefault(key, line)
        found.sometimes.update(key for key in found.writes if key not in always)
        return found

    def _is_hollow(self, function: Func, name: str) -> bool:
        """Whether all that a function does is to return records of the repository's own classes that it fills with
        constants, and with less of the state than half of them."""
        constants = echoes = 0
        todo: list[ast.AST] = [value] if (value := _alone(function)) is not None else []
        made = False
        for _ in range(_STEPS):
            if not todo:
                return made and constants > 2 * echoes
            match todo.pop():
                case ast.Constant():
                    constants += 1
                case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
                    todo += parts
                case ast.Call(func=ast.Name(id=called), args=args, keywords=keywords) if self._makes(function, called):
                    made = True
                    todo += [*args, *(one.value for one in keywords)]
                case ast.Subscript(value=ast.Name(id=owner)) | ast.Attribute(value=ast.Name(id=owner)) if owner == name:
                    echoes += 1
                case _:
                    return False
        return False

    def _makes(self, function: Func, called: str) -> bool:
        """Whether a name is a class of records, or a function that does nothing but make one of what it is given."""
        for _ in range(2):
            value = function.scope.find(called)
            value = self._run.settled(value) if value is not None else None
            if not isinstance(value, Func):
                break
            made = _alone(value)
            if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name):
                return False
            parts = [*made.args, *(one.value for one in made.keywords)]
            if not all(isinstance(one, ast.Name | ast.Constant) for one in parts):
                return False
            function, called = value, made.func.id
        return isinstance(value, Class) and fields_written(value)

    def _reads(self, function: Func, name: str, found: Updates, depth: int) -> None:
        tested = _tested(function.node, name)
        for node in inside(function.node):
            match node:
                case ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=str(key)), ctx=ast.Load()) if (
                    owner == name
                ):
                    _note(found.soft if key in tested else found.reads, key, node)
                case ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=str(key)), ctx=ast.Store()) if (
                    owner == name
                ):
                    _note(found.writes, key, node)
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id=owner), attr="get"), args=[ast.Constant(value=str(key)), *_]
                ) if owner == name:
                    _note(found.soft, key, node)
                case ast.Attribute(value=ast.Name(id=owner), attr=key, ctx=ast.Load()) if (
                    owner == name and key not in _MAPPING and not key.startswith("_")
                ):
                    _note(found.soft if key in tested else found.reads, key, node)
                case ast.Call():
                    found.pauses = found.pauses or last_name(node.func) == "interrupt"
                    self._handed_on(function, name, node, found, depth)

    def _handed_on(self, function: Func, name: str, node: ast.Call, found: Updates, depth: int) -> None:
        """A call of a function of the repository: what it reads of the state that it is given, and whether it waits."""
        if depth >= DEPTH_MAX or not name:
            return
        callee = self._callee(function, node.func)
        if callee is None:
            return
        given = next((at for at, one in enumerate(node.args) if isinstance(one, ast.Name) and one.id == name), None)
        own = self.read(callee, depth + 1)
        found.pauses = found.pauses or own.pauses
        if given == 0:
            for key, line in own.reads.items():
                (found.soft if key in found.soft else found.reads).setdefault(key, line)
            for key, line in own.soft.items():
                found.soft.setdefault(key, line)

    def _callee(self, function: Func, called: ast.expr) -> Func | None:
        """The function of the repository that is called, if it is one for sure."""
        value: Value | None = None
        match called:
            case ast.Name(id=name):
                value = function.scope.find(name)
                value = self._run.settled(value) if value is not None else None
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name) if isinstance(function.owner, Inst):
                value = class_attribute(function.owner.owner, name, function.owner)
        return value if isinstance(value, Func) and value.node is not function.node else None

    def _writes(self, function: Func, name: str, value: ast.expr | None, found: Updates, depth: int) -> None:
        todo: list[ast.expr | None] = [value]
        seen: set[str] = set()
        for _ in range(_STEPS):
            if not todo:
                return
            match todo.pop():
                case None | ast.Constant():
                    pass
                case ast.Dict(keys=keys, values=values):
                    for key, one in zip(keys, values, strict=True):
                        self._entry(name, key, one, found)
                case ast.IfExp() | ast.BoolOp() | ast.Await() | ast.NamedExpr() | ast.List() | ast.Tuple() as several:
                    todo += _parts(several)
                case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                    todo += [left, right]
                case ast.Name(id=held) if held == name:
                    found.all_kept = True
                case ast.Name(id=held) if held not in seen:
                    seen.add(held)
                    todo += _held(function.node, held, found)
                case ast.Name():
                    pass
                case ast.Call() as call:
                    todo += self._called(function, call, found, depth)
                case _:
                    found.open = True
        found.open = True

    def _entry(self, name: str, key: ast.expr | None, value: ast.expr, found: Updates) -> None:
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            _note(found.writes, key.value, key)
        elif key is None and isinstance(value, ast.Name) and value.id == name:
            found.all_kept = True
        else:
            found.open = True

    def _called(self, function: Func, call: ast.Call, found: Updates, depth: int) -> list[ast.expr | None]:
        """The expressions that a returned call stands for, to go on with; notes keywords that are keys themselves."""
        called = last_name(call.func)
        if called == "Command":
            return [one.value for one in call.keywords if one.arg == "update"]
        if called == "Send":
            return []
        if called == "model_copy":
            found.all_kept = True
            return [one.value for one in call.keywords if one.arg == "update"]
        owner = function.scope.find(called) if isinstance(call.func, ast.Name) else None
        owner = self._run.settled(owner) if owner is not None else None
        if (called == "dict" and not call.args) or (isinstance(owner, Class) and fields_written(owner)):
            for one in call.keywords:
                if one.arg is None:
                    found.open = True
                else:
                    _note(found.writes, one.arg, one.value)
            found.open = found.open or bool(call.args)
            return []
        callee = self._callee(function, call.func) if depth < DEPTH_MAX else None
        if callee is None:
            found.open = True
            return []
        own = self.read(callee, depth + 1)
        for key, line in own.writes.items():
            found.writes.setdefault(key, line)
        found.open, found.all_kept = found.open or own.open, found.all_kept or own.all_kept
        return []


def _parts(node: ast.expr) -> list[ast.expr]:
    """The parts that an expression may come to: either way of a choice, each of several."""
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.BoolOp(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            return parts
        case ast.Await(value=inner) | ast.NamedExpr(value=inner):
            return [inner]
    return []


def state_parameter(function: Func) -> str:
    """The parameter that gets the state: the first that is neither bound nor ``self``; "": there is none."""
    places = [*function.node.args.posonlyargs, *function.node.args.args]
    first = (1 if function.owner is not None else 0) + len(function.bound)
    free = [one.arg for one in places[first:] if one.arg not in function.named]
    return free[0] if free else ""


def fields_written(owner: Class) -> bool:
    """Whether a class of the repository is made by the names of its fields: a model, a dataclass, a typed dict."""
    parts = [part.node.body for part in ancestry(owner) if isinstance(part, Class)]
    return any(isinstance(one, ast.AnnAssign) for body in parts for one in body)


def _note(found: dict[str, int], key: str, node: ast.AST) -> None:
    found.setdefault(key, getattr(node, "lineno", 0))


def _returned(function: Func) -> Iterator[ast.expr | None]:
    if isinstance(function.node, ast.Lambda):
        yield function.node.body
        return
    for node in inside(function.node):
        if isinstance(node, ast.Return | ast.Yield):
            yield node.value


def _held(function: ast.AST, name: str, found: Updates) -> list[ast.expr | None]:
    """The values that a name of the function is assigned; keys that are set in it later are noted."""
    values: list[ast.expr | None] = []
    bound = plain = 0
    for node in inside(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=held)], value=value) if held == name:
                values.append(value)
                plain += 1
            case ast.AnnAssign(target=ast.Name(id=held), value=value) if held == name:
                values.append(value)
                plain += 1
            case ast.Subscript(value=ast.Name(id=held), slice=key, ctx=ast.Store()) if held == name:
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    _note(found.writes, key.value, node)
                else:
                    found.open = True
            case ast.Call(func=ast.Attribute(value=ast.Name(id=held), attr="update"), args=args) if held == name:
                values += args
                found.open = found.open or bool(node.keywords)
            case ast.Name(id=held, ctx=ast.Store()) if held == name:
                bound += 1
    found.open = found.open or bound > plain
    return values


def _tested(function: ast.AST, name: str) -> set[str]:
    """Keys that the function asks about before it reads them: ``"key" in state``, ``hasattr(state, "key")``."""
    found: set[str] = set()
    for node in inside(function):
        match node:
            case ast.Compare(
                left=ast.Constant(value=str(key)), ops=[ast.In() | ast.NotIn()], comparators=[ast.Name(id=held)]
            ) | ast.Call(
                func=ast.Name(id="hasattr" | "getattr"), args=[ast.Name(id=held), ast.Constant(value=str(key)), *_]
            ) if held == name:
                found.add(key)
    return found


_PURE: Final = frozenset((
    "len", "min", "max", "any", "all", "sum", "bool", "int", "float", "str", "abs", "isinstance", "getattr", "set",
    "sorted", "list", "get", "lower", "upper", "strip", "startswith", "endswith", "values", "keys", "items",
))  # fmt: skip


def is_settled(function: Func) -> bool:
    """Whether what a function returns depends on its parameters alone, and not on when it is called."""
    body = function.node.body if isinstance(function.node, _FUNCTIONS) else [function.node.body]
    nodes = [node for part in body for node in ast.walk(part)]
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    places = function.node.args
    stored |= {one.arg for one in (*places.posonlyargs, *places.args, *places.kwonlyargs)}
    for node in nodes:
        match node:
            case ast.Call(func=func) if last_name(func) not in _PURE:
                return False
            case ast.Name(id=name, ctx=ast.Load()) if name not in stored and not name.isupper():
                if not hasattr(builtins, name) and name not in _PURE:
                    return False
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                return False
    return True


def _changed(function: ast.AST, name: str) -> Iterator[str]:
    """Keys whose value may be changed in place: ``state["notes"].append(x)``, ``state.round += 1``, ``del``."""
    for node in inside(function):
        match node:
            case ast.Call(func=ast.Attribute(value=held)) | ast.Subscript(value=held, ctx=ast.Store()):
                match held:
                    case ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=str(key))) if owner == name:
                        yield key
                    case ast.Attribute(value=ast.Name(id=owner), attr=key) if owner == name:
                        yield key
            case ast.Attribute(value=ast.Name(id=owner), attr=key, ctx=ast.Store() | ast.Del()) if owner == name:
                yield key


def counters_of(function: Func) -> set[str]:
    """The keys that a function gives their own value, and something more."""
    pairs = [pair for node in inside(function.node) if isinstance(node, ast.Dict)
             for pair in zip(node.keys, node.values, strict=True)]  # fmt: skip
    found = set[str]()
    for key, value in pairs:
        if isinstance(key, ast.Constant) and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            read = {one.value if isinstance(one, ast.Constant) else one.attr for one in ast.walk(value.left)
                    if isinstance(one, ast.Constant | ast.Attribute)}  # fmt: skip
            found |= {str(key.value)} & read
    return found


def _alone(function: Func) -> ast.expr | None:
    """The value of a function that does nothing but return one, and tell of it."""
    if isinstance(function.node, ast.Lambda):
        return function.node.body
    body = [stmt for stmt in function.node.body if not _is_told(stmt)]
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None


def _is_told(stmt: ast.stmt) -> bool:
    """A docstring, a line of a log, or one on the screen."""
    match stmt:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=owner)))):
            return "log" in owner.lower()
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            return True
    return False


def _idle(body: Sequence[ast.AST], name: str) -> bool:
    """Whether statements do nothing: a docstring, ``pass``, an empty or unchanged return, NotImplementedError."""
    for stmt in body:
        match stmt:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Return(value=None | ast.Constant(value=None) | ast.Dict(keys=[])):
                pass
            case ast.Return(value=ast.Name(id=held)) if held == name:
                pass
            case ast.Raise(exc=ast.Name(id="NotImplementedError") | ast.Call(func=ast.Name(id="NotImplementedError"))):
                pass
            case ast.Constant(value=None) | ast.Dict(keys=[]):  # of a lambda
                pass
            case ast.Name(id=held) if held == name:
                pass
            case _:
                return False
    return True


def _fixed(body: Sequence[ast.AST]) -> bool:
    """Whether statements make no call and look at nothing: what they return is always the same."""
    nodes = [node for stmt in body for node in ast.walk(stmt)]
    returned = [node for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    assigned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    looked_at = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)} - assigned
    acts = any(isinstance(node, ast.Call | ast.Raise | ast.Await) for node in nodes)
    return bool(returned) and not looked_at and not acts
