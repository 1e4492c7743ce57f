"""The passages of a repository's code, each with the words that stand in it, so that what a report says can be looked
for in one place: functions, classes, what is left of each file, and settings and templates whole; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pmagent.actors.audit.detectors.code.bound import Function
from pmagent.actors.audit.detectors.code.names import parameters
from pmagent.actors.audit.detectors.code.scopes import Module, module_of
from pmagent.actors.audit.detectors.code.source import Role, Source
from pmagent.contracts.audit_facts import CodePassage

PASSAGES_MAX: Final = 3_000
"""Of code in more passages than this none is told, only the words of all."""
TEXT_MAX: Final = 1_500_000
"""And of code with more characters."""
FILES_MAX: Final = 1_000
"""Or in more files."""
WORDS_MAX: Final = 30_000
_WORD: Final = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?")


class Passage(NamedTuple):
    """A function, a class without its methods, or a file without both (``name``: ""; ``line``: 0): the ``names`` and
    numbers that its code has, and its ``text``, with the words of comments and long texts."""

    path: str
    line: int
    name: str
    outer: str
    role: Role
    names: frozenset[str]
    text: str


class PassageReader:
    """Is given every Python file, then tells the passages."""

    def __init__(self, files: int) -> None:
        """``files``: so many there are altogether."""
        self._passages: list[Passage] = []
        self._size = 0 if files <= FILES_MAX else TEXT_MAX

    def take(self, source: Source) -> None:
        """Cut a file into its passages."""
        module = module_of(source)
        if module is not None:
            self._size += len(source.text)
            with_text = self._size <= TEXT_MAX
            self._passages += [one if with_text else one._replace(text="") for one in _cut(module)]

    def told(
        self, runs: Callable[[str, int, Sequence[str]], bool], others: Mapping[str, str], files: Sequence[str]
    ) -> tuple[str, str, list[CodePassage]]:
        """``words``, ``idle_words`` and ``passages`` of a survey. ``runs``: whether what stands at a path and line,
        under these names, can run; ``others``: the texts of files that are no Python, by path."""
        from pmagent.actors.audit.matters import terms  # loads the OA's word lists: who reads no code needs none

        read = [*self._passages, *(_whole(path, text) for path, text in others.items())]
        reached = [one.role != "test" and runs(one.path, one.line, (one.name, one.outer)) for one in read]
        code = [terms(one.names) for one in read]
        used = set().union(*(words for words, runs_ in zip(code, reached, strict=True) if runs_))
        used |= terms(part for path in files for part in _WORD.findall(path))
        shown = zip(read, code, reached, strict=True)
        idle = set().union(*(words for one, words, runs_ in shown if not runs_ and one.role != "test")) - used
        spoken = (used, idle) if len(used) + len(idle) <= WORDS_MAX else (set[str](), set[str]())
        told = zip(read, code, reached, strict=True) if len(read) <= PASSAGES_MAX and self._size <= TEXT_MAX else ()
        found = [CodePassage(
            path=one.path, line=one.line, name=one.name, words=" ".join(sorted(words)),
            said=" ".join(sorted(terms(_WORD.findall(one.text)) - words)), reached=runs_, test=one.role == "test",
        ) for one, words, runs_ in told]  # fmt: skip
        return " ".join(sorted(spoken[0])), " ".join(sorted(spoken[1])), found


def _whole(path: str, text: str) -> Passage:
    return Passage(path, 0, "", "", "code", frozenset(_WORD.findall(text)), "")


def _cut(module: Module) -> Iterator[Passage]:
    lines, path, role = module.lines, module.source.path, module.source.role
    taken: set[int] = set()
    blocks = [(node, site) for node, site in (*module.functions(), *module.classes())]
    for node, site in sorted(blocks, key=lambda one: -one[0].lineno):
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        own = [at for at in range(first, min(node.end_lineno or first, len(lines)) + 1) if at not in taken]
        taken.update(own)
        text = "\n".join(lines[at - 1] for at in own)
        outer = site.scope.node.name if isinstance(site.scope.node, ast.ClassDef) else ""
        yield Passage(path, node.lineno, node.name, outer, role, _names(module, node) | {node.name, outer}, text)
    rest = "\n".join(text for at, text in enumerate(lines, 1) if at not in taken)
    imported = {part for name in module.imported for part in name.split(".")}
    yield Passage(path, 0, "", "", role, _names(module, module.tree) | imported, rest)


def _names(module: Module, node: ast.AST) -> frozenset[str]:
    if isinstance(node, ast.ClassDef):
        fields = [ast.unparse(one) for one in node.body if not isinstance(one, Function | ast.ClassDef | ast.Expr)]
        return frozenset(name for field in (*fields, *map(ast.unparse, node.bases)) for name in _WORD.findall(field))
    heard = module.mentions[node]
    given = [one.arg for one in parameters(node)] if isinstance(node, Function) else []
    return frozenset(heard.names | heard.read | heard.said | heard.attributes).union(given)
