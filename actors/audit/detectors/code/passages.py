"""The passages of a repository's code, each with all the words that stand in it, so that what a report says can be
looked for in one place: functions, classes, what is left of each file, and settings and templates whole; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from pmagent.actors.audit.detectors.code.bound import Function
from pmagent.actors.audit.detectors.code.scopes import Module, module_of
from pmagent.actors.audit.detectors.code.source import Role, Source
from pmagent.contracts.audit_facts import CodePassage

PASSAGES_MAX: Final = 3_000
"""Of code in more passages than this none is told."""
TEXT_MAX: Final = 1_500_000
"""And of code with more characters."""
_WORD: Final = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?")


class Passage(NamedTuple):
    """A function, a class without its methods, or a file without both (``name``: ""): the ``names`` and numbers that
    its code has, and all other words of its ``text``: those of comments and long texts."""

    path: str
    line: int
    name: str
    role: Role
    names: frozenset[str]
    text: str


class PassageReader:
    """Is given every Python file, then tells the passages."""

    def __init__(self) -> None:
        self._passages: list[Passage] = []
        self._size = 0

    def take(self, source: Source) -> None:
        """Cut a file into its passages."""
        module = module_of(source)
        if module is not None and self._size <= TEXT_MAX and len(self._passages) <= PASSAGES_MAX:
            self._size += len(source.text)
            self._passages += _cut(module)

    def told(self, reached: Callable[[str, int], bool], others: Iterable[tuple[str, str]]) -> list[CodePassage]:
        """All passages; none where there are too many. ``others``: path and text of files that are no Python."""
        from pmagent.actors.audit.matters import terms  # loads the OA's word lists, as in ``survey``

        if self._size > TEXT_MAX or len(self._passages) > PASSAGES_MAX:
            return []
        found = []
        of_files = (Passage(path, 0, "", "code", frozenset(_WORD.findall(text)), "") for path, text in others)
        for one in (*self._passages, *of_files):
            names = terms(one.names)
            found.append(CodePassage(
                path=one.path, line=one.line, name=one.name, words=" ".join(sorted(names)),
                said=" ".join(sorted(terms(_WORD.findall(one.text)) - names)), test=one.role == "test",
                reached=one.role != "test" and reached(one.path, one.line),
            ))  # fmt: skip
        return found


def _cut(module: Module) -> Iterator[Passage]:
    lines, path, role = module.lines, module.source.path, module.source.role
    taken: set[int] = set()
    blocks = [(node, site) for node, site in (*module.functions(), *module.classes())]
    for node, site in sorted(blocks, key=lambda one: -one[0].lineno):
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        own = [at for at in range(first, (node.end_lineno or first) + 1) if at not in taken]
        taken.update(own)
        text = "\n".join(lines[at - 1] for at in own if at <= len(lines))
        around = site.scope.node
        outer = around.name if isinstance(around, ast.ClassDef) else ""
        yield Passage(path, node.lineno, node.name, role, _names(module, node) | {node.name, outer}, text)
    rest = "\n".join(text for at, text in enumerate(lines, 1) if at not in taken)
    yield Passage(path, 0, "", role, _names(module, module.tree), rest)


def _names(module: Module, node: ast.AST) -> frozenset[str]:
    if isinstance(node, ast.ClassDef):
        fields = [ast.unparse(one) for one in node.body if not isinstance(one, Function | ast.ClassDef | ast.Expr)]
        return frozenset(name for field in (*fields, *map(ast.unparse, node.bases)) for name in _WORD.findall(field))
    heard = module.mentions[node]
    return frozenset(heard.names | heard.read | heard.said | heard.attributes)
