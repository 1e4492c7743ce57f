"""Code that an entry point reaches counts; code that no reached code names does not run."""

from __future__ import annotations

import ast

import pytest

from pmagent.actors.audit.detectors.code.parse import role_of
from pmagent.actors.audit.detectors.code.reach import ReachReader
from pmagent.actors.audit.detectors.code.source import Source

MAIN = "from src import graph\nif __name__ == '__main__':\n    HERE\n"
GRAPH = "def build():\n    return helper()\ndef helper():\n    work()\ndef other():\n    work()\n"


def dead(files: dict[str, str]) -> list[str]:
    """The names of the functions that nothing reaches."""
    reader = ReachReader()
    trees = {path: ast.parse(text) for path, text in files.items() if path.endswith(".py")}
    for path, tree in trees.items():
        reader.take(Source(path, files[path], tree, role_of(path)))
    reader.settle(list(files), lambda path: files[path].encode())
    functions = [(path, node) for path, tree in trees.items() for node in ast.walk(tree)]
    return [
        node.name
        for path, node in functions
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not reader.reached(path, node.lineno)
    ]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"main.py": MAIN.replace("HERE", "print('all')"), "src/graph.py": GRAPH}, ["build", "helper", "other"]),
        ({"main.py": MAIN.replace("HERE", "graph.build()"), "src/graph.py": GRAPH}, ["other"]),
        ({"main.py": MAIN.replace("HERE", "getattr(graph, 'build')()"), "src/graph.py": GRAPH}, ["other"]),
        ({"src/graph.py": GRAPH}, []),  # a library: what is public is there for others
        ({"src/graph.py": GRAPH.replace("def other", "def _other")}, ["_other"]),
        ({"langgraph.json": '{"graphs": {"a": "./src/graph.py:build"}}', "src/graph.py": GRAPH}, ["other"]),
        ({"pyproject.toml": "[project.scripts]\nx = 'src.graph:other'", "src/graph.py": GRAPH}, ["build", "helper"]),
        ({"README.md": "Run `python src/graph.py`", "src/graph.py": GRAPH + "build()\n"}, ["other"]),
        ({"README.md": "The graph is in src/graph.py", "src/graph.py": GRAPH}, []),
        ({"app.py": "app = make()\n@app.get('/')\ndef page():\n    work()\ndef lost():\n    work()\n",
          "Dockerfile": "CMD uvicorn app:app"}, ["lost"]),
        ({"main.py": "class A(Base):\n    def on_event(self): work()\nif __name__ == '__main__':\n    A()\n"}, []),
        ({"main.py": MAIN.replace("HERE", "pass"), "src/graph.py": GRAPH,
          "tests/test_graph.py": "from src.graph import build\ndef test():\n    build()\n"},
         ["build", "helper", "other"]),
    ],
)  # fmt: skip
def test_reach(files: dict[str, str], expected: list[str]) -> None:
    assert [name for name in dead(files) if not name.startswith("test")] == expected
