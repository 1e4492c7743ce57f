"""The functions in which findings lie, and those of a graph's nodes, whole, for judges to read."""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from pmagent.actors.audit.detectors.code.parse import parsed, role_of
from pmagent.contracts.audit_facts import CodeGraph, Finding, Function
from pmagent.events.redact import Redactor

Read = Callable[[str], bytes | None]
_Def = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTION_BYTES_MAX: Final = 12 * 1024
"""A longer one has no text: a judge reads whole functions, and several of them."""
FUNCTIONS_MAX: Final = 1_000
_LINES: Final = re.compile("\r\n?|\n")
_REDACTOR: Final = Redactor()


def functions_of(
    findings: Sequence[Finding], graphs: Sequence[CodeGraph], read: Read, paths: Sequence[str], budget: int
) -> list[Function]:
    """The innermost functions around the findings, the first finding of each goal before the second of any, flaws
    first; before them those that a graph's nodes are. ``budget``: bytes of their texts; without room one has none."""
    files = _Files(read, paths)
    made: dict[tuple[str, int], Function] = {}
    left = budget
    for one in itertools.chain(_of_graphs(graphs, files), _of_findings(findings, files)):
        if (one.path, one.line) in made:
            continue
        size = len(one.text.encode())
        fits = size <= min(left, FUNCTION_BYTES_MAX)
        made[one.path, one.line] = one if fits else msgspec.structs.replace(one, text="")
        left -= size if fits else 0
        if len(made) == FUNCTIONS_MAX:
            break
    return list(made.values())


def _of_findings(findings: Iterable[Finding], files: _Files) -> Iterator[Function]:
    from pmagent.actors.audit.goals import GOALS  # reads its table; processes that survey nothing need none

    ranks: Counter[str] = Counter()
    ordered = []
    for one in (one for one in findings if not one.goal.startswith("repo.")):
        ranks[one.goal] += 1
        is_flaw = one.goal in GOALS and GOALS[one.goal].kind == "flaw"
        ordered.append(((role_of(one.path) != "code", ranks[one.goal], not is_flaw), one))
    for _, one in sorted(ordered, key=lambda entry: entry[0]):
        yield from files.around(one.path, one.line)


def _of_graphs(graphs: Iterable[CodeGraph], files: _Files) -> Iterator[Function]:
    for graph in graphs:
        yield from files.around(graph.path, graph.line)
        for node in graph.nodes:
            yield from files.handed(graph.path, node.line)


class _File(NamedTuple):
    lines: list[str]
    tree: ast.Module
    defs: list[_Def]


class _Files:
    """The repository's Python files, each parsed when it is first asked for."""

    def __init__(self, read: Read, paths: Sequence[str]) -> None:
        self._read = read
        self._paths = paths
        self._files: dict[str, _File] = {}

    def around(self, path: str, line: int) -> Iterator[Function]:
        """The innermost function around a line, if there is one."""
        found = [one for one in self._file(path).defs if _first(one) <= line <= (one.end_lineno or 0)]
        if found:
            yield self._made(path, max(found, key=lambda one: one.lineno))

    def handed(self, path: str, line: int) -> Iterator[Function]:
        """The functions whose names stand as arguments in a call at this line: of the same file, or of one from which
        it imports."""
        nodes = list(ast.walk(self._file(path).tree))
        calls = [one for one in nodes if isinstance(one, ast.Call) and one.lineno == line]
        given = [each for call in calls for each in (*call.args, *(one.value for one in call.keywords))]
        names = {one.id for one in given if isinstance(one, ast.Name)}
        modules = [one.module for one in nodes if isinstance(one, ast.ImportFrom) and one.module]
        ends = tuple(f"/{one.replace('.', '/')}.py" for one in modules)
        for place in (path, *(one for one in self._paths if names and f"/{one}".endswith(ends))):
            yield from (self._made(place, one) for one in self._file(place).defs if one.name in names)

    def _file(self, path: str) -> _File:
        if path not in self._files:
            content = self._read(path) if path.endswith(".py") else None
            source = parsed(path, content) if content is not None else None
            tree = source.tree if source is not None else None
            lines = _LINES.split(source.text) if source is not None else []
            self._files[path] = _File(lines, tree or ast.Module([], []), list(_defs(tree)))
        return self._files[path]

    def _made(self, path: str, one: _Def) -> Function:
        first, end = _first(one), one.end_lineno or one.lineno
        text = "\n".join(self._file(path).lines[first - 1 : end]).encode("utf-8", "replace").decode()
        return Function(path=path, line=first, end=end, name=one.name, text=_REDACTOR.text(text))


def _defs(tree: ast.Module | None) -> Iterator[_Def]:
    """The functions in the order of ``ast.walk``; only statements are gone over, for in nothing else there are any."""
    todo: list[ast.AST] = [tree] if tree is not None else []
    for node in todo:  # which grows
        if isinstance(node, _Def):
            yield node
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            todo += getattr(node, name, ())


def _first(one: _Def) -> int:
    return min((one.lineno, *(each.lineno for each in one.decorator_list)))
