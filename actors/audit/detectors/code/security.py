"""Unsafe calls and secrets in code nobody here wrote, by its syntax tree: never by words in it; pure.

Confidence: 0.9 and more where the call is the unsafe one and its text is not constant; below 0.8, which no longer
counts as confirmed, where the value may well be harmless (a constant of another module, a pickle of the same file).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from pmagent.actors.audit.detectors.code.calls import SHELLS, STARTING, Start, Word, start
from pmagent.actors.audit.detectors.code.clones import clones
from pmagent.actors.audit.detectors.code.excerpts import found
from pmagent.actors.audit.detectors.code.names import (
    argument,
    bindings,
    by_word,
    called,
    calls_of,
    dotted,
    keyword,
    last_name,
    parameters,
)
from pmagent.actors.audit.detectors.code.notes import Notes, Sign, Waiting
from pmagent.actors.audit.detectors.code.places import Place, is_own_file, place_of
from pmagent.actors.audit.detectors.code.scopes import Function, Module, Site
from pmagent.actors.audit.detectors.code.secret_literals import secrets_in
from pmagent.actors.audit.detectors.code.strings import is_constant, pieces
from pmagent.actors.audit.detectors.code.unsafe_loads import LOADING, Unsafe, is_load, unsafe_load
from pmagent.actors.audit.lists import Lists
from pmagent.contracts.audit_facts import Finding

_LISTS: Final = Lists(__package__, "security")

_COMMANDS: Final = _LISTS.words("commands")
_SHELL_TEXTS: Final = _LISTS.words("shell_texts")
_MODEL_SHELLS: Final = ("ShellTool", "BashProcess", "BashTool")
_MODEL_CODE: Final = ("PythonREPL", "PythonREPLTool", "PythonAstREPLTool")
_INTERPRETER: Final = re.compile(r"(?:.*/)?(?:python[\d.]*|node|ruby|perl|php)(?:\.exe)?")
_GIVEN: Final = frozenset({"sys.executable", "sys.platform", "os.name", "os.sep", "os.linesep", "sys.prefix"})
_QUOTING: Final = frozenset({"shlex.quote", "shlex.join", "pipes.quote", "subprocess.list2cmdline"})


_DANGEROUS: Final = "allow_dangerous_deserialization"
_CLONING: Final = re.compile(r"clone|checkout|fetch|download|repo|pull|git", re.IGNORECASE)
_HANDED: Final = 0.8
"""So sure it is that a clone goes to a place that a caller gives."""
_STATEMENTS: Final = frozenset({"execute", "executemany", "executescript", "read_sql", "read_sql_query"})
_SQL: Final = re.compile(r"\s*(?:select|insert|update|delete|replace|with|merge)\b", re.IGNORECASE)
_TABLE: Final = re.compile(r"\b(?:from|into|update|join|table|by|set|select|limit)\s+[\"`\[]?$", re.IGNORECASE)


_WORDS: Final = STARTING | _STATEMENTS | LOADING | frozenset((
    *(name.rpartition(".")[2] for name in _COMMANDS | _SHELL_TEXTS), "subprocess_shell", "eval", "exec", "execfile",
    "run_path", *_MODEL_SHELLS, *_MODEL_CODE,
))  # fmt: skip
"""The last words of calls that can be unsafe."""


def look(module: Module, notes: Notes) -> None:
    """Note the flaws of a file, and how many calls could have been any. A clone that goes where a caller says waits
    for the callers."""
    code = module.source.role == "code"
    flaws = []
    for call, site in _candidates(module):
        relevant, unsafe = judged(module, call, site)
        notes.counts["calls_examined"] += relevant
        if relevant and code:
            notes.examined_in_code += 1
            notes.first_examined = notes.first_examined or f"{module.source.path}:{call.lineno}"
        if unsafe is not None:
            flaws.append(_finding(module, site, unsafe))
    for clone in clones(module):
        place = _target(module, clone.target, clone.folder, clone.site)
        finding = _finding(module, clone.site, Unsafe("security.clone_in_place", place.sure))
        if place.param and code:
            notes.waiting.extend(_waiting(clone.site.scope.function, place.param, finding))
        if place.where in {"working", "fixed"} and not clone.unknown:
            flaws.append(finding)
    flaws.extend(secrets_in(module))
    if code:
        notes.found.extend(flaws)
        for sign, where in _handed(module):
            notes.signs.setdefault(sign, where)
    else:
        notes.found.extend(
            Finding(
                goal="security.in_tests", path=one.path, line=one.line, confidence=one.confidence,
                text=f"in a {module.source.role}: {one.goal}\n{one.text}"[:2_000],
            )
            for one in flaws
        )  # fmt: skip


def _candidates(module: Module) -> Iterable[tuple[ast.Call, Site]]:
    """The calls that can be unsafe, by their last words or a keyword."""
    calls = module.calls()
    numbers = set(by_word(module, ast.Call).of(_WORDS))
    if module.may_name(_DANGEROUS):
        numbers.update(number for number, (call, _) in enumerate(calls) if keyword(call, _DANGEROUS))
    return [calls[number] for number in sorted(numbers)]


def _waiting(function: Function | None, parameter: str, finding: Finding) -> Iterator[Waiting]:
    """A clone whose place a caller gives, by name or in the order of a call."""
    if function is not None:
        names = [one.arg for one in parameters(function)]
        names = names[1:] if names[:1] in (["self"], ["cls"]) else names
        keys = (parameter, names.index(parameter) if parameter in names else -1)
        says = f"{parameter} is a fixed place, or below the working directory, in the call at {{}}"
        finding = msgspec.structs.replace(finding, confidence=_HANDED)
        yield Waiting(tuple(("place", function.name, key) for key in keys), finding, says)


def _handed(module: Module) -> Iterator[tuple[Sign, str]]:
    """The calls that give a fixed place, or one in the working directory, to a function that may clone."""
    for call, site in calls_of(module, [word for word in by_word(module, ast.Call) if _CLONING.search(word)]):
        written = last_name(call.func)
        if not _CLONING.search(written):
            continue
        given: list[tuple[str | int, ast.expr]] = [*enumerate(call.args)]
        given += [(one.arg, one.value) for one in call.keywords if one.arg]
        for key, value in given[:12]:
            place = place_of(module, value, site.scope)
            if place.where in {"working", "fixed"} and place.sure >= _HANDED and not place.param:
                yield ("place", written, key), f"{module.source.path}:{call.lineno}"


def _finding(module: Module, site: Site, unsafe: Unsafe) -> Finding:
    return found(unsafe.goal, module, site, confidence=unsafe.sure, lines=6)


def judged(module: Module, call: ast.Call, site: Site) -> tuple[bool, Unsafe | None]:
    """Whether ``call`` belongs to those that can be unsafe, and what is wrong with it."""
    if not isinstance(call.func, ast.Name | ast.Attribute | ast.Call):
        return False, None
    name = called(module, call, site)
    started = start(module, call, site)
    if started is not None:
        return True, _started(module, started)
    if name in _COMMANDS:
        return True, _text(module, argument(call, 0, "command", "cmd"), site, "security.os_system")
    if name in _SHELL_TEXTS or name.endswith(".subprocess_shell"):
        index = 1 if name.endswith(".subprocess_shell") else 0
        return True, _text(module, argument(call, index, "cmd", "command"), site, "security.shell")
    if name in {"builtins.eval", "builtins.exec", "builtins.execfile"}:
        return True, _evaluated(module, call, site)
    if name in {"pandas.eval", "runpy.run_path"}:
        unsafe = _text(module, argument(call, 0, "expr", "path_name"), site, "security.evaluation")
        return True, unsafe and unsafe._replace(sure=0.5)
    if is_load(name):
        return True, unsafe_load(module, call, site, name)
    if _is_true(keyword(call, _DANGEROUS)):
        return True, Unsafe("security.unsafe_load", 0.7)  # an index of LangChain's, pickled; most likely its own
    if isinstance(call.func, ast.Attribute) and call.func.attr in _STATEMENTS:
        return _statement(module, argument(call, 0, "sql", "statement", "query"), site)
    last = name.removesuffix("()").rpartition(".")[2]
    if name.startswith("langchain") and last in _MODEL_SHELLS:
        return True, Unsafe("security.shell", 0.7)
    if name.startswith("langchain") and last in _MODEL_CODE:
        return True, Unsafe("security.evaluation", 0.7)
    return False, None


def _statement(module: Module, text: ast.expr | None, site: Site) -> tuple[bool, Unsafe | None]:
    """Whether a text is SQL, and whether values were put into it; names of tables cannot be handed over apart."""
    row = pieces(module, text, site.scope) if text is not None else []
    if not row or not isinstance(row[0], str) or not _SQL.match(row[0]):
        return False, None
    before = [row[place - 1] for place, piece in enumerate(row) if place and not isinstance(piece, str)]
    into = [one for one in before if not isinstance(one, str) or not _TABLE.search(one)]
    return True, Unsafe("security.sql", 0.7) if into else None


def _is_true(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def _started(module: Module, started: Start) -> Unsafe | None:
    row = started.words
    if row is not None and len(row) > 2 and row[0].text is not None:
        program = row[0].text.replace("\\", "/").rpartition("/")[2]
        if program in SHELLS and row[1].text in {"-c", "-lc", "-ec", "-exc", "/c", "-Command"}:
            return _text(module, row[2].value, started.site, "security.shell")
    if row is not None and len(row) > 2 and row[1].text in {"-c", "-e"} and _is_interpreter(module, row[0]):
        unsafe = _text(module, row[2].value, started.site, "security.evaluation")
        return unsafe and unsafe._replace(sure=0.6)  # in a process of its own, perhaps a confined one
    if started.shell is False or started.command is None:
        return None
    command = row[0].value if row else started.command
    unsafe = _text(module, command, started.site, "security.shell")
    if unsafe is not None and started.shell is None:
        return unsafe._replace(sure=0.5)
    return unsafe


def _text(module: Module, text: ast.expr | None, site: Site, goal: str) -> Unsafe | None:
    """Text that a shell will read: nothing wrong where it is constant, or every hole of it is quoted."""
    if text is None or is_constant(module, text, site.scope):
        return None
    holes = [piece for piece in pieces(module, text, site.scope) if not isinstance(piece, str)]
    if holes and all(_is_quoted(module, hole, site) for hole in holes):
        return None
    return Unsafe(goal, 0.6 if all(_is_foreign_constant(hole, site) for hole in holes) else 0.95)


def _is_interpreter(module: Module, word: Word) -> bool:
    """Whether a program runs the code that it is given: ``python -c``, ``node -e``."""
    if word.text is not None:
        return _INTERPRETER.fullmatch(word.text) is not None
    return dotted(module, word.value, word.scope) == "sys.executable"


def _is_quoted(module: Module, hole: ast.expr, site: Site) -> bool:
    """Whether a hole is quoted for a shell, or has a value that the machine gives rather than a person."""
    if dotted(module, hole, site.scope) in _GIVEN or (isinstance(hole, ast.Name) and hole.id == "__file__"):
        return True
    if isinstance(hole, ast.Name):
        assigned = [one for one in bindings(site.scope, hole) if one.kind == "value" and one.value is not None]
        if len(assigned) == 1 and len(bindings(site.scope, hole)) == 1 and assigned[0].value is not None:
            hole = assigned[0].value
    return isinstance(hole, ast.Call) and dotted(module, hole.func, site.scope) in _QUOTING


def _is_foreign_constant(hole: ast.expr, site: Site) -> bool:
    """Whether a name in capitals is imported: a constant of another module, most likely."""
    return (
        isinstance(hole, ast.Name)
        and hole.id.isupper()
        and all(one.kind == "import" for one in bindings(site.scope, hole))
    )


def _evaluated(module: Module, call: ast.Call, site: Site) -> Unsafe | None:
    code = argument(call, 0, "source", "object")
    if isinstance(code, ast.Call) and dotted(module, code.func, site.scope) == "builtins.compile":
        code = argument(code, 0, "source")
    if code is None or is_constant(module, code, site.scope):
        return None
    if is_own_file(module, code, site.scope):
        return Unsafe("security.evaluation", 0.5)
    return Unsafe("security.evaluation", 0.9)


def _target(module: Module, target: ast.expr | None, folder: ast.expr | None, site: Site) -> Place:
    """Where a clone goes: its target, below the folder it is started in."""
    if folder is None:
        return Place("working", 0.9) if target is None else place_of(module, target, site.scope)
    around = place_of(module, folder, site.scope)
    if target is None:
        return around
    inner = place_of(module, target, site.scope)
    return around if inner.where == "working" else inner
