"""Where the names, paths and phrases stand that a rubric quotes: in code, not in comments and docstrings; pure.

A name counts where it is defined, imported, used, or is the whole of a text ("cited_evidence" as a key). A dotted one
is compared through the file's imports. A phrase counts in texts, in lists of words that make a command, and as a name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from pmagent.actors.audit.detectors.code.excerpts import clean
from pmagent.actors.audit.detectors.code.source import Role, Source
from pmagent.actors.audit.detectors.code.term_patterns import Pattern, like, pattern, squashed
from pmagent.contracts.audit_facts import Finding, Term

PLACES_MAX: Final = 8
TERMS_MAX: Final = 400
_LINE_CHARS: Final = 240
_ORDER: Final[tuple[Role, ...]] = ("code", "example", "test")
_TEXT_CHARS: Final = 100_000
"""Texts longer than this are data; only so much of them is searched."""

_UNKNOWN: Final = "\0"
"""What stands for a word of a command that is no text."""

Occurrence = tuple[Pattern, int]


class _Places:
    """The first places of a term, by the role of the file they are in; ``count`` of all, each line once. Where a file
    does more with a name than import it, the import is not shown."""

    def __init__(self) -> None:
        self.count = 0
        self.kept: dict[Role, list[Finding]] = {role: [] for role in _ORDER}

    def take(self, source: Source, count: int, shown: Sequence[tuple[int, str]]) -> None:
        """So many in a file; these lines of it."""
        self.count += count
        kept = self.kept[source.role]
        for line, text in shown[: PLACES_MAX - len(kept)]:
            kept.append(Finding(goal="repo.term", path=source.path, line=line, text=text))

    def first(self) -> list[Finding]:
        return [place for role in _ORDER for place in self.kept[role]][:PLACES_MAX]


class TermReader:
    """Looks for ``terms`` in every file it is given, and at the end among the paths."""

    def __init__(self, terms: Iterable[str]) -> None:
        patterns = [pattern(term) for term in dict.fromkeys(terms)][:TERMS_MAX]
        self._patterns = patterns
        self._places = {one.term: _Places() for one in patterns}
        self._names = _by(patterns, ("name", "call"))
        self._keywords = _by(patterns, ("keyword",))
        self._joined = {one.joined: one for one in patterns if one.joined}
        phrases = [one for one in patterns if one.kind == "phrase"]
        self._phrases = [(one, re.compile(rf"(?<!\w){re.escape(one.phrase)}(?!\w)")) for one in phrases]
        self._commands: dict[str, list[Pattern]] = {}
        for one in phrases:
            first, _, rest = one.phrase.partition(" ")
            if rest:
                self._commands.setdefault(first, []).append(one)
        self._squashed: dict[str, Pattern | None] = {}

    def take(self, source: Source) -> None:
        """Look at a file."""
        if source.tree is None or not self._patterns:
            return
        look = _Look(self, source.tree)
        seen: dict[str, set[int]] = {}
        for one, line in look.occurrences():
            seen.setdefault(one.term, set()).add(line)
        lines = source.text.split("\n") if seen else []
        for term in sorted(seen):
            used = sorted(seen[term] - look.imports) or sorted(seen[term])
            shown = [(line, clean(lines[line - 1].strip()[:_LINE_CHARS])) for line in used[:PLACES_MAX]]
            self._places[term].take(source, len(seen[term]), shown)

    def terms(self, files: Sequence[str]) -> list[Term]:
        """What was found of each term, in the order in which they were given."""
        return [self._term(one, files) for one in self._patterns]

    def named(self, name: str) -> Sequence[Pattern]:
        """Names and calls that end with ``name``."""
        return self._names.get(name, ())

    def keyword(self, name: str) -> Sequence[Pattern]:
        """``name=value`` that is quoted."""
        return self._keywords.get(name, ())

    def squashed(self, name: str) -> Pattern | None:
        """The phrase that ``name`` is, written as one word."""
        if not self._joined:
            return None
        if name not in self._squashed:
            if len(self._squashed) > 200_000:
                self._squashed.clear()
            self._squashed[name] = self._joined.get(squashed(name))
        return self._squashed[name]

    def commands(self, word: str) -> Sequence[Pattern]:
        """Phrases of several words that begin with ``word``, as a command does; other words may stand between."""
        return self._commands.get(word, ())

    def in_text(self, text: str) -> Iterator[Pattern]:
        """The phrases that stand in a text, and the names that it is."""
        if len(text) <= 100:
            yield from (one for one in self.named(text) if one.kind == "name" and one.dotted == text)
        if self._phrases:
            folded = " ".join(text[:_TEXT_CHARS].lower().split())
            yield from (one for one, wanted in self._phrases if one.phrase in folded and wanted.search(folded))

    def _term(self, one: Pattern, files: Sequence[str]) -> Term:
        if one.kind != "path":
            found = self._places[one.term]
            return Term(term=one.term, count=found.count, places=found.first())
        paths = matching(one.phrase, files)
        places = [
            Finding(goal="repo.term", path=path, line=0, text=clean(f"the file {path}")) for path in paths[:PLACES_MAX]
        ]
        return Term(term=one.term, count=len(paths), places=places)


def matching(wanted: str, files: Sequence[str]) -> list[str]:
    """The files that a quoted path means: the path itself, else those that end with it; of a folder, what is in it."""
    if wanted.endswith("/"):
        inside = [path for path in files if path.startswith(wanted)]
        return inside or [path for path in files if f"/{wanted}" in path]
    exact = [path for path in files if path == wanted]
    return exact or [path for path in files if path.endswith(f"/{wanted}")]


def _by(patterns: Iterable[Pattern], kinds: Sequence[str]) -> dict[str, list[Pattern]]:
    found: dict[str, list[Pattern]] = {}
    for one in patterns:
        if one.kind in kinds:
            for name in one.names:
                found.setdefault(name, []).append(one)
    return found


class _Look:
    """One pass over a tree."""

    def __init__(self, reader: TermReader, tree: ast.Module) -> None:
        self._reader = reader
        self._tree = tree
        self._aliases: dict[str, str] | None = None
        self.imports: set[int] = set()
        """Lines of imports that were met."""
        self._actions: dict[type[ast.AST], Callable[..., Iterator[Occurrence]]] = {
            ast.Name: self._name, ast.Attribute: self._attribute, ast.Call: self._call, ast.Constant: self._constant,
            ast.FunctionDef: self._definition, ast.AsyncFunctionDef: self._definition, ast.ClassDef: self._definition,
            ast.arg: self._argument, ast.alias: self._alias, ast.ImportFrom: self._from, ast.List: self._words,
            ast.Tuple: self._words, ast.Dict: self._dict, ast.keyword: self._keyword,
        }  # fmt: skip

    def occurrences(self) -> Iterator[Occurrence]:
        """Terms, with their lines; some of them twice."""
        pending: list[ast.AST] = [self._tree]
        while pending:
            node = pending.pop()
            action = self._actions.get(type(node))
            if action is not None:
                yield from action(node)
            if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):  # docstrings
                pending.extend(ast.iter_child_nodes(node))

    def _plain(self, name: str, line: int) -> Iterator[Occurrence]:
        """A name by itself: not one that wants something before it."""
        yield from ((one, line) for one in self._reader.named(name) if one.kind == "name" and one.dotted == name)
        phrase = self._reader.squashed(name)
        if phrase is not None:
            yield phrase, line

    def _whole(self, chain: str, name: str, line: int) -> Iterator[Occurrence]:
        """A name with what stands before it, as it was imported."""
        for one in self._reader.named(name):
            if one.kind == "name" and "." in one.dotted and _ends(self._resolved(chain), one.dotted):
                yield one, line

    def _name(self, node: ast.Name) -> Iterator[Occurrence]:
        yield from self._plain(node.id, node.lineno)
        if self._reader.named(node.id):
            yield from self._whole(node.id, node.id, node.lineno)

    def _attribute(self, node: ast.Attribute) -> Iterator[Occurrence]:
        line = node.end_lineno or node.lineno
        yield from self._plain(node.attr, line)
        if self._reader.named(node.attr):
            yield from self._whole(_chain(node), node.attr, line)

    def _call(self, node: ast.Call) -> Iterator[Occurrence]:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        for one in self._reader.named(name):
            if one.kind != "call" or len(node.args) < len(one.arguments):
                continue
            given = zip(one.arguments, node.args, strict=False)
            if _ends(self._resolved(_chain(node.func)), one.dotted) and all(like(want, arg) for want, arg in given):
                yield one, node.func.end_lineno or node.lineno
        yield from self._command(node.args, node.lineno)

    def _constant(self, node: ast.Constant) -> Iterator[Occurrence]:
        if isinstance(node.value, str):
            yield from ((one, node.lineno) for one in self._reader.in_text(node.value))

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[Occurrence]:
        return self._plain(node.name, node.lineno)

    def _argument(self, node: ast.arg) -> Iterator[Occurrence]:
        return self._plain(node.arg, node.lineno)

    def _keyword(self, node: ast.keyword) -> Iterator[Occurrence]:
        if node.arg is None:
            return
        yield from self._plain(node.arg, node.lineno)
        yield from self._value(node.arg, node.value, node.lineno)

    def _dict(self, node: ast.Dict) -> Iterator[Occurrence]:
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield from self._value(key.value, value, key.lineno)

    def _value(self, name: str, value: ast.expr, line: int) -> Iterator[Occurrence]:
        yield from ((one, line) for one in self._reader.keyword(name) if like(one.arguments[0], value))

    def _alias(self, node: ast.alias) -> Iterator[Occurrence]:
        self.imports.add(node.lineno)
        yield from self._plain(node.name.rpartition(".")[2], node.lineno)
        if node.asname:
            yield from self._plain(node.asname, node.lineno)
        if "." in node.name:
            yield from self._whole(node.name, node.name.rpartition(".")[2], node.lineno)

    def _from(self, node: ast.ImportFrom) -> Iterator[Occurrence]:
        for alias in node.names:
            chain = f"{node.module or ''}.{alias.name}"
            for one in self._reader.named(alias.name):
                if one.kind == "name" and "." in one.dotted and _ends(chain, one.dotted):
                    yield one, alias.lineno

    def _words(self, node: ast.List | ast.Tuple) -> Iterator[Occurrence]:
        return self._command(node.elts, node.lineno)

    def _command(self, parts: Sequence[ast.expr], line: int) -> Iterator[Occurrence]:
        """Texts one behind the other, as a command is given: ["git", "clone", url]."""
        words = [
            part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "\0"
            for part in parts[:100]
        ]
        if sum(word != _UNKNOWN for word in words) < 2:
            return
        yield from ((one, line) for one in self._reader.in_text(" ".join(words)) if one.kind == "phrase")
        yield from ((one, line) for one in self._reader.commands(words[0]) if set(words).issuperset(one.phrase.split()))

    def _resolved(self, chain: str) -> str:
        """A chain whose first name is what it was imported as."""
        if self._aliases is None:
            self._aliases = _imports(self._tree)
        head, dot, rest = chain.partition(".")
        return f"{self._aliases.get(head, head)}{dot}{rest}"


def _ends(chain: str, wanted: str) -> bool:
    return chain == wanted or chain.endswith(f".{wanted}")


def _chain(node: ast.AST) -> str:
    """``a.b.c``; what is no name before the dots is left out, and a dot stays in its place."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < 50:
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts))


def _imports(tree: ast.Module) -> dict[str, str]:
    """What the names that a file imports, anywhere in it, stand for."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update((alias.asname, alias.name) for alias in node.names if alias.asname)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
    return found
