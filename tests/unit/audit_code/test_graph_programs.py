"""Whatever graph a program builds, and whichever way it is written: it is read as it is, or said not to be."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.support.graphs import graph_of

START, END = "__start__", "__end__"
NAMES = ["plan", "act", "check", "report", "tools", "a b", "ü"]


class Spec(NamedTuple):
    """A graph to be written as a program: edges, and conditional edges by source."""

    nodes: list[str]
    edges: list[tuple[str, str]]
    choices: dict[str, dict[str, str]]


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    nodes = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True))
    source, target = st.sampled_from([START, *nodes]), st.sampled_from([*nodes, END])
    edges = draw(st.lists(st.tuples(source, target), max_size=8, unique=True))
    ways = st.dictionaries(st.sampled_from(["yes", "no", "more"]), target, min_size=1, max_size=3)
    return Spec(nodes, edges, draw(st.dictionaries(source, ways, max_size=2)))


def _name(name: str) -> str:
    return {START: "START", END: "END"}.get(name, repr(name))


def _one_by_one(spec: Spec) -> str:
    lines = [f"b.add_node({name!r}, f)" for name in spec.nodes]
    lines += [f"b.add_edge({_name(source)}, {_name(target)})" for source, target in spec.edges]
    return "\n".join(lines)


def _loops(spec: Spec) -> str:
    pairs = ", ".join(f"({_name(source)}, {_name(target)})" for source, target in spec.edges)
    nodes = f"for name in {spec.nodes!r}:\n    b.add_node(name, f)\n"
    return f"{nodes}for one, other in [{pairs}]:\n    b.add_edge(one, other)"


def _tables(spec: Spec) -> str:
    sources = {source: [target for one, target in spec.edges if one == source] for source, _ in spec.edges}
    table = ", ".join(f"{_name(source)}: [{', '.join(map(_name, targets))}]" for source, targets in sources.items())
    return (
        f"NODES = {{name: f for name in {tuple(spec.nodes)!r}}}\nEDGES = {{{table}}}\n"
        "for name, function in NODES.items():\n    b.add_node(name, function)\n"
        "[b.add_edge(source, target) for source, targets in EDGES.items() for target in targets]"
    )


def _indexed(spec: Spec) -> str:
    numbers = {START: "START", END: "END"} | {name: f"NAMES[{number}]" for number, name in enumerate(spec.nodes)}
    lines = [f"NAMES = [*{spec.nodes!r}]", "for number in range(len(NAMES)):", "    b.add_node(NAMES[number], f)"]
    lines += [f"b.add_edge({numbers[source]}, {numbers[target]})" for source, target in spec.edges]
    return "\n".join(lines)


def _functions(spec: Spec) -> str:
    lines = [
        "def put(builder, *names, action=f):",
        "    for name in names: builder.add_node(name, action)",
        "    return builder",
    ]
    lines += ["def link(builder, **ends): builder.add_edge(ends['source'], ends.get('target', END))"]
    lines += [f"put(b, *{spec.nodes!r})"]
    for source, target in spec.edges:
        to = "" if target == END else f", target={_name(target)}"
        lines.append(f"link(b, source={_name(source)}{to})")
    return "\n".join(lines)


def _classes(spec: Spec) -> str:
    pairs = ", ".join(f"({_name(source)}, {_name(target)})" for source, target in spec.edges)
    return f"""
class Flow:
    names = {spec.nodes!r}
    def __init__(self, builder):
        self.builder = builder
        for name in self.names:
            self._add(f"{{name}}")
    def _add(self, name, action=f):
        self.builder.add_node(name, action)
        return self
    def wire(self, pairs=()):
        add = self.builder.add_edge
        for pair in pairs:
            add(*pair)
Flow(b).wire(pairs=({pairs}{"," if pairs else ""}))
"""


def _concatenated(spec: Spec) -> str:
    def split(name: str) -> str:
        return {START: "START", END: "END"}.get(name) or f"{name[:1]!r} + ''.join({list(name[1:])!r})"

    lines = [f"b.add_node({split(name)}, f)" for name in spec.nodes]
    lines += [f"b.add_edge({split(source)}, {split(target)})" for source, target in spec.edges]
    return "\n".join(lines)


def _choices(spec: Spec) -> str:
    lines = []
    for source, ways in spec.choices.items():
        table = ", ".join(f"{label!r}: {_name(target)}" for label, target in ways.items())
        lines.append(f"b.add_conditional_edges({_name(source)}, lambda state: state['way'], {{{table}}})")
    return "\n".join(lines)


STYLES = [_one_by_one, _loops, _tables, _indexed, _functions, _classes, _concatenated]


@given(specs(), st.sampled_from(STYLES))
def test_a_graph_is_read_as_it_is_written_in_any_style(spec: Spec, style: Callable[[Spec], str]) -> None:
    graph = graph_of(f"{style(spec)}\n{_choices(spec)}")
    assert [node.name for node in graph.nodes] == spec.nodes
    plain = {(edge.source, edge.target) for edge in graph.edges if edge.kind == "plain"}
    assert plain == set(spec.edges)
    chosen = {(edge.source, edge.target) for edge in graph.edges if edge.kind == "conditional"}
    assert chosen == {(source, target) for source, ways in spec.choices.items() for target in ways.values()}
    assert graph.unresolved == []


LEAVES = {
    "T": ["'x'", "'node'", "'Node_1'", "' a '", "'b-c'", "''"],
    "N": ["-3", "-1", "0", "1", "2", "6"],
    "L": ["[]", "['x']", "['b', 'a', 'x']", "('x', 'node')", "['', ' a ', '', 'x']"],
}
SHAPES = {
    "T": [
        "(T + T)", "(T * N)", "('%s_%d' % (T, N))", "'{}-{n}'.format(T, n=N)", 'f"{(T)}_{(N)}"', "T.upper()",
        "T.strip()", "T.title()", "T.replace(T, T)", "L[N]", "T.join(L)", "(T if T == T else T)",
        "(T or T)", "(T and T)",
        "{'x': T}.get(T, T)", "{T: T}[T]", "str(N - N * N)", "(lambda t, n=N: t + str(n))(T)", "str(len(L))",
        "str(N < N <= N)", "str(not T)", "str(T in L)", "(T if T in L and N < N else T)", "T.split(T)[N]", "T[N:N]",
        "str(N // N % N)", "[*L, T][N]", "dict(zip(L, L)).get(T, T)", "str(-N)", "T.removeprefix(T)",
    ],
    "N": ["(N + N)", "len(L)", "len(T)"],
    "L": [
        "[T, T]", "L[N:N]", "L[::N]", "list(reversed(L))", "sorted(L)", "(list(L) + list(L))",
        "[t for t in L if t != T]", "[t + str(i) for i, t in enumerate(L, start=N)]",
        "[a + b for a, b in zip(L, L)]", "list(dict.fromkeys(L))",
        "[k + v for k, v in {'p': T, **{'q': T}}.items()]", "[n + T for n in L for m in L]", "list(map(str, L))",
        "[t for t in (T, T) if t]", "list({t: t for t in L}.values())",
    ],
}  # fmt: skip


@st.composite
def expressions(draw: st.DrawFn, kind: str = "T", depth: int = 3) -> str:
    """An expression of text, of a number or of a list, with others in it."""
    shape = draw(st.sampled_from(SHAPES[kind] if depth else LEAVES[kind]))
    return re.sub(r"\b[TNL]\b", lambda slot: draw(expressions(slot[0], depth - 1)), shape) if depth else shape


@given(expressions())
def test_an_expression_is_worked_out_as_python_does_or_not_at_all(expression: str) -> None:
    try:
        expected = eval(expression)
    except (IndexError, ValueError, TypeError, KeyError, ZeroDivisionError, SyntaxError):
        return  # the last: an f-string in an f-string, before Python 3.12
    graph = graph_of(f"b.add_node({expression}, f)")
    assert [node.name for node in graph.nodes] == [expected], expression
    assert not graph.unresolved


@given(st.sampled_from(SHAPES["T"]), st.sampled_from(["unknown", "unknown(1)", "unknown.x", "(yield)"]))
def test_what_hangs_on_something_unknown_is_not_guessed(shape: str, unknown: str) -> None:
    every = re.sub(r"\b[TNL]\b", unknown, shape)
    graph = graph_of(f"def build():\n    b.add_node({every}, f)\nbuild()")
    assert graph.unresolved, every
