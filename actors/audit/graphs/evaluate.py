"""The value that an expression of the audited program stands for; pure. See ``run``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pmagent.actors.audit.graphs.arguments import Arguments
from pmagent.actors.audit.graphs.calls import call
from pmagent.actors.audit.graphs.members import attribute, item, part
from pmagent.actors.audit.graphs.pure import (
    SIZE_MAX,
    added,
    compared,
    distinct,
    extend,
    items_of,
    merge,
    sequence,
    shown,
    truth,
)
from pmagent.actors.audit.graphs.scope import Scope
from pmagent.actors.audit.graphs.values import (
    UNKNOWN,
    Class,
    Const,
    External,
    Func,
    Map,
    Module,
    Seq,
    Thing,
    Value,
    alternatives,
    key,
    one_of,
    text_of,
)

if TYPE_CHECKING:
    from pmagent.actors.audit.graphs.run import Run
    from pmagent.actors.audit.graphs.statements import Flow

_TRUE: Final = Const(value=True)
_FALSE: Final = Const(value=False)
_LITERALS_MAX: Final = 5_000
"""A literal collection with more items than this is data, and no part of a graph."""


def evaluate(run: Run, node: ast.expr, scope: Scope) -> Value:
    """The value that an expression stands for. Goes no deeper than ``run.value`` allows."""
    work = _EXPRESSIONS.get(type(node))
    return UNKNOWN if work is None else work(run, node, scope)


def _constant(_run: Run, node: ast.Constant, _scope: Scope) -> Value:
    """A constant; of text, what can be written as UTF-8 (lone surrogates cannot)."""
    if isinstance(node.value, str) and not node.value.isascii():
        return Const(node.value.encode("utf-8", "backslashreplace").decode("utf-8"))
    return UNKNOWN if node.value is ... else Const(node.value)


def _name(run: Run, node: ast.Name, scope: Scope) -> Value:
    value = scope.find(node.id)
    return UNKNOWN if value is None else run.settled(value)


def _attribute(run: Run, node: ast.Attribute, scope: Scope) -> Value:
    return member(run, run.value(node.value, scope), node.attr)


def member(run: Run, value: Value, name: str) -> Value:
    """An attribute, also of a module; a property gives what its function returns."""
    if isinstance(value, Module):
        return run.member(value.path, name)
    found = attribute(value, name)
    if isinstance(found, Func) and found.kind == "property" and found.owner is not None:
        return call(run, found, Arguments())
    return found


def _call(run: Run, node: ast.Call, scope: Scope) -> Value:
    """A call, or a chain of them (``a.b().c().d()``), which may be far longer than calls may be nested."""
    chain = [node]
    while isinstance(chain[-1].func, ast.Attribute) and isinstance(chain[-1].func.value, ast.Call):
        chain.append(chain[-1].func.value)
    first = chain.pop()
    value = call(run, run.value(first.func, scope), _arguments(run, first, scope))
    for one in reversed(chain):
        assert isinstance(one.func, ast.Attribute)
        value = call(run, member(run, value, one.func.attr), _arguments(run, one, scope))
    return value


def _arguments(run: Run, node: ast.Call, scope: Scope) -> Arguments:
    found = Arguments(node=node, scope=scope)
    for argument in node.args:
        value = run.value(argument.value if isinstance(argument, ast.Starred) else argument, scope)
        if not isinstance(argument, ast.Starred):
            found.args.append(value)
            continue
        items = items_of(value)
        found.open = found.open or items is None or items.open
        found.args.extend(items.items if items is not None else [])
    for keyword in node.keywords:
        value = run.value(keyword.value, scope)
        if keyword.arg is not None:
            found.named[keyword.arg] = value
        elif isinstance(value, Map):
            found.named.update((text_of(name) or "", given) for name, given in value.entries.values())
            found.open = found.open or value.open
        else:
            found.open = True
    return found


def _joined(run: Run, node: ast.JoinedStr, scope: Scope) -> Value:
    whole: Value = Const("")
    for piece in node.values:
        whole = added(ast.Add(), whole, run.value(piece, scope))
    return whole


def _formatted(run: Run, node: ast.FormattedValue, scope: Scope) -> Value:
    value = run.value(node.value, scope)
    if node.format_spec is not None or node.conversion in (ord("r"), ord("a")):
        return UNKNOWN
    return shown(value, formatted=node.conversion != ord("s"))


def _binary(run: Run, node: ast.BinOp, scope: Scope) -> Value:
    pieces = [node.right]
    operators = [node.op]
    left = node.left
    while isinstance(left, ast.BinOp):
        pieces.append(left.right)
        operators.append(left.op)
        left = left.left
    value = run.value(left, scope)
    for operator, piece in zip(reversed(operators), reversed(pieces), strict=True):
        other = run.value(piece, scope)
        if isinstance(operator, ast.Mod) and (text := text_of(value)) is not None:
            value = _percent(text, other)
        elif isinstance(operator, ast.BitOr) and not isinstance(value, Map | Seq):
            value = _piped(value, other)
        else:
            value = added(operator, value, other)
    return value


def _piped(one: Value, other: Value) -> Value:
    """``prompt | model | parser``: a chain, whose last member says what it gives."""
    return Thing("langchain_core.runnables.RunnableSequence", [one, other], {})


def _percent(text: str, other: Value) -> Value:
    """``text % …`` with %s and %d only."""
    values = other.items if isinstance(other, Seq) and other.kind == "tuple" else [other]
    words = [text_of(shown(value)) for value in values]
    pieces = text.replace("%d", "%s").split("%s")
    if "%" in "".join(pieces) or len(pieces) != len(words) + 1 or None in words:
        return UNKNOWN
    whole = pieces[0] + "".join(f"{word}{piece}" for word, piece in zip(words, pieces[1:], strict=True))
    return Const(whole) if len(whole) <= SIZE_MAX else UNKNOWN


def _either(run: Run, node: ast.BoolOp, scope: Scope) -> Value:
    """``a or b``, ``a and b``: the first that decides it, or any of those that may. A value that ends an ``and`` is
    false, and stands for nothing; one that ends an ``or`` is none of an operand's alternatives that are false."""
    stops = isinstance(node.op, ast.Or)
    found: list[Value] = []
    for operand in node.values:
        value = run.value(operand, scope)
        known = truth(value)
        if operand is node.values[-1] or known is stops:
            found.append(value)
            break
        if known is None and stops:
            found.extend(option for option in alternatives(value) if truth(option) is not False)
        elif known is None:
            found.append(Const(None))
    return one_of(found)


def _compare(run: Run, node: ast.Compare, scope: Scope) -> Value:
    left = run.value(node.left, scope)
    result: bool | None = True
    for operator, right_node in zip(node.ops, node.comparators, strict=True):
        right = run.value(right_node, scope)
        one = compared(operator, left, right)
        if one is False:
            return _FALSE
        result = None if one is None else result
        left = right
    return UNKNOWN if result is None else _TRUE


def _unary(run: Run, node: ast.UnaryOp, scope: Scope) -> Value:
    value = run.value(node.operand, scope)
    if isinstance(node.op, ast.Not):
        known = truth(value)
        return UNKNOWN if known is None else Const(not known)
    if isinstance(node.op, ast.USub) and isinstance(value, Const) and isinstance(value.value, int):
        return Const(-value.value)
    return UNKNOWN


def _conditional(run: Run, node: ast.IfExp, scope: Scope) -> Value:
    known = truth(run.value(node.test, scope))
    if known is not None:
        return run.value(node.body if known else node.orelse, scope)
    found: list[Value] = []

    def follow(branch: ast.expr) -> Callable[[], Flow]:
        def body() -> Flow:
            found.append(run.value(branch, scope))
            return "on"

        return body

    run.ways([follow(node.body), follow(node.orelse)], scope)
    return one_of(found)


def _collection(run: Run, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Value:
    if len(node.elts) > _LITERALS_MAX:
        return UNKNOWN
    kinds = {ast.List: "list", ast.Tuple: "tuple", ast.Set: "set"}
    whole = Seq([], kinds[type(node)])  # type: ignore[arg-type]
    for element in node.elts:
        value = run.value(element.value if isinstance(element, ast.Starred) else element, scope)
        if not isinstance(element, ast.Starred):
            whole.items.append(value)
            continue
        extend(whole, value)
    if isinstance(node, ast.Set):
        whole.items = distinct(whole.items)
    return whole


def _mapping(run: Run, node: ast.Dict, scope: Scope) -> Value:
    if len(node.keys) > _LITERALS_MAX:
        return UNKNOWN
    whole = Map({})
    for name_node, value_node in zip(node.keys, node.values, strict=True):
        value = run.value(value_node, scope)
        if name_node is None:
            merge(whole, value)
            continue
        name = run.value(name_node, scope)
        whole.entries[key(name)] = (name, value)
        whole.open = whole.open or name is UNKNOWN
    return whole


def _lambda(_run: Run, node: ast.Lambda, scope: Scope) -> Value:
    return Func(node, scope, "<lambda>")


def _walrus(run: Run, node: ast.NamedExpr, scope: Scope) -> Value:
    value = run.value(node.value, scope)
    while scope.kind == "comprehension" and scope.parent is not None:
        scope = scope.parent
    run.assign(node.target, value, scope)
    return value


def _through(run: Run, node: ast.Await | ast.Starred, scope: Scope) -> Value:
    return run.value(node.value, scope)


def _yield(run: Run, node: ast.Yield | ast.YieldFrom, scope: Scope) -> Value:
    value = run.value(node.value, scope) if node.value is not None else Const(None)
    if scope.yielded is None:
        scope.yielded = []
    items = Seq([value]) if isinstance(node, ast.Yield) else items_of(value)
    scope.yielded.extend(items.items if items is not None else [])
    scope.uneven = scope.uneven or (run.arms, run.loose) != scope.begun or items is None or items.open
    return UNKNOWN


def _subscript(run: Run, node: ast.Subscript, scope: Scope) -> Value:
    owner = run.value(node.value, scope)
    if isinstance(node.slice, ast.Slice):
        bounds = [node.slice.lower, node.slice.upper, node.slice.step]
        return part(owner, [Const(None) if bound is None else run.value(bound, scope) for bound in bounds])
    index = run.value(node.slice, scope)
    if isinstance(owner, External):
        return Thing(owner.name, index.items if isinstance(index, Seq) else [index], {})
    if isinstance(owner, Class) and items_of(owner) is None:
        return owner
    return item(owner, index)


def _comprehension(run: Run, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope) -> Value:
    inner = Scope(scope.path, "comprehension", scope)
    inner.returned, inner.yielded = scope.returned, scope.yielded
    found: list[tuple[Value, Value]] = []
    element = node.key if isinstance(node, ast.DictComp) else node.elt
    whole = _rounds(run, node, 0, inner, lambda: found.append(_pair(run, node, element, inner)))
    if isinstance(node, ast.DictComp):
        return Map({key(name): (name, value) for name, value in found}, open=not whole)
    items = [name for name, _ in found]
    if isinstance(node, ast.SetComp):
        return sequence(distinct(items), "set", is_open=not whole)
    return sequence(items, is_open=not whole)


def _pair(run: Run, node: ast.expr, element: ast.expr, scope: Scope) -> tuple[Value, Value]:
    name = run.value(element, scope)
    return (name, run.value(node.value, scope) if isinstance(node, ast.DictComp) else name)


def _rounds(run: Run, node: Any, number: int, scope: Scope, body: Callable[[], None]) -> bool:
    """Follow the ``for`` parts of a comprehension from ``number`` on; whether all that they go through is known."""
    if number == len(node.generators):
        body()
        return True
    generator: ast.comprehension = node.generators[number]
    whole = True

    def once() -> Flow:
        nonlocal whole
        for test in generator.ifs:
            known = truth(run.value(test, scope))
            if known is False:
                return "on"
            whole = whole and known is not None
        whole = _rounds(run, node, number + 1, scope, body) and whole
        return "on"

    known, _ = run.rounds(generator.target, run.value(generator.iter, scope), scope, once)
    return known and whole


_EXPRESSIONS: Final[dict[type[ast.expr], Callable[[Run, Any, Scope], Value]]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.JoinedStr: _joined,
    ast.FormattedValue: _formatted,
    ast.BinOp: _binary,
    ast.BoolOp: _either,
    ast.Compare: _compare,
    ast.UnaryOp: _unary,
    ast.IfExp: _conditional,
    ast.List: _collection,
    ast.Tuple: _collection,
    ast.Set: _collection,
    ast.Dict: _mapping,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Lambda: _lambda,
    ast.NamedExpr: _walrus,
    ast.Await: _through,
    ast.Starred: _through,
    ast.Yield: _yield,
    ast.YieldFrom: _yield,
    ast.Subscript: _subscript,
}
