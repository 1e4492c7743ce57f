"""An import means the file that Python would take, wherever the repository is put on its path."""

from __future__ import annotations

import ast
import json

import pytest

from pmagent.actors.audit.detectors.code.parse import parsed
from pmagent.actors.audit.graphs.program import Mentions, Program
from pmagent.actors.audit.graphs.reader import GraphReader
from tests.support.graphs import edges, graphs_of, nodes, source

FILES = (
    "app/__init__.py", "app/graph.py", "app/nodes/judge.py", "app/nodes/names.py", "src/core/state.py",
    "src/core/flow/__init__.py", "lib/one/util.py", "lib/two/util.py", "types.py", "notes/draft.ipynb",
)


@pytest.fixture
def program() -> Program:
    made = Program()
    for path in FILES:
        made.add(source(path, "x = 1"))
    return made


@pytest.mark.parametrize(("dotted", "level", "importer", "found"), [
    ("app.graph", 0, "main.py", "app/graph.py"),
    ("app", 0, "main.py", "app/__init__.py"),
    ("app.nodes", 0, "main.py", "app/nodes/"),
    ("nodes.judge", 0, "app/graph.py", "app/nodes/judge.py"),
    ("names", 0, "app/nodes/judge.py", "app/nodes/names.py"),
    ("names", 1, "app/nodes/judge.py", "app/nodes/names.py"),
    ("graph", 2, "app/nodes/judge.py", "app/graph.py"),
    ("", 1, "app/nodes/judge.py", "app/nodes/"),
    ("nodes", 1, "app/__init__.py", "app/nodes/"),
    ("core.state", 0, "tests/test_state.py", "src/core/state.py"),
    ("core", 0, "main.py", "src/core/"),
    ("src.core.flow", 0, "app/graph.py", "src/core/flow/__init__.py"),
    ("one.util", 0, "main.py", "lib/one/util.py"),
    ("util", 0, "main.py", None),
    ("requests", 0, "main.py", None),
    ("types", 0, "main.py", None),
    ("langgraph.graph", 0, "main.py", None),
    ("draft", 0, "notes/other.py", "notes/draft.ipynb"),
    ("x", 9, "app/graph.py", None),
    ("graph", 0, "graph.py", None),
])
def test_an_import_means_a_file_of_the_repository_or_none(
    program: Program, dotted: str, level: int, importer: str, found: str | None
) -> None:
    assert program.locate(dotted, level, importer) == found


def test_a_folder_may_be_imported_and_its_modules_be_taken_from_it() -> None:
    (graph,) = graphs_of(
        pkg__nodes__judge="def judge(state): return state",
        pkg__graph="""
        import pkg.nodes.judge
        import pkg.nodes as nodes
        from pkg import nodes as same
        from langgraph.graph import StateGraph
        b = StateGraph(dict)
        b.add_node("one", pkg.nodes.judge.judge)
        b.add_node(nodes.judge.judge)
        b.add_edge("one", same.judge.judge.__name__)
        """,
    )
    assert (nodes(graph), edges(graph)) == (["one", "judge"], {("one", "judge")})


def test_a_module_that_only_imports_a_builder_is_followed() -> None:
    graphs = graphs_of(
        flows="""
        from langgraph.graph import StateGraph
        def build(name):
            b = StateGraph(dict)
            b.add_node(name, print)
            return b.compile()
        """,
        main="from flows import build\n\ndef run():\n    return build('fetch')\n",
    )
    assert [nodes(graph) for graph in graphs] == [["fetch"]]


def test_a_notebook_is_read_as_one_program() -> None:
    cells = [
        ["!pip install langgraph\n", "from langgraph.graph import StateGraph, START"],
        ["def ask(state):\n", "    return state\n", "b = StateGraph(dict)"],
        ["b.add_node(ask)\n", "b.add_edge(START, 'ask')\n", "%time graph = b.compile()\n", "graph"],
    ]
    document = {"cells": [{"cell_type": "code", "source": lines} for lines in cells], "metadata": {}, "nbformat": 4}
    reader = GraphReader()
    reader.take(parsed("demo.ipynb", json.dumps(document).encode()))
    (graph,) = reader.graphs()
    assert (graph.path, nodes(graph), edges(graph)) == ("demo.ipynb", ["ask"], {("__start__", "ask")})


def test_lines_that_speak_of_graphs_are_found_whatever_ends_them() -> None:
    text = "def a():\r\n    pass\rdef b():\n    StateGraph(x)\n\n\ndef c(): return make()\n"
    mentions = Mentions(text)
    assert mentions.lines == [4]
    mentions.also({"make"})
    tree = ast.parse(text)
    assert [mentions.within(node) for node in tree.body] == [False, True, True]
