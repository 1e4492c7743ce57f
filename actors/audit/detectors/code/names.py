"""The dotted name of an expression in a Python file, through imports, aliases and simple assignments; pure.

``sp.run`` under ``import subprocess as sp`` is ``subprocess.run``; a call's result is the name with ``()`` behind it:
``tempfile.TemporaryDirectory().name``. An expression that stands for nothing that can be told gives "".
"""

from __future__ import annotations

import ast
import builtins
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pmagent.actors.audit.detectors.code.scopes import Binding, Function, Module, Scope, Site
from pmagent.actors.audit.detectors.code.tree import LEAVES, children

DEPTH_MAX: Final = 16
"""So many steps (attributes, assignments) are followed for one name."""
BINDINGS_MAX: Final = 24
"""So many assignments to one name are looked at."""

_BUILTINS: Final = frozenset(dir(builtins))
_STARRED: Final = {
    "os": ("system", "popen", "getcwd", "environ", "getenv", "path"),
    "subprocess": ("run", "call", "Popen", "check_call", "check_output", "getoutput", "getstatusoutput"),
    "pickle": ("load", "loads", "Unpickler"),
    "tempfile": ("mkdtemp", "TemporaryDirectory", "gettempdir"),
    "pydantic": ("BaseModel", "Field"),
    "typing": ("TypedDict", "Annotated", "NamedTuple"),
    "langgraph.graph": ("StateGraph", "MessagesState", "START", "END", "add_messages"),
}


def dotted(module: Module, expression: ast.expr, scope: Scope, depth: int = 0) -> str:
    """The dotted name of ``expression`` as it is read in ``scope``. A name of the file's own is ``:name``, an
    attribute of ``self`` what is assigned to it."""
    if depth > DEPTH_MAX:
        return ""
    match expression:
        case ast.Name(id=name):
            return _of_name(module, name, expression, scope, depth)
        case ast.Attribute(value=value, attr=attr):
            own = _of_self(module, expression, scope, depth)
            if own:
                return own
            base = dotted(module, value, scope, depth + 1)
            return f"{base}.{attr}" if base else ""
        case ast.Call(func=func):
            return _of_call(module, expression, func, scope, depth)
        case ast.Await(value=value) | ast.NamedExpr(value=value):
            return dotted(module, value, scope, depth + 1)
    return ""


def called(module: Module, call: ast.Call, site: Site) -> str:
    """The dotted name of what ``call`` calls; looked up once for all detectors."""
    name = module.called.get(call)
    if name is None:
        name = module.called[call] = dotted(module, call.func, site.scope)
    return name


class Indexed(dict[str, list[int]]):
    """Which of some nodes, by their number, have to do with a word."""

    def of(self, words: Iterable[str]) -> list[int]:
        """Those that have to do with one of ``words``, in their order."""
        found = [self[word] for word in self.keys() & set(words)]
        return found[0] if len(found) == 1 else sorted({number for numbers in found for number in numbers})


def by_word(module: Module, kind: type[ast.Call | ast.Subscript]) -> Indexed:
    """The sites of calls or subscripts by the last word of what is called, or subscripted: as it is written, and,
    if it is a name or an attribute of ``self``, as it is bound. Made once for all detectors."""
    if (kind, "words") not in module.results:
        found = module.results[kind, "words"] = Indexed()
        for number, site in enumerate(module.sites(kind)):
            node: Any = site.node
            owner = node.func if kind is ast.Call else node.value
            named = type(owner) is ast.Attribute
            written = owner.attr if named else last_name(owner)
            found.setdefault(written, []).append(number)
            if not named or _is_self(owner.value):
                called_so = called(module, site.node, site) if isinstance(site.node, ast.Call) else None
                name = dotted(module, owner, site.scope) if called_so is None else called_so
                bound = name.rstrip("()").rpartition(".")[2].lstrip(":")
                if bound not in ("", written):
                    found.setdefault(bound, []).append(number)
    index: Indexed = module.results[kind, "words"]
    return index


def calls_of(module: Module, words: Iterable[str]) -> Iterator[tuple[ast.Call, Site]]:
    """The calls that may be of something whose name ends with one of ``words``, in the order in which they stand."""
    calls = module.calls()
    return (calls[number] for number in by_word(module, ast.Call).of(words))


def _is_self(owner: ast.expr) -> bool:
    return isinstance(owner, ast.Name) and owner.id in {"self", "cls"}


def last_name(expression: ast.expr | None) -> str:
    """The last part of what is written there: ``run`` of ``self.tools.run``, of ``run(x)`` and of ``run[T]``."""
    for _ in range(DEPTH_MAX):  # tests of a kind: this is asked of every call, and a match is twice as slow
        if isinstance(expression, ast.Attribute):
            return expression.attr
        if isinstance(expression, ast.Name):
            return expression.id
        if isinstance(expression, ast.Call):
            expression = expression.func
        elif isinstance(expression, ast.Subscript | ast.Await):
            expression = expression.value
        elif isinstance(expression, ast.Constant) and isinstance(expression.value, str):  # a quoted annotation
            text = expression.value
            return text.rpartition(".")[2] if text.replace(".", "").isidentifier() else ""
        else:
            return ""
    return ""


def bindings(scope: Scope, expression: ast.expr) -> list[Binding]:
    """The bindings of a name or of an attribute of ``self``: its assignments, parameters, imports, in order."""
    match expression:
        case ast.Name(id=name):
            found = scope.lookup(name)
            return [] if found is None else found[1][-BINDINGS_MAX:]
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            around = scope.enclosing_class
            return [] if around is None else around.attributes.get(name, [])[-BINDINGS_MAX:]
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            found = scope.lookup(owner)
            if found is not None and found[1][-1].kind == "class":
                inner = class_attributes(found[1][-1], name)
                return inner[-BINDINGS_MAX:]
    return []


def class_attributes(binding: Binding, name: str) -> list[Binding]:
    """The bindings of ``name`` in the body of a class."""
    found: list[Binding] = []
    if isinstance(binding.node, ast.ClassDef):
        for stmt in binding.node.body:
            match stmt:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                    found.append(Binding("value", stmt, binding.scope, value))
                case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
                    found.append(Binding("value", stmt, binding.scope, value))
                case ast.FunctionDef(name=target) | ast.AsyncFunctionDef(name=target) if target == name:
                    found.append(Binding("function", stmt, binding.scope))
    return found


def nearest(found: list[Binding], line: int, here: bool) -> Binding | None:
    """The binding that holds at ``line``: of those in the same scope (``here``) the last one before, else the last."""
    if not found:
        return None
    if not here:
        return found[-1]
    earlier = bisect_left(found, line, key=lambda binding: binding.line)
    return found[max(0, earlier - 1)]


def _of_name(module: Module, name: str, node: ast.Name, scope: Scope, depth: int) -> str:
    found = scope.lookup(name)
    if found is None:
        if name in _BUILTINS:
            return f"builtins.{name}"
        return next((f"{star}.{name}" for star in module.stars if name in _STARRED.get(star, ())), "")
    home, all_bindings = found
    binding = nearest(all_bindings, node.lineno, home is scope)
    if binding is None:
        return ""
    match binding.kind:
        case "import":
            return binding.dotted
        case "function" | "class":
            return f":{name}"
        case "value" | "with" if binding.value is not None:
            return dotted(module, binding.value, binding.scope, depth + 2)
    return ""


def _of_self(module: Module, expression: ast.Attribute, scope: Scope, depth: int) -> str:
    """The dotted name of what an attribute of ``self`` is assigned, if that has one. Found out once: attributes may be
    assigned to each other in as many ways as there are."""
    if not _is_self(expression.value):
        return ""
    around = scope.enclosing_class
    if around is None:
        return ""
    known = module.attributes.get((around, expression.attr))
    if known is None:
        module.attributes[around, expression.attr] = ""  # for whoever comes round in a ring
        known = module.attributes[around, expression.attr] = _assigned(module, expression, scope, depth)
    return known


def _assigned(module: Module, expression: ast.Attribute, scope: Scope, depth: int) -> str:
    told = [one for one in bindings(scope, expression) if not isinstance(one.value, ast.Constant)]
    for binding in told[-2:]:
        if binding.kind in {"value", "with"} and binding.value is not None:
            name = dotted(module, binding.value, binding.scope, depth + 2)
            if name:
                return name
        if binding.kind == "function":
            return f":{expression.attr}"
    return ""


def _of_call(module: Module, call: ast.Call, func: ast.expr, scope: Scope, depth: int) -> str:
    name = dotted(module, func, scope, depth + 1)
    match name, call.args:
        case "builtins.__import__" | "importlib.import_module", [ast.Constant(value=str(imported)), *_]:
            return imported
        case "builtins.getattr", [owner, ast.Constant(value=str(attr)), *_]:
            base = dotted(module, owner, scope, depth + 1)
            return f"{base}.{attr}" if base else ""
    return f"{name}()" if name else ""


def own_function(module: Module, expression: ast.expr, scope: Scope) -> Function | None:
    """The function of this file that ``expression`` names, be it a method of the class around."""
    for binding in reversed(bindings(scope, expression)):
        if isinstance(binding.node, Function) and binding.kind == "function":
            return binding.node
    if isinstance(expression, ast.Name):
        followed = dotted(module, expression, scope)
        if followed.startswith(":"):
            found = module.scope.bindings.get(followed[1:], [])
            return next((one.node for one in reversed(found) if isinstance(one.node, Function)), None)
    return None


def parameters(function: Function) -> list[ast.arg]:
    """Its parameters in the order of a call, those by keyword only last."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def keyword(call: ast.Call, *names: str) -> ast.expr | None:
    """The value given to one of these keywords."""
    return next((one.value for one in call.keywords if one.arg in names), None)


def argument(call: ast.Call, index: int, *names: str) -> ast.expr | None:
    """The value of a parameter given at ``index`` or by one of ``names``."""
    if index < len(call.args) and not any(isinstance(one, ast.Starred) for one in call.args[: index + 1]):
        return call.args[index]
    return keyword(call, *names)


WITHIN: Final = frozenset((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
_CLOSED: Final = WITHIN | LEAVES


def walk(*nodes: ast.AST) -> Iterator[ast.AST]:
    """These nodes and all below them, see ``children``."""
    todo = list(nodes)
    while todo:
        node = todo.pop()
        yield node
        todo += children(node)


def inside(node: ast.AST) -> Sequence[ast.AST]:
    """All nodes of a function's body or an expression, those of functions and classes within left out. Of a function
    they are kept with it, for several detectors ask."""
    found: list[ast.AST] | None = vars(node).get("_inside")
    if found is None:
        found, todo = [], list(children(node))
        while todo:
            one = todo.pop()
            found.append(one)
            if type(one) not in _CLOSED:
                todo += children(one)
        if type(node) in WITHIN or isinstance(node, ast.Module):
            vars(node)["_inside"] = found
    return found
