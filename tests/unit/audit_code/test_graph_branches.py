"""All that a program may do by conditions that cannot be known has been read."""

from __future__ import annotations

import itertools
import random
from textwrap import indent

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.effort import examples
from tests.support.graphs import HEAD, graphs_of

SIMPLE = [
    "t = 'x'", "t = 'y'", "t += 'z'", "l.append(t)", "l.append('w')", "l = ['p', 'q']", "l = l + [t]", "l.pop()",
    "n += 1", "del l[0]", "l.remove('p')", "l.clear()", "l.reverse()", "l = [x + t for x in l]", "d[t] = 'v'",
    "d['k'] = t", "d.pop('k', 0)", "d = {**d, 'j': t}", "t = d.get('k', 'n')", "b.add_node(t, f)",
    "b.add_edge(t, 'end')", "b.add_edge('begin', t)", "b.add_edge(['begin', t], 'end')",
    "[b.add_edge('begin', x) for x in l]", "for x in l: b.add_node(x, f)", "for x in d: b.add_edge(x, d[x])",
    "l = [t] if c() else [t, 'o']", "l = [x for x in l if c()]", "t = 'a' if c() else 'b'", "t = c() and 'c' or 'd'",
    "l = l or ['e']", "l = u()", "add(t, 'end')", "t = name(t)", "l.extend(u())", "l += [t for x in u()]",
    "l.insert(0, t)", "t = l[0]", "t = l[-1]", "b.add_edge(l[0], t)", "d.update(dict(zip(l, l)))", "t, *l = [t, *l]",
    "l.sort()", "l = sorted(l, reverse=True)", "for x in u(): l.append(t)", "for x in u(): t = 'u'",
    "k.names.append(t)", "l = k.names", "k.last = t", "t = k.last",
]  # fmt: skip
COMPOUND = [
    "if c():\n#", "if c() and c():\n#\nelse:\n#", "if c() or not c():\n#\nelse:\n#", "if c():\n#\nelse:\n#",
    "if c():\n#\nelif c():\n#\nelse:\n#", "for x in u():\n#", "for x in l[:2]:\n#",
    "for x in ['g', 'h']:\n#\n    if c(): break\n#", "for x in ['g', 'h']:\n    if c(): continue\n#\nelse:\n#",
    "while c():\n#\n    break", "try:\n#\n    r()\n#\nexcept OSError:\n#",
    "try:\n#\n    r()\nexcept OSError:\n#\nelse:\n#", "with open_() as o:\n#", "match n:\n  case 1:\n#\n  case _:\n#",
    "def g(t):\n    l = ['i']\n#\n    return t\nt = g(t)",
    "def g(t):\n    global n\n    l = []\n    if c(): return 'r'\n#\n    return t\nt = g(t)",
    "def g(t):\n    l = ['s']\n#\n    yield t\n    if c(): yield 'm'\nl = list(g(t))",
]  # fmt: skip
BEGIN = """
from elsewhere import c, u, r, open_
class K:
    def __init__(self):
        self.names, self.last = [], "first"
k = K()
def add(one, other):
    if c():
        b.add_edge(one, other)
        return
    b.add_node(one, f)
def name(text):
    if c(): return text + "!"
    return "named"
add("first", "end")
l, d, t, n = ['a'], {'x': 'y'}, 'm', 1
"""


@st.composite
def bodies(draw: st.DrawFn, depth: int = 2) -> str:
    """Statements, some of them with others in them."""
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        if depth and draw(st.integers(0, 2)) == 0:
            pieces = draw(st.sampled_from(COMPOUND)).split("#")
            filled = [pieces[0]]
            for piece in pieces[1:]:
                filled += [indent(draw(bodies(depth - 1)), "    "), piece]
            lines.append("".join(filled))
        else:
            lines.append(draw(st.sampled_from(SIMPLE)))
    return "\n".join(lines)


class Graph:
    """The nodes and edges that a run of the program adds."""

    def __init__(self) -> None:
        self.nodes: set[str] = set()
        self.edges: set[tuple[str, str]] = set()

    def add_node(self, name: str, _action: object) -> None:
        self.nodes.add(name)

    def add_edge(self, source: str | list[str], target: str) -> None:
        self.edges.update((one, target) for one in ([source] if isinstance(source, str) else source))


class Opened:
    """A context that does nothing."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def ran(program: str, seed: int) -> Graph | None:
    """The graph of one run of the program, or of a part of it: until it fails."""
    chance, graph, calls = random.Random(seed), Graph(), itertools.count()

    def raises() -> None:
        if chance.random() < 0.5:
            raise OSError

    def condition() -> bool:
        return next(calls) < 50 and chance.random() < 0.5

    outside = {"c": condition, "u": lambda: ["1", "2"][: chance.randrange(3)], "r": raises, "open_": Opened}
    text = program.replace("from elsewhere import c, u, r, open_\n", "")
    try:
        exec(text, {**outside, "b": graph, "f": print, "__name__": "__main__"})
    except (IndexError, ValueError, TypeError, KeyError, NameError, OSError, UnboundLocalError, RecursionError):
        return graph
    except SyntaxError:
        return None
    return graph


@settings(max_examples=examples(200), derandomize=True)  # the same programs each time
@given(bodies(), st.integers(0, 1_000))
def test_what_a_run_adds_has_been_read_or_is_said_not_to_be(body: str, seed: int) -> None:
    program = BEGIN + body
    graphs = [ran(program, seed + number) for number in range(4)]
    if any(graph is None for graph in graphs):
        return
    (found,) = graphs_of(program=HEAD + program)
    read = {(edge.source, edge.target) for edge in found.edges}
    nodes = {node.name for node in found.nodes}
    for graph in graphs:
        if graph is not None and not found.unresolved:
            assert graph.nodes <= nodes, program
            assert graph.edges <= read, program
