"""The modules of the audited repository, and which file an import means; pure."""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from pmagent.actors.audit.detectors.code.source import Source

_GRAPH_WORDS: Final = re.compile(
    r"\b(?:StateGraph|MessageGraph|Graph|create_react_agent|create_agent|create_supervisor|create_swarm|entrypoint"
    r"|add_node|add_edge|add_conditional_edges|add_sequence)\b(?:\s+as\s+(\w+))?"
)
_WORD: Final = re.compile(r"[^\W\d]\w*")
_IMPORT: Final = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+\(?([\w \t,]*)|import[ \t]+([\w.]+))", re.MULTILINE
)
IMPORTERS_MAX: Final = 200
"""So many files that import those that speak of graphs are followed too."""
_OUTSIDE: Final = frozenset([
    "collections", "copy", "dataclasses", "enum", "functools", "itertools", "langchain", "langchain_core", "langgraph",
    "operator", "os", "types", "typing", "typing_extensions",
])
"""Packages that no file of the repository stands for, whatever it is called."""


class Program:
    """All Python files of a repository: the syntax trees of those that speak of graphs, the text of the others, which
    are parsed when one of them is imported."""

    def __init__(self) -> None:
        self.sources: dict[str, Source] = {}
        self.about_graphs: list[str] = []
        self._folders: set[str] = set()
        self._by_name: dict[str, list[str]] = defaultdict(list)

    def __getstate__(self) -> dict[str, object]:
        """Without trees: to parse a file again costs less than to hand its tree over to another process."""
        return {**vars(self), "sources": {path: one._replace(tree=None) for path, one in self.sources.items()}}

    def add(self, source: Source) -> None:
        """Take a file that parses. Its tree is kept only when it can hold a graph."""
        if source.tree is None:
            return
        if mentions_graphs(source.text):
            self.about_graphs.append(source.path)
            self.sources[source.path] = source
        else:
            self.sources[source.path] = source._replace(tree=None)
        parts = source.path.split("/")
        self._folders.update("/".join(parts[:n]) for n in range(1, len(parts)))
        self._by_name[_module_name(source.path).rpartition("/")[2]].append(source.path)

    def tree(self, path: str) -> ast.Module | None:
        """The syntax tree of a file; None: it is too deep to be read again."""
        source = self.sources[path]
        if source.tree is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    return ast.parse(source.text)
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    return None
        return source.tree

    def locate(self, dotted: str, level: int, importer: str) -> str | None:
        """The file (or the folder, its path ends with /) that ``from <level dots><dotted> import`` in ``importer``
        means; None: it is not of this repository. An absolute name is looked for beside the importer and in each folder
        above it, for any of them may be on the path; then anywhere, if just one file bears it."""
        parts = [part for part in dotted.split(".") if part]
        folders = importer.split("/")[:-1]
        if level:
            return self._at("/".join(folders[: max(len(folders) - level + 1, 0)] + parts))
        if not parts or parts[0] in _OUTSIDE:
            return None
        for depth in range(len(folders), -1, -1):
            if (found := self._at("/".join(folders[:depth] + parts))) is not None and found != importer:
                return found
        if len(parts) < 2:
            return self._at(f"src/{parts[0]}")
        tail = "/" + "/".join(parts)
        found_anywhere = [path for path in self._by_name[parts[-1]] if f"/{_module_name(path)}".endswith(tail)]
        return found_anywhere[0] if len(found_anywhere) == 1 else None

    def importers(self) -> list[str]:
        """The files that do not speak of graphs themselves, but import one that does."""
        about = set(self.about_graphs)
        found = []
        for path, source in self.sources.items():
            if path not in about and not about.isdisjoint(self._imports(source)):
                found.append(path)
        return sorted(found)[:IMPORTERS_MAX]

    def _imports(self, source: Source) -> Iterator[str]:
        for dots, module, names, plain in _IMPORT.findall(source.text):
            inside = [f"{module}.{name}" for name in names.replace(",", " ").split()] if names else []
            for dotted in (plain or module, *inside):
                if dotted or dots:
                    yield self.locate(dotted, len(dots), source.path) or ""

    def inside(self, path: str, name: str) -> str | None:
        """The module ``name`` of a package or folder."""
        if path.endswith("/"):
            return self._at(path + name)
        return self._at(f"{_module_name(path)}/{name}") if path.endswith("__init__.py") else None

    def _at(self, module: str) -> str | None:
        for path in (f"{module}.py", f"{module}/__init__.py", f"{module}.ipynb"):
            if path in self.sources:
                return path
        return f"{module}/" if module in self._folders or not module else None


def mentions_graphs(text: str) -> bool:
    """Whether a file can have to do with a graph of LangGraph; cheap."""
    return "langgraph" in text or "StateGraph" in text or "MessageGraph" in text or "create_agent" in text


class Mentions:
    """The lines of a file that speak of graphs, of what is made of them (``as`` names) or of functions that do."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._breaks = [match.end() for match in re.finditer(r"\r\n|\r|\n", text)]
        self.lines: list[int] = []
        aliases = set()
        for match in _GRAPH_WORDS.finditer(text):
            self.lines.append(self._line(match.start()))
            if match[1]:
                aliases.add(match[1])
        if aliases:
            self.also(aliases)

    def also(self, names: set[str]) -> None:
        """Count the lines that hold one of these names too."""
        found = {self._line(match.start()) for match in _WORD.finditer(self._text) if match[0] in names}
        self.lines = sorted(found.union(self.lines))

    def within(self, node: ast.stmt) -> bool:
        """Whether one of them lies in the body of a definition, behind its first line."""
        at = bisect_left(self.lines, node.lineno + 1)
        if at < len(self.lines) and self.lines[at] <= (node.end_lineno or node.lineno):
            return True
        return node.end_lineno == node.lineno and node.lineno in self.lines

    def _line(self, offset: int) -> int:
        return bisect_left(self._breaks, offset + 1) + 1


def _module_name(path: str) -> str:
    """``a/b`` of a/b.py, a/b.ipynb and a/b/__init__.py."""
    stem = path.rpartition(".")[0]
    return stem.removesuffix("/__init__") if stem != "__init__" else ""
