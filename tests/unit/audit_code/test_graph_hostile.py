"""No file that parses can break the reader, or hold it up, or make it say two things."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pmagent.actors.audit.detectors.code.source import Source
from pmagent.actors.audit.graphs.reader import GraphReader
from pmagent.actors.audit.graphs.run import Run
from pmagent.contracts.audit_facts import CodeGraph, Finding
from tests.support.cases import each
from tests.support.effort import some
from tests.support.graphs import HEAD, graph_of, graphs_of

PROGRAMS = sorted((Path(__file__).resolve().parents[3] / "benchmarks" / "graph_programs").glob("*.py"))
TEXTS = [path.read_text() for path in PROGRAMS]
LINES = [line for text in TEXTS for line in text.splitlines()]
EXPRESSIONS = [
    ast.unparse(node)
    for text in TEXTS
    for node in ast.walk(ast.parse(text))
    if isinstance(node, ast.expr) and not isinstance(node, ast.Starred | ast.Slice | ast.JoinedStr | ast.FormattedValue)
]


def read(text: str, tree: ast.Module) -> tuple[list[CodeGraph], list[Finding], dict[str, int]]:
    reader = GraphReader()
    reader.take(Source("program.py", text, tree, "code"))
    return reader.graphs(), list(reader.findings()), dict(reader.examined)


def parse(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        assume(condition=False)
        raise


def check(text: str) -> None:
    """The reading is sound in itself, and the same each time."""
    graphs, findings, examined = read(text, parse(text))
    assert (graphs, findings, examined) == read(text, parse(text))
    last = text.count("\n") + 1
    for graph in graphs:
        names = [node.name for node in graph.nodes]
        assert len(set(names)) == len(names)
        assert not {"__start__", "__end__"} & set(names)
        sources = {edge.source for edge in graph.edges}
        assert set(graph.parallel_sources) <= sources
        assert set(graph.fan_in_targets) <= {edge.target for edge in graph.edges}
        lines = [graph.line, *(node.line for node in graph.nodes), *(edge.line for edge in graph.edges)]
        assert all(0 < line <= last for line in lines)
    assert all(0 < finding.line <= last for finding in findings)
    assert {finding.path for finding in findings} <= {"program.py"}


@given(st.sampled_from(TEXTS), st.data())
def test_programs_with_lines_lost_doubled_and_mixed_are_read(text: str, data: st.DataObject) -> None:
    lines = text.splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        what = data.draw(st.sampled_from(["lose", "double", "foreign", "swap"]))
        if what == "lose" and len(lines) > 1:
            del lines[at]
        elif what == "double":
            lines.insert(at, lines[at])
        elif what == "foreign":
            lines.insert(at, data.draw(st.sampled_from(LINES)))
        else:
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[at], lines[other] = lines[other], lines[at]
    check("\n".join(lines))


class _Exchange(ast.NodeTransformer):
    """Puts another expression in the place of one."""

    def __init__(self, at: int, other: ast.expr) -> None:
        self._left = at
        self._other = other

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr):
            self._left -= 1
            if self._left == 0:
                return self._other
        return self.generic_visit(node)


@given(st.sampled_from(TEXTS), st.integers(1, 120), st.sampled_from(EXPRESSIONS))
def test_programs_with_an_expression_in_the_place_of_another_are_read(text: str, at: int, other: str) -> None:
    tree = _Exchange(at, ast.parse(other, mode="eval").body).visit(ast.parse(text))
    try:
        changed = ast.unparse(ast.fix_missing_locations(tree))
    except (ValueError, TypeError, AttributeError):
        assume(condition=False)
        raise
    check(changed)


def deeper(head: str, depth: int, inside: str, step: str = " ") -> str:
    """Compound statements in each other; # stands for how deep they are."""
    opened = [f"{step * number}{head.replace('#', str(number))}" for number in range(depth)]
    return "\n".join([*opened, step * depth + inside])


HOSTILE = {
    "calls of calls": "b" + ".add_node('x', f)" * 300,
    "sums of sums": "x = " + " + ".join(["'a'"] * 900),
    "nested lists": "x = " + "[" * 90 + "]" * 90,
    "nested functions": deeper("def f#():", 90, "b.add_node('x', f)"),
    "branches of branches": "".join(f"{'el' if n else ''}if x == {n}: b.add_node('n{n}', f)\n" for n in range(700)),
    "loops of loops": deeper("for i# in range(100):", 8, "b.add_edge(str(i0), str(i7))"),
    "doubling text": "x = 'a'\n" + "x += x\n" * 80 + "b.add_node(x, f)",
    "doubling lists": "x = [f]\n" + "x = x + x\n" * 80 + "for y in x: b.add_node(y)",
    "doubling calls": "def g0(): b.add_node('x', f)\n"
    + "".join(f"def g{n}(): g{n - 1}(); g{n - 1}()\n" for n in range(1, 40))
    + "g39()",
    "comprehensions": "r = range(99)\nx = [[[[(a, b, c, d) for a in r] for b in r] for c in r] for d in r]",
    "a function that calls itself": "def g(n): return g(g(n))\nb.add_node(g('x'), g)\nb.add_conditional_edges('x', g)",
    "a list in itself": """
        x = []
        x.append(x)
        b.add_node(x, x)
        b.add_edge(x, x)
        b.add_conditional_edges('x', lambda s: x, x)
    """,
    "a dict in itself": """
        x = {}
        x['x'] = x
        x.update(x)
        b.add_conditional_edges('x', lambda s: x, x)
        b.add_node(**x)
    """,
    "a class that is its own base": """
        class C: pass
        class C(C): names = C
        b.add_node(C(), C)
        b.add_node(C.names.names)
    """,
    "a builder in itself": """
        b.add_node('x', b)
        b.add_node(b.compile())
        b.add_sequence([b, (b, b), ('y', b)])
    """,
    "a power": """
        b.add_node(str(9 ** 9 ** 9 ** 9), f)
        b.add_node('a' * 10 ** 12, f)
        b.add_node(str(10 ** 5 * 10 ** 5), f)
    """,
    "a range": """
        for i in range(10 ** 12): b.add_node(f'n{i}', f)
        b.add_node(str(list(range(-5, 10 ** 9))[-1]), f)
    """,
    "wrong arguments": """
        b.add_node()
        b.add_edge()
        b.add_edge('a')
        b.add_conditional_edges()
        b.add_sequence()
        b.compile(1, 2)
        b.set_entry_point()
        Send()
        Command()
        StateGraph()
    """,
    "wrong values": """
        b.add_node(1, 2)
        b.add_edge(1, None)
        b.add_conditional_edges(b, b, b)
        b.add_node(b'x', f)
        b.add_edge({}, [[]])
    """,
    "surrogates": "b.add_node('\\ud800', f)\nb.add_edge('\\ud800', '\\udfff')",
    "names of Python": """
        type = list = len = str = b
        b.add_node(str(list(len(type))), f)
        del b
        b.add_node('x', f)
    """,
    "names of elsewhere": """
        def g():
            global b, f
            b = b; f = g
            b.add_node('x', f)
        g()
        def h():
            x = 1
            def i():
                nonlocal x
                x = b
            i()
            x.add_node('y', f)
        h()
    """,
}


@each("name", some(list(HOSTILE), 10))
def test_a_hostile_program_is_read(name: str) -> None:
    check(HEAD + dedent(HOSTILE[name]))


def test_a_surrogate_is_told_as_text_that_can_be_written() -> None:
    graph = graph_of("b.add_node('\\ud800', f)")
    assert all(node.name.encode() for node in graph.nodes)


def test_a_graph_that_is_too_large_says_so() -> None:
    graph = graph_of("for i in range(250):\n    for j in range(250):\n        b.add_edge(str(i), str(j))")
    assert "4: more than 1000 nodes or edges" in graph.unresolved
    assert len(graph.edges) <= 1_002


def test_the_steps_are_in_proportion_to_the_length(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(functions: int) -> int:
        count = 0
        value = Run.value

        def counted(run: Run, *rest: object) -> object:
            nonlocal count
            count += 1
            return value(run, *rest)  # type: ignore[arg-type]

        text = HEAD + "".join(f"def g{n}(x):\n    y = [x, {n}]\n    return h(y) + 'x'\n" for n in range(functions))
        calls = "".join(f"g{n}({n})\n" for n in range(functions))
        with monkeypatch.context() as patch:
            patch.setattr(Run, "value", counted)
            graphs_of(program=text + calls)
        return count

    small, large = steps(200), steps(2_000)
    assert 0 < large <= 12 * small
