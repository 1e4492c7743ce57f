"""The text of a string expression in a Python file, without running it: concatenations, f-strings, joins, names; pure.

A folded expression is a row of pieces: text, and expressions whose value is not known (holes).
"""

from __future__ import annotations

import ast
import inspect
import re
import string
import textwrap
from collections.abc import Callable, Iterator
from typing import Final

from pmagent.actors.audit.detectors.code.names import bindings, dotted, nearest
from pmagent.actors.audit.detectors.code.scopes import Binding, Module, Scope

Piece = str | ast.expr

CHARS_MAX: Final = 100_000
STEPS_MAX: Final = 400
"""So many expressions are looked at for one string; what is beyond is a hole."""
_PERCENT: Final = re.compile(r"%(?:\([^)]*\))?[#0 +-]*\d*(?:\.\d+)?[sdrfiux]|%%")
_STRIPPED: Final = frozenset({"strip", "lstrip", "rstrip", "lower", "upper", "title", "encode", "expandtabs"})
_UNINDENTED: Final[dict[str, Callable[[str], str]]] = {
    "textwrap.dedent": textwrap.dedent,
    "inspect.cleandoc": inspect.cleandoc,
}


class _Budget:
    """How much may still be looked at, and how much text be made."""

    def __init__(self) -> None:
        self.steps = STEPS_MAX
        self.chars = CHARS_MAX

    def spend(self, chars: int = 0) -> bool:
        self.steps -= 1
        self.chars -= chars
        return self.steps > 0 and self.chars > 0


def pieces(module: Module, expression: ast.expr, scope: Scope) -> list[Piece]:
    """The pieces of a string; one hole, if it is nothing of the kind. Neighbouring texts are one."""
    joined: list[Piece] = []
    for piece in _pieces(module, expression, scope, _Budget()):
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


def folded(module: Module, expression: ast.expr | None, scope: Scope) -> str | None:
    """The text of a string that is known as a whole."""
    if expression is None:
        return None
    found = pieces(module, expression, scope)
    if not found:
        return ""
    return found[0] if len(found) == 1 and isinstance(found[0], str) else None


def with_holes(module: Module, expression: ast.expr, scope: Scope, hole: str = "{}") -> str | None:
    """The text of a string with ``hole`` where its value is not known; None, if nothing of it is."""
    found = pieces(module, expression, scope)
    if not any(isinstance(piece, str) for piece in found):
        return None
    return "".join(piece if isinstance(piece, str) else hole for piece in found)


def is_constant(module: Module, expression: ast.expr, scope: Scope) -> bool:
    """Whether ``expression`` has the same value in every run: literals, what is made of them, names for nothing else.

    A name counts if every assignment to it does; a parameter never does.
    """
    budget = _Budget()
    todo = [(expression, scope)]
    seen: set[ast.expr] = set()
    while todo:
        one, seen_from = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        if not budget.spend():
            return False
        match one:
            case ast.Constant():
                pass
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                todo.extend((part, seen_from) for part in parts)
            case ast.Starred(value=value) | ast.UnaryOp(operand=value):
                todo.append((value, seen_from))
            case ast.IfExp(body=body, orelse=orelse):
                todo += [(body, seen_from), (orelse, seen_from)]
            case ast.Name() | ast.Attribute():
                values = _assigned(seen_from, one)
                if not values:
                    return False
                todo += values
            case _:
                if not all(isinstance(piece, str) for piece in _pieces(module, one, seen_from, budget)):
                    return False
    return True


def _assigned(scope: Scope, name: ast.Name | ast.Attribute) -> list[tuple[ast.expr, Scope]]:
    """All values that a name is given, and where to read them; none, if there is another way for it to get one."""
    found: list[tuple[ast.expr, Scope]] = []
    told = bindings(scope, name)
    if not told and isinstance(name, ast.Attribute) and name.attr == "value":  # of an enum's member
        told = bindings(scope, name.value)
    for binding in told:
        if binding.kind not in {"value", "augmented", "loop"} or binding.value is None:
            return []
        found.append((binding.value, binding.scope))
    return found


def _pieces(  # noqa: C901 - one case for each kind of expression
    module: Module, expression: ast.expr, scope: Scope, budget: _Budget, depth: int = 0
) -> Iterator[Piece]:
    if depth > 12 or not budget.spend():
        yield expression
        return
    match expression:
        case ast.Constant(value=str(text)):
            yield text if budget.spend(len(text)) else expression
        case ast.Constant(value=bytes(data)):
            yield data.decode("latin-1") if budget.spend(len(data)) else expression
        case ast.JoinedStr(values=values):
            for value in values:
                yield from _pieces(module, value, scope, budget, depth + 1)
        case ast.FormattedValue(value=ast.Constant(value=int() | float() as number), format_spec=None):
            yield str(number)
        case ast.FormattedValue(value=value, format_spec=None, conversion=-1 | 115):
            yield from _pieces(module, value, scope, budget, depth + 1)
        case ast.FormattedValue(value=value):
            yield value
        case ast.BinOp(op=ast.Add()):
            for part in _added(expression):
                yield from _pieces(module, part, scope, budget, depth + 1)
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            yield from _percent(module, left, right, scope, budget, depth)
        case ast.Call():
            yield from _call(module, expression, scope, budget, depth)
        case ast.Name() | ast.Attribute():
            binding = _one(scope, expression)
            if binding is None or binding.value is None:
                yield expression
            else:
                yield from _known(module, expression, binding, budget, depth)
        case ast.NamedExpr(value=value):
            yield from _pieces(module, value, scope, budget, depth + 1)
        case _:
            yield expression


def _added(expression: ast.expr) -> list[ast.expr]:
    """The summands of ``a + b + c``, however many."""
    parts: list[ast.expr] = []
    while isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add):
        parts.append(expression.right)
        expression = expression.left
    return [expression, *reversed(parts)]


def _one(scope: Scope, expression: ast.Name | ast.Attribute) -> Binding | None:
    """The one value that a name is given; None, if there is another way for it to get one."""
    if isinstance(expression, ast.Attribute) and expression.attr == "value":  # of an enum's member
        inner = bindings(scope, expression.value)
        if len(inner) == 1 and inner[0].kind == "value" and inner[0].value is not None:
            return inner[0]
    found = bindings(scope, expression)
    if not found or any(binding.kind != "value" for binding in found):
        return None
    if isinstance(expression, ast.Name):
        home = scope.lookup(expression.id)
        return nearest(found, expression.lineno, home is not None and home[0] is scope)
    return found[0] if len(found) == 1 else None


def _known(module: Module, expression: ast.expr, binding: Binding, budget: _Budget, depth: int) -> Iterator[Piece]:
    """The pieces of what a name stands for; the name itself is the hole, where that is no string."""
    assert binding.value is not None
    found = list(_pieces(module, binding.value, binding.scope, budget, depth + 1))
    if any(isinstance(piece, str) for piece in found):
        yield from found
    else:
        yield expression


def _percent(
    module: Module, left: ast.expr, right: ast.expr, scope: Scope, budget: _Budget, depth: int
) -> Iterator[Piece]:
    template = list(_pieces(module, left, scope, budget, depth + 1))
    if not all(isinstance(piece, str) for piece in template):
        yield from template
        yield right
        return
    values = list(right.elts) if isinstance(right, ast.Tuple) else [right]
    text = "".join(piece for piece in template if isinstance(piece, str))
    place = 0
    for match in _PERCENT.finditer(text):
        yield text[place : match.start()]
        place = match.end()
        if match[0] == "%%":
            yield "%"
        elif values:
            yield from _pieces(module, values[0], scope, budget, depth + 1)
            values = values[1:] if len(values) > 1 or isinstance(right, ast.Tuple) else values
        else:
            yield right
    yield text[place:]


def _call(module: Module, call: ast.Call, scope: Scope, budget: _Budget, depth: int) -> Iterator[Piece]:
    match call:
        case ast.Call(func=ast.Attribute(value=owner, attr="join"), args=[ast.List() | ast.Tuple() as row]):
            between = list(_pieces(module, owner, scope, budget, depth + 1))
            for number, part in enumerate(row.elts):
                if number:
                    yield from between
                yield from _pieces(module, part, scope, budget, depth + 1)
            return
        case ast.Call(func=ast.Attribute(value=owner, attr="format"), args=arguments, keywords=keywords):
            named = {one.arg: one.value for one in keywords if one.arg}
            yield from _formatted(module, call, list(arguments), named, scope, budget, depth)
            return
        case ast.Call(func=ast.Attribute(value=owner, attr=attr), args=[]) if attr in _STRIPPED:
            found = list(_pieces(module, owner, scope, budget, depth + 1))
            if not any(isinstance(piece, str) for piece in found):
                yield call
            elif attr.endswith("strip") and len(found) == 1 and isinstance(found[0], str):
                yield found[0].strip()
            else:
                yield from found
            return
        case ast.Call(func=ast.Name(id="str"), args=[text]):
            yield from _pieces(module, text, scope, budget, depth + 1)
            return
    unindent = _UNINDENTED.get(dotted(module, call.func, scope)) if call.args else None
    if unindent is None:
        yield call
        return
    found = list(_pieces(module, call.args[0], scope, budget, depth + 1))
    if all(isinstance(piece, str) for piece in found):
        yield unindent("".join(piece for piece in found if isinstance(piece, str)))
    else:
        yield from found


def _formatted(
    module: Module, call: ast.Call, positional: list[ast.expr], named: dict[str, ast.expr], scope: Scope,
    budget: _Budget, depth: int,
) -> Iterator[Piece]:  # fmt: skip
    assert isinstance(call.func, ast.Attribute)
    template = list(_pieces(module, call.func.value, scope, budget, depth + 1))
    if not all(isinstance(piece, str) for piece in template):
        yield from template
        yield from [*positional, *named.values()]
        return
    try:
        fields = list(string.Formatter().parse("".join(piece for piece in template if isinstance(piece, str))))
    except ValueError:  # not a template that Python accepts
        yield call
        return
    automatic = 0
    for text, field, _spec, _conversion in fields:
        yield text
        if field is None:
            continue
        value: ast.expr | None
        if field.isdecimal() or not field:
            index = int(field) if field else automatic
            automatic += 1
            value = positional[index] if index < len(positional) else None
        else:
            value = named.get(field)
        if value is None:
            yield call
        else:
            yield from _pieces(module, value, scope, budget, depth + 1)
