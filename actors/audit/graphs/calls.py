"""The value that a call in the audited program gives, and its effect on graphs; pure. See ``run``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

import msgspec

from pmagent.actors.audit.graphs.arguments import Arguments
from pmagent.actors.audit.graphs.build import BUILDERS, begin, build, note
from pmagent.actors.audit.graphs.members import ancestry, attribute, class_attribute, is_enum
from pmagent.actors.audit.graphs.methods import dict_method, formatted, list_method, string_method
from pmagent.actors.audit.graphs.prebuilt import prebuilt
from pmagent.actors.audit.graphs.pure import called, items_of, ordered, truth
from pmagent.actors.audit.graphs.scope import Scope
from pmagent.actors.audit.graphs.values import (
    UNKNOWN,
    Builder,
    Class,
    Compiled,
    Const,
    External,
    Func,
    Goto,
    Inst,
    Map,
    Member,
    Method,
    OneOf,
    Packet,
    Seq,
    Super,
    Thing,
    Value,
    constant,
    key,
    one_of,
    text_of,
)

if TYPE_CHECKING:
    from pmagent.actors.audit.graphs.run import Run

CALLS_MAX: Final = 16
"""So deep calls are followed."""

_FIELDS: Final = frozenset(("dataclasses.field", "pydantic.Field", "attrs.field"))
_GROWING: Final = frozenset(("append", "add", "extend", "insert", "update"))
_THROUGH: Final = frozenset((
    "asyncio.run", "asyncio.create_task", "copy.copy", "copy.deepcopy", "functools.wraps",
    "itertools.chain.from_iterable",
))
"""Functions whose result is their first argument, as far as graphs are concerned."""


def call(run: Run, callee: Value, given: Arguments) -> Value:
    """The result of calling a value."""
    if isinstance(callee, OneOf):
        able = [one for one in callee.options if isinstance(one, Func | Class | External | Method)]
        return one_of(call(run, one, given) for one in able[:4]) if able else UNKNOWN
    if isinstance(callee, Func):
        return _function(run, callee, given)
    if isinstance(callee, Class):
        return _instance(run, callee, given)
    if isinstance(callee, Inst):
        own = class_attribute(callee.owner, "__call__", callee)
        return call(run, own, given) if own is not None else UNKNOWN
    if isinstance(callee, External):
        return _external(run, callee.name, given)
    if isinstance(callee, Thing) and callee.maker.rpartition(".")[2] in BUILDERS:
        return _external(run, callee.maker, given)
    if isinstance(callee, Method):
        return _method(run, callee, given)
    _handed_out(given)
    return UNKNOWN


def _function(run: Run, function: Func, given: Arguments) -> Value:
    """Follow a call into a function of the repository; not when it is in the midst of one already."""
    run.entered.add(function.node)
    if isinstance(function.owner, Inst | Builder) and function.owner.owner is not None:
        run.entered_on.add((function.node, function.owner.owner.node))
    if len(run.stack) >= CALLS_MAX or any(one.node is function.node for one in run.stack):
        return UNKNOWN
    scope = Scope(function.scope.path, "function", function.scope)
    scope.begun = (run.arms, run.loose)
    _bind(run, function, given, scope)
    run.stack.append(function)
    left, run.left = run.left, set()
    try:
        if isinstance(function.node, ast.Lambda):
            return run.value(function.node.body, scope)
        flow = run.block(function.node.body, scope)
    finally:
        run.stack.pop()
        run.left = left
    if flow == "on":
        scope.returned.append(Const(None))
    return scope.gives() or UNKNOWN


def _bind(run: Run, function: Func, given: Arguments, scope: Scope) -> None:
    """Bind the parameters of a function to what is given, to their defaults, or to what is unknown."""
    parameters = function.node.args
    args = [*([function.owner] if function.owner is not None else []), *function.bound, *given.args]
    named = {**function.named, **given.named}
    places = [*parameters.posonlyargs, *parameters.args]
    first = len(places) - len(parameters.defaults)
    defaults = dict(zip([one.arg for one in places[first:]], parameters.defaults, strict=True))
    named_only = zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
    defaults.update((one.arg, default) for one, default in named_only if default is not None)
    for number, place in enumerate([*places, *parameters.kwonlyargs]):
        name = place.arg
        if number < min(len(args), len(places)):
            value = args[number]
        elif name in named:
            value = named.pop(name)
        elif name in defaults and not given.open:
            value = run.value(defaults[name], function.scope)
            if (given.unknown and not isinstance(value, Const | Seq | Map | Member)) or _either_way(value, given):
                value = UNKNOWN
        else:
            value = UNKNOWN
        scope.bind(name, value)
    if parameters.vararg is not None:
        rest = args[len(places) :]
        scope.bind(parameters.vararg.arg, Seq(rest, "tuple", given.open or given.unknown))
    if parameters.kwarg is not None:
        rest_named: dict[object, tuple[Value, Value]] = {key(Const(one)): (Const(one), named[one]) for one in named}
        scope.bind(parameters.kwarg.arg, Map(rest_named, given.open or given.unknown))


def _either_way(value: Value, given: Arguments) -> bool:
    """A default that a caller may well replace: a switch, or nothing."""
    return given.unknown and isinstance(value, Const) and (value.value is None or isinstance(value.value, bool))


def _instance(run: Run, owner: Class, given: Arguments) -> Value:
    """A new instance. A class that inherits from LangGraph's builders makes a builder."""
    if is_enum(owner):
        return _member(owner, given)
    instance: Value = UNKNOWN
    for base in ancestry(owner):
        if isinstance(base, External) and _kind(base.name) in BUILDERS:
            instance = begin(run, _kind(base.name), given, owner=owner)
            break
    else:
        instance = Inst(owner, dict(given.named))
        run.instances.setdefault(owner.node, instance)
    start = class_attribute(owner, "__init__", instance)
    if isinstance(start, Func):
        call(run, start, given)
    elif isinstance(instance, Inst):
        _fields(run, owner, instance, given)
    return instance


def _fields(run: Run, owner: Class, instance: Inst, given: Arguments) -> None:
    """Set the fields of a dataclass, a named tuple or a model: as given, else as their defaults say."""
    lines = [one.target for one in owner.node.body if isinstance(one, ast.AnnAssign)]
    names = [one.id for one in lines if isinstance(one, ast.Name)]
    instance.attributes.update(zip(names, given.args, strict=False))
    for name in names:
        default = owner.members.get(name)
        if name in instance.attributes or not isinstance(default, Thing) or default.maker not in _FIELDS:
            continue
        factory = default.named.get("default_factory")
        value = call(run, factory, Arguments()) if factory is not None else default.named.get("default")
        instance.attributes[name] = value or UNKNOWN
    after = class_attribute(owner, "__post_init__", instance)
    if isinstance(after, Func):
        call(run, after, Arguments())


def _member(owner: Class, given: Arguments) -> Value:
    members = [one for one in owner.members.values() if isinstance(one, Member)]
    wanted = key(given.args[0]) if given.args and isinstance(given.args[0], Const) else None
    return one_of(one for one in members if wanted is None or key(one.value) == wanted)


def _kind(name: str) -> str:
    return name.rpartition(".")[2] if name.partition(".")[0] == "langgraph" else ""


def _external(run: Run, name: str, given: Arguments) -> Value:
    """A call of something outside the repository."""
    package = name.partition(".")[0]
    last = name.rpartition(".")[2]
    if package == "builtins":
        return _builtin(run, last, given)
    if _kind(name) in BUILDERS:
        return begin(run, last, given)
    if _kind(name) == "Send":
        return Packet(given.get(0, "node") or UNKNOWN)
    if _kind(name) == "Command":
        return _goto(given)
    if (made := prebuilt(run, name, given)) is not None:
        return made
    if name == "functools.partial":
        return _partial(given)
    if last == "get_args" and given.args and isinstance(given.args[0], Thing):
        return Seq(list(given.args[0].args), "tuple")
    if name in _THROUGH or name == "typing.cast":
        return given.args[-1] if given.args else UNKNOWN
    if package == "itertools" and (worked := called(last, given.args, given.named)) is not None:
        return worked
    _handed_out(given)
    return Thing(name, given.args, given.named)


def _handed_out(given: Arguments) -> None:
    """Note each builder that is given to a function that is not read here: the function may add to it."""
    for value in [*given.args, *given.named.values()]:
        if isinstance(value, Builder):
            note(value, given.line, "the builder is handed to a function that is not in the repository")


def _goto(given: Arguments) -> Value:
    graph = given.named.get("graph")
    parent = graph is not None and not (isinstance(graph, Const) and graph.value is None)
    return Goto(given.named.get("goto", Seq([], "tuple")), parent)


def _partial(given: Arguments) -> Value:
    if not given.args:
        return UNKNOWN
    first, *rest = given.args
    if not isinstance(first, Func):
        return Thing("functools.partial", given.args, given.named)
    named = {**first.named, **given.named}
    return msgspec.structs.replace(first, bound=[*first.bound, *rest], named=named, partial=True)


def _builtin(run: Run, name: str, given: Arguments) -> Value:
    if name == "super":
        return _super(run)
    if name == "map" and len(given.args) == 2:
        return _mapped(run, given)
    if name == "sorted" and given.args and given.named:
        return _sorted(run, given)
    if name == "getattr" and len(given.args) > 1 and (field := text_of(given.args[1])) is not None:
        return attribute(given.args[0], field)
    if name == "dict" and not given.args:
        return Map({key(Const(word)): (Const(word), value) for word, value in given.named.items()}, given.open)
    if name in ("list", "tuple", "set") and not given.args:
        return Seq([])
    worked = called(name, given.args, given.named)
    return Thing(f"builtins.{name}", given.args, given.named) if worked is None else worked


def _mapped(run: Run, given: Arguments) -> Value:
    items = called("list", given.args[1:], {})
    if not isinstance(items, Seq):
        items = Seq([UNKNOWN], open=True)
    return Seq(
        [call(run, given.args[0], msgspec.structs.replace(given, args=[one])) for one in items.items], open=items.open
    )


def _sorted(run: Run, given: Arguments) -> Value:
    """``sorted(…, key=…, reverse=…)``."""
    chosen, items = given.named.get("key"), items_of(given.args[0])
    if chosen is not None and items is not None:
        values = [call(run, chosen, msgspec.structs.replace(given, args=[one], named={})) for one in items.items]
        items = Seq(values, open=items.open)
    backwards = truth(given.named.get("reverse", Const(value=False)))
    return UNKNOWN if backwards is None else ordered(given.args[0], items, backwards=backwards)


def _super(run: Run) -> Value:
    """``super()`` in the method that is being followed."""
    function = run.stack[-1] if run.stack else None
    if function is None or function.owner is None:
        return UNKNOWN
    owner = function.owner.owner if isinstance(function.owner, Inst | Builder) else function.owner
    if not isinstance(owner, Class):
        return UNKNOWN
    holders = [one for one in ancestry(owner) if isinstance(one, Class)]
    holder = next((one for one in holders if _holds(one, function)), owner)
    return Super(holder, function.owner)


def _holds(owner: Class, function: Func) -> bool:
    return any(isinstance(value, Func) and value.node is function.node for value in owner.members.values())


def _method(run: Run, method: Method, given: Arguments) -> Value:
    owner, name = method.owner, method.name
    if isinstance(owner, Builder):
        return build(run, owner, name, given)
    if isinstance(owner, Compiled):
        return owner if name in ("with_config", "with_retry", "with_types") else UNKNOWN
    if isinstance(owner, Seq):
        if name in _GROWING and owner.born is not None and run.loose > owner.born[1]:
            owner.open, owner.bounded = True, False
        return list_method(owner, name, given.args, given.named, sure=run.sure(owner))
    if isinstance(owner, Map):
        return dict_method(owner, name, given.args, given.named, sure=run.sure(owner))
    if (found := constant(owner)) is not None and isinstance(found.value, str):
        if name == "format":
            return formatted(found.value, given.args, given.named) if not given.open else UNKNOWN
        return string_method(found.value, name, given.args)
    if isinstance(owner, Thing):
        kept = name in ("with_config", "with_retry", "bind", "with_fallbacks")
        return owner if kept else Thing(f"{owner.maker}.{name}", given.args, given.named)
    return UNKNOWN
