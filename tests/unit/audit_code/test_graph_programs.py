"""A program's graph, in whichever way it is written, is read as it is, or said not to be."""

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
        "def put(builder, *names, action=f):", "    for name in names: builder.add_node(name, action)",
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
        "T.strip()", "T.title()", "T.replace(T, T)", "L[N]", "T.join(L)", "(T if T == T else T)", "(T or T)",
        "(T and T)", "{'x': T}.get(T, T)", "{T: T}[T]", "str(N - N * N)", "(lambda t, n=N: t + str(n))(T)",
        "str(len(L))", "str(N < N <= N)", "str(not T)", "str(T in L)", "(T if T in L and N < N else T)",
        "T.split(T)[N]", "T[N:N]", "str(N // N % N)", "[*L, T][N]", "dict(zip(L, L)).get(T, T)", "str(-N)",
        "T.removeprefix(T)",
    ],
    "N": ["(N + N)", "len(L)", "len(T)"],
    "L": [
        "[T, T]", "L[N:N]", "L[::N]", "list(reversed(L))", "sorted(L)", "(list(L) + list(L))",
        "[t for t in L if t != T]", "[t + str(i) for i, t in enumerate(L, start=N)]", "[a + b for a, b in zip(L, L)]",
        "list(dict.fromkeys(L))", "[k + v for k, v in {'p': T, **{'q': T}}.items()]", "[n + T for n in L for m in L]",
        "list(map(str, L))", "[t for t in (T, T) if t]", "list({t: t for t in L}.values())",
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


STATEMENTS = [
    "l.append(T)", "l.extend(L)", "l.insert(N, T)", "l += L", "l = l * 2", "l = l + list(L)", "l = [*l, T, *L]",
    "l = l.copy()", "l = list(reversed(l))", "l = sorted(set(l))", "l = sorted(l, key=len, reverse=True)", "l.sort()",
    "l = sorted(l, key=lambda x: x + T)", "l.reverse()", "l.pop()", "l.pop(N)", "l.remove(T)", "del l[N]", "l[N] = T",
    "l = l[N:]", "l = [x for x in l if x]", "l = [x for x, y in zip(l, L) if x != y]", "l = list(dict.fromkeys(l))",
    "l = [t := x for x in l] or [T]", "l.clear()", "l = [T] * N", "l = list(t)[:3]", "l = list(map(str, l))",
    "l = list(d)", "l = list(d.values())", "l = [k for k, v in d.items() if v != T]", "t += T", "t = d.get(T, T)",
    "t, *l = [T, *L]", "*l, t = [*L, T]", "(t, n), l = (T, N), [*L]", "n = l.index(T)", "n = l.count(T)", "n += len(l)",
    "t = l[N]", "t = t[N:N]", "t = f'{t}-{n}'", "t = T if n > N else t", "d['x'] = T", "d[T] = T", "d.update({T: T})",
    "d = {**d, T: T}", "d = d | {T: T}", "d.setdefault(T, T)", "t = d.pop(T, T)", "del d[T]", "d = dict(zip(L, L))",
    "d |= {T: T}", "d = {x: T for x in l}", "d.update([(T, T)])", "d = d.copy()", "d = dict(x=T, **{'y': T})",
    "for t in L:\n    l.append(t)", "for i, t in enumerate(L):\n    if i % 2: continue\n    l.append(t)",
    "for x in L:\n    if x == T: break\n    l.append(x)\nelse:\n    t = T", "for k, v in d.items():\n    l += [k, v]",
    "if t == T:\n    l.append(T)\nelif n > N:\n    t = T\nelse:\n    n = N", "while n > 100:\n    l.append(T)",
    "def g(x, y=T, *z, w=N, **v):\n    return x + y\nl.append(g(T))\nl.append(g(T, T, T, w=N, q=T))",
    "def g():\n    yield T\n    yield from L\nl = list(g())", "l = [g for g in (lambda x, y=T: [x, y])(T)]",
    "class C:\n    a = T\n    def __init__(self, x): self.x = x\n    def m(self): return self.x + C.a\nl += [C(T).m()]",
    "def g():\n    global t\n    t = T\n    l.append(t)\ng()", "match_ = [x.upper() for x in l]\nl = match_",
    "def g(n):\n    def h(x):\n        nonlocal n\n        n = n + x\n        return n\n    return h\nt = g(T)(T)",
    "from functools import partial\ng = partial(lambda x, y: x + y, T)\nt = g(T)",
    "try:\n    l.append(T)\nfinally:\n    t = T",
    "from itertools import chain, pairwise\nl = [x + y for x, y in pairwise(chain(l, L))]",
    "import itertools as i\nn = N",
    "from enum import Enum\nclass E(str, Enum):\n    A = T\n    B = 'b'\nl += [x.value for x in E] + [E.B.name, E.B]",
]  # fmt: skip


def _run(program: str) -> list[str] | None:
    """The names that a program adds as nodes when Python runs it; None: it fails."""
    added: list[str] = []

    class Stub:
        def add_node(self, name: str, _action: object) -> None:
            added.append(str.__str__(name))

    try:
        exec(program, {"b": Stub(), "f": print, "__name__": "__main__"})
    except (IndexError, ValueError, TypeError, KeyError, ZeroDivisionError, SyntaxError, NameError, AttributeError):
        return None
    return list(dict.fromkeys(added))


@given(st.data())
def test_what_statements_do_to_names_is_worked_out_as_python_does(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=5))
    filled = [re.sub(r"\b[TNL]\b", lambda slot: data.draw(expressions(slot[0], 1)), one) for one in chosen]
    lines = ["l, d, t, n = ['a'], {'x': 'y'}, 'm', 1", *filled]
    lines.append("for name in [*l, t, str(n), *d, *d.values()]:\n    b.add_node(name, f)")
    program = "\n".join(lines)
    expected = _run(program)
    if expected is not None:
        graph = graph_of(program)
        assert ([node.name for node in graph.nodes], graph.unresolved) == (expected, []), program
