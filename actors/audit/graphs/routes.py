"""Where a graph goes on: what the functions of conditional edges choose, and what nodes command; pure.

LangGraph itself knows the targets of a conditional edge from its map or from the function's annotation
``Literal[…]``, those of a node that returns ``Command`` from its annotation ``Command[Literal[…]]`` or from
``destinations``; then these are taken. Where neither is there it draws no edge at all; here the function's own returned
constants are taken, as far as they are constants.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from pmagent.actors.audit.graphs.arguments import Arguments
from pmagent.actors.audit.graphs.build import WRAPPERS, note
from pmagent.actors.audit.graphs.calls import call
from pmagent.actors.audit.graphs.failure import decides_by_failure
from pmagent.actors.audit.graphs.members import class_attribute
from pmagent.actors.audit.graphs.pure import items_of
from pmagent.actors.audit.graphs.values import (
    END,
    START,
    UNKNOWN,
    BranchSeen,
    Builder,
    Compiled,
    Const,
    EdgeSeen,
    External,
    Func,
    Goto,
    Inst,
    Map,
    NodeSeen,
    Packet,
    Seq,
    Thing,
    Value,
    alternatives,
    text_of,
    texts_of,
)

if TYPE_CHECKING:
    from pmagent.actors.audit.graphs.run import Run

STEPS: Final = 20_000
"""So many steps a function that chooses is followed for."""
WAYS_MAX: Final = 1_000
_ARGUMENTS_MAX: Final = 64


class Way(NamedTuple):
    """Where it may go; ``target`` None: not known. ``many``: to several at once."""

    target: str | None
    kind: Literal["name", "send"] = "name"
    many: bool = False


def settle(run: Run, builders: list[Builder]) -> None:
    """Add the edges of all conditional edges and of all commands."""
    for builder in builders:
        for branch in builder.branches:
            _branch(run, builder, branch)
    for builder in builders:
        for node in list(builder.nodes.values()):
            _commands(run, builder, node)
    for builder in builders:
        for command in (one for tool in builder.tools for one in _handed_over(run, tool)):
            for owner, name in _parents(run, builder):
                if (node := owner.nodes[name]).destinations is None:
                    _follow(owner, name, node, command)


def _handed_over(run: Run, tool: Value) -> list[Goto]:
    """The commands of a tool to the graph around its agent."""
    if isinstance(tool, Thing) and tool.maker.endswith(".create_handoff_tool"):
        return [Goto(tool.named.get("agent_name", UNKNOWN), parent=True)]
    function = function_of(tool)
    if not isinstance(function, Func) or "Command" not in run.program.sources[function.scope.path].text:
        return []
    result, _ = run.within(STEPS, lambda: call(run, function, Arguments(unknown=True)))
    return [command for command in _gotos(result) if command.parent]


def _branch(run: Run, builder: Builder, branch: BranchSeen) -> None:
    path = function_of(branch.path)
    name = path.name if isinstance(path, Func) else ""
    ways = _ways(run, path) if isinstance(path, Func) else [Way(None)]
    sent = {way.target for way in ways if way.kind == "send"}
    unread = any(way.target is None for way in ways)
    many = any(way.many for way in ways) or (unread and isinstance(path, Func) and _several(path))
    alarm = isinstance(path, Func) and decides_by_failure(path.node)
    before = len(builder.edges)
    for label, target in _targets(run, builder, branch, path, ways):
        kind: Literal["send", "conditional"] = "send" if target in sent else "conditional"
        builder.edges.append(EdgeSeen(
            branch.source, target, branch.line, branch.arms, kind, "" if label == target else label, name, many, alarm,
        ))
    if branch.then is not None:
        for after in texts_of(branch.then):
            if after is not None:
                ends = dict.fromkeys(edge.target for edge in builder.edges[before:] if edge.target != END)
                builder.edges.extend(EdgeSeen(end, after, branch.line, branch.arms) for end in ends)


def _targets(run: Run, builder: Builder, branch: BranchSeen, path: Value, ways: list[Way]) -> list[tuple[str, str]]:
    """The labels and targets of a conditional edge: of its map, else as annotated, else as returned."""
    if branch.path_map is not None:
        mapped = _mapped(builder, branch.path_map, branch.line)
        if mapped is not None:
            if not isinstance(path, Func | External):
                note(builder, branch.line, f"the function that chooses at {branch.source}")
            return mapped
    if isinstance(path, External) and path.name.endswith(".tools_condition"):
        return [("tools", "tools"), (END, END)]
    if isinstance(path, Func) and (declared := _declared(run, path, "")):
        return [(name, name) for name in declared]
    if any(way.target is None for way in ways):
        note(builder, branch.line, f"where the conditional edge of {branch.source} goes")
    return [(name, name) for name in dict.fromkeys(way.target for way in ways) if name is not None]


def _mapped(builder: Builder, path_map: Value, line: int) -> list[tuple[str, str]] | None:
    """The labels and targets of a map or list; None: it is neither."""
    found: list[tuple[str, str]] = []
    for option in alternatives(path_map):
        whole = items_of(option)
        if whole is None:
            note(builder, line, "the map of a conditional edge")
            return None
        pairs = list(option.entries.values()) if isinstance(option, Map) else [(one, one) for one in whole.items]
        if whole.more:
            note(builder, line, "the map of a conditional edge")
        for label, target in pairs:
            for name in texts_of(target):
                if name is None:
                    note(builder, line, "a target in the map of a conditional edge")
                else:
                    found.append((_label(label, name), name))
    return list(dict.fromkeys(found))


def _label(label: Value, target: str) -> str:
    text = text_of(label)
    if text is not None:
        return text
    return str(label.value) if isinstance(label, Const) else target


def function_of(value: Value) -> Value:
    """The function that is called when a value is called; the value itself, if there is none."""
    if isinstance(value, Inst):
        return class_attribute(value.owner, "__call__", value) or value
    if isinstance(value, Thing) and value.maker.rpartition(".")[2] in WRAPPERS and value.args:
        return function_of(value.args[0])
    functions = [option for option in alternatives(value) if isinstance(option, Func)]
    return functions[0] if len(functions) == 1 else value


def labels_chosen(run: Run, branch: BranchSeen) -> tuple[list[str], list[str]] | None:
    """The texts that the function of a conditional edge returns, and the labels of the edge's map. None: there is no
    map, or one of the two is not known whole."""
    path = function_of(branch.path)
    if not isinstance(path, Func) or not isinstance(branch.path_map, Map) or branch.path_map.open:
        return None
    labels = [text_of(label) for label, _ in branch.path_map.entries.values()]
    ways = _ways(run, path)
    chosen = [way.target for way in ways if way.kind == "name"]
    if None in labels or None in chosen or len(chosen) < len(ways):
        return None
    return [one for one in dict.fromkeys(chosen) if one is not None], [one for one in labels if one is not None]


def _ways(run: Run, function: Func) -> list[Way]:
    """Where what a function returns leads to; what it returns as nothing leads nowhere."""
    result, cut = run.within(STEPS, lambda: call(run, function, Arguments(unknown=True)))
    return [*itertools.islice(_leads(result), WAYS_MAX), *([Way(None)] if cut else [])]


def _leads(value: Value, *, many: bool = False, depth: int = 0) -> Iterator[Way]:
    for option in alternatives(value):
        if isinstance(option, Packet):
            for name in texts_of(option.target):
                yield Way(name, "send", many=True)
        elif isinstance(option, Seq) and depth < 4:
            for one in option.items:
                yield from _leads(one, many=many or len(option.items) > 1 or option.open, depth=depth + 1)
        elif not (isinstance(option, Const) and option.value is None):
            yield Way(text_of(option), many=many)


def _several(function: Func) -> bool:
    """Whether a function says that it returns a list."""
    returns = None if isinstance(function.node, ast.Lambda) else function.node.returns
    names = [
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(returns or ast.Constant(None))
        if isinstance(node, ast.Name | ast.Attribute)
    ]
    return any(name.lower() in ("list", "sequence", "iterable", "tuple", "set") for name in names)


def _declared(run: Run, function: Func, wanted: str) -> list[str]:
    """The names in ``Literal[…]`` of a return annotation; ``wanted``: only of those within this (``Command``)."""
    returns = None if isinstance(function.node, ast.Lambda) else function.node.returns
    if returns is None:
        return []
    parts, _ = run.within(STEPS, lambda: Seq(list(_annotation(run, returns, function, 0))))
    found: dict[str, None] = {}
    for value in parts.items if isinstance(parts, Seq) else ():
        found.update(dict.fromkeys(_literals(value, wanted, within=not wanted)))
    return list(found)


def _annotation(run: Run, node: ast.expr, function: Func, depth: int) -> Iterator[Value]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and depth < 2 and len(node.value) < 2_000:
        try:
            inner = ast.parse(node.value, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        yield from _annotation(run, inner, function, depth + 1)
    elif isinstance(node, ast.BinOp) and depth < 20:
        yield from _annotation(run, node.left, function, depth + 1)
        yield from _annotation(run, node.right, function, depth + 1)
    else:
        yield run.value(node, function.scope)


def _literals(value: Value, wanted: str, *, within: bool, depth: int = 0) -> Iterator[str]:
    if not isinstance(value, Thing) or depth > 6:
        return
    kind = value.maker.rpartition(".")[2]
    if kind == "Literal" and within:
        for argument in value.args:
            yield from (name for name in texts_of(argument) if name is not None)
        return
    for argument in value.args[:_ARGUMENTS_MAX]:
        yield from _literals(argument, wanted, within=within or kind == wanted, depth=depth + 1)


def _commands(run: Run, builder: Builder, node: NodeSeen) -> None:
    """The edges of a node that says itself where it goes on."""
    if node.destinations is not None:
        for label, target in _mapped_destinations(builder, node):
            _goto(builder, node, target, label, "goto")
        return
    function = function_of(node.action)
    if not isinstance(function, Func):
        return
    declared = _declared(run, function, "Command")
    if not declared and "Command" not in run.program.sources[function.scope.path].text:
        return
    result, _ = run.within(STEPS, lambda: call(run, function, Arguments(unknown=True)))
    before = len(builder.edges)
    for command in _gotos(result):
        if declared and not command.parent:
            _follow_declared(builder, node, command, declared)
            continue
        owners = _parents(run, builder) if command.parent else [(builder, node.name)]
        for owner, name in owners:
            _follow(owner, name, node, command)
    followed = {edge.target for edge in builder.edges[before:]}
    for name in declared:
        if name not in followed:
            _goto(builder, node, name, "", "goto")


def _mapped_destinations(builder: Builder, node: NodeSeen) -> list[tuple[str, str]]:
    assert node.destinations is not None
    found = items_of(node.destinations)
    if found is None or found.open:
        note(builder, node.line, f"the destinations of {node.name}")
        return []
    labels = node.destinations.entries.values() if isinstance(node.destinations, Map) else ()
    named = [(text_of(label) or "", text_of(target)) for target, label in labels]
    pairs = named or [("", text_of(target)) for target in found.items]
    return [(label, target) for label, target in pairs if target is not None]


def _gotos(value: Value) -> Iterator[Goto]:
    for option in alternatives(value):
        if isinstance(option, Goto):
            yield option
        elif isinstance(option, Seq):
            for one in option.items:
                yield from (found for found in alternatives(one) if isinstance(found, Goto))


def _follow(builder: Builder, name: str, node: NodeSeen, command: Goto) -> None:
    for way in itertools.islice(_leads(command.targets), WAYS_MAX):
        if way.target is None:
            note(builder, node.line, f"where {node.name} goes on by its command")
        else:
            _goto(builder, node, way.target, "", "send" if way.kind == "send" else "goto", name, many=way.many)


def _follow_declared(builder: Builder, node: NodeSeen, command: Goto, declared: Collection[str]) -> None:
    """The ways of a command that its function declares: those that it goes at once, or with a message of their own;
    the others are the declaration's."""
    for way in itertools.islice(_leads(command.targets), WAYS_MAX):
        if way.target is not None and way.target in declared and (way.many or way.kind == "send"):
            _goto(builder, node, way.target, "", "send" if way.kind == "send" else "goto", many=way.many)


def _goto(
    builder: Builder, node: NodeSeen, target: str, label: str, kind: Literal["goto", "send"], source: str = "", *,
    many: bool = False,
) -> None:
    edge = EdgeSeen(source or node.name, target, node.line, node.arms, kind, label, many=many)
    if target != START:
        builder.edges.append(edge)


def _parents(run: Run, inner: Builder) -> list[tuple[Builder, str]]:
    """The graphs that a graph is a node of, and what it is called there."""
    return [
        (builder, node.name)
        for builder in run.builders
        for node in builder.nodes.values()
        if isinstance(node.action, Compiled) and node.action.builder is inner
    ]
