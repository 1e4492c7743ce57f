"""The methods of LangGraph's builders, applied to a graph that is being read; pure.

Names that cannot be read are noted in ``Builder.unresolved``; nothing is guessed. A name that is one of several
(because it hangs on a condition) adds each of them, as things that exclude each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from pmagent.actors.audit.graphs.arguments import Arguments
from pmagent.actors.audit.graphs.pure import items_of
from pmagent.actors.audit.graphs.values import (
    END,
    START,
    UNKNOWN,
    Arms,
    BranchSeen,
    Builder,
    Class,
    Compiled,
    EdgeSeen,
    External,
    Func,
    Inst,
    NodeSeen,
    Seq,
    Thing,
    Value,
    alternatives,
    constant,
    text_of,
)

if TYPE_CHECKING:
    from pmagent.actors.audit.graphs.run import Run

BUILDERS: Final = frozenset(("StateGraph", "MessageGraph", "Graph"))
"""The classes that build graphs."""
WRAPPERS: Final = frozenset(("RunnableLambda", "RunnableCallable"))
"""The classes that may wrap a function without making it another node."""
PARTS_MAX: Final = 1_000
"""Most nodes, edges, branches or notes of one graph."""


def build(run: Run, builder: Builder, name: str, given: Arguments) -> Value:
    """Call a method of a builder. Those that change it give the builder itself."""
    if name == "__init__":
        builder.state = given.spelled(0, "state_schema")
        builder.schemas = _schemas(given)
    elif name == "compile":
        builder.compiled = True
        builder.interrupted = not given.named.keys().isdisjoint(("interrupt_before", "interrupt_after"))
        called = text_of(given.named.get("name", UNKNOWN))
        if called is not None:
            builder.name, builder.named = called, True
        return Compiled(builder, called or "LangGraph")
    elif (work := _METHODS.get(name)) is not None:
        if given.open:
            note(builder, given.line, f"arguments of {name}")
        if max(map(len, (builder.nodes, builder.edges, builder.branches))) < PARTS_MAX:
            work(run, builder, given)
        else:
            note(builder, builder.line, f"more than {PARTS_MAX} nodes or edges")
    return builder


def note(builder: Builder, line: int, what: str) -> None:
    """Say once that something could not be read."""
    text = f"{line}: {what}"
    if text not in builder.unresolved and len(builder.unresolved) < PARTS_MAX:
        builder.unresolved.append(text)


def action_name(action: Value) -> str | None:
    """The name that LangGraph gives to a node that was added without one; None: not known."""
    if isinstance(action, Func):
        return "partial" if action.partial else action.name
    if isinstance(action, Class | Compiled):
        return action.name
    if isinstance(action, Inst):
        return action.owner.name
    if isinstance(action, External):
        return action.name.rpartition(".")[2]
    return _thing_name(action) if isinstance(action, Thing) else None


def _thing_name(thing: Thing) -> str | None:
    if (given := thing.named.get("name")) is not None:
        return text_of(given)
    kind = thing.maker.rpartition(".")[2]
    if kind == "ToolNode":
        return "tools"
    if kind in WRAPPERS:
        named = action_name(thing.args[0]) if thing.args else None
        return kind if named == "<lambda>" else named
    return kind if kind[:1].isupper() else None


def _names(run: Run, value: Value | None, builder: Builder, line: int, what: str) -> Iterator[tuple[str, Arms]]:
    """The names that a value may be, each with the branch that it belongs to."""
    options = alternatives(value) if value is not None else ()
    arms = run.arms
    condition = run.condition() if len(options) > 1 else 0
    for number, option in enumerate(options):
        name = text_of(option)
        if name is None:
            note(builder, line, what)
        else:
            yield name, arms if len(options) == 1 else (*arms, (condition, number))


def _add_node(run: Run, builder: Builder, given: Arguments) -> None:
    first, action = given.get(0, "node") or given.named.get("key"), given.get(1, "action")
    destinations = given.named.get("destinations")
    schema = given.named.get("input_schema") or given.named.get("input")
    if first is None:
        note(builder, given.line, "the name of a node")
    elif action is not None or text_of(first) is not None:
        for name, arms in _names(run, first, builder, given.line, "the name of a node"):
            add(builder, NodeSeen(name, action or UNKNOWN, given.line, arms, destinations, schema))
    else:
        for option in alternatives(first):
            found = action_name(option)
            if found is None:
                note(builder, given.line, "the name of a node")
            else:
                add(builder, NodeSeen(found, option, given.line, run.arms, destinations, schema))
    handler = given.named.get("error_handler")
    named = text_of(first) if first is not None and action is not None else action_name(first or UNKNOWN)
    if handler is not None and named is not None:
        add(builder, NodeSeen(f"__error_handler__{named}", handler, given.line, run.arms))


def add(builder: Builder, node: NodeSeen) -> None:
    """Add a node, once."""
    if node.name not in (START, END):
        builder.nodes.setdefault(node.name, node)


def _add_edge(run: Run, builder: Builder, given: Arguments) -> None:
    source, target = given.get(0, "start_key"), given.get(1, "end_key")
    starts = source.items if isinstance(source, Seq) else [source]
    if isinstance(source, Seq) and source.more:
        note(builder, given.line, "the sources of an edge")
    targets = list(_names(run, target, builder, given.line, "the target of an edge"))
    for start in starts:
        for name, arms in _names(run, start, builder, given.line, "the source of an edge"):
            for other, other_arms in targets:
                builder.edges.append(EdgeSeen(name, other, given.line, tuple(dict.fromkeys((*arms, *other_arms)))))


def _entry(run: Run, builder: Builder, given: Arguments) -> None:
    for name, arms in _names(run, given.get(0, "key"), builder, given.line, "the entry point"):
        builder.edges.append(EdgeSeen(START, name, given.line, arms))


def _finish(run: Run, builder: Builder, given: Arguments) -> None:
    for name, arms in _names(run, given.get(0, "key"), builder, given.line, "the finish point"):
        builder.edges.append(EdgeSeen(name, END, given.line, arms))


def _branch(run: Run, builder: Builder, given: Arguments) -> None:
    source = given.get(0, "source") or given.named.get("start_key") or UNKNOWN
    path = given.get(1, "path") or given.named.get("condition") or UNKNOWN
    path_map = given.get(2, "path_map") or given.named.get("conditional_edge_mapping")
    for name, arms in _names(run, source, builder, given.line, "the source of a conditional edge"):
        builder.branches.append(BranchSeen(name, path, _given(path_map), given.line, arms, given.get(3, "then")))


def _entry_branch(run: Run, builder: Builder, given: Arguments) -> None:
    path = given.get(0, "path") or given.named.get("condition") or UNKNOWN
    path_map = given.get(1, "path_map") or given.named.get("conditional_edge_mapping")
    builder.branches.append(BranchSeen(START, path, _given(path_map), given.line, run.arms, given.get(2, "then")))


def _given(value: Value | None) -> Value | None:
    return None if value is None or ((found := constant(value)) is not None and found.value is None) else value


def _sequence(run: Run, builder: Builder, given: Arguments) -> None:
    members = items_of(given.get(0, "nodes") or UNKNOWN)
    if members is None or members.open:
        note(builder, given.line, "the members of a sequence")
    before: str | None = None
    for member in members.items if members is not None else []:
        pair = member.items if isinstance(member, Seq) and len(member.items) == 2 else None
        name = action_name(member) if pair is None else text_of(pair[0])
        if name is None:
            note(builder, given.line, "the name of a node")
        else:
            add(builder, NodeSeen(name, member if pair is None else pair[1], given.line, run.arms))
            if before is not None:
                builder.edges.append(EdgeSeen(before, name, given.line, run.arms))
        before = name


_METHODS: Final[dict[str, Callable[[Run, Builder, Arguments], None]]] = {
    "add_node": _add_node,
    "add_edge": _add_edge,
    "add_sequence": _sequence,
    "add_conditional_edges": _branch,
    "set_entry_point": _entry,
    "set_finish_point": _finish,
    "set_conditional_entry_point": _entry_branch,
}


def _schemas(given: Arguments) -> list[Value]:
    """The schemas whose fields become channels; a graph without one of its state has none that are known."""
    state = given.get(0, "state_schema") or given.named.get("schema")
    others = [given.named.get(name) for name in ("input", "output", "input_schema", "output_schema")]
    return [] if state is None else [state, *(one for one in others if one is not None)]


def begin(run: Run, kind: str, given: Arguments, owner: Class | None = None) -> Builder:
    """A new builder, where the call stands; ``owner``: the class derived from LangGraph's that it is an instance of."""
    path = given.scope.path if given.scope is not None else ""
    column = given.node.col_offset if given.node is not None else 0
    state = given.spelled(0, "state_schema") if kind in BUILDERS and owner is None else ""
    builder = Builder(path, given.line, column, kind, state, {}, [], [], [], owner=owner)
    builder.schemas = _schemas(given) if kind in BUILDERS and owner is None else []
    builder.function = run.stack[-1].name if run.stack else ""
    run.builders.append(builder)
    return builder
