"""Calls that start processes: which there are, their argument lists, and the git clones among them; pure."""

from __future__ import annotations

import ast
import re
from typing import Final, NamedTuple

from pmagent.actors.audit.detectors.code.names import (
    BINDINGS_MAX,
    argument,
    bindings,
    called,
    calls_of,
    keyword,
    last_name,
)
from pmagent.actors.audit.detectors.code.scopes import Module, Scope, Site, once
from pmagent.actors.audit.detectors.code.strings import Piece, folded, pieces
from pmagent.actors.audit.lists import Lists

_LISTS: Final = Lists(__package__, "calls")

SUBPROCESS: Final = frozenset(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen"))
RAISING: Final = frozenset({"subprocess.check_call", "subprocess.check_output"})
EXEC_LISTS: Final = _LISTS.words("exec_lists")
SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "cmd", "cmd.exe", "powershell", "pwsh"})
WORDS_MAX: Final = 200


STARTING: Final = frozenset(name.rpartition(".")[2] for name in SUBPROCESS | EXEC_LISTS) | {"subprocess_exec"}
"""The last words of what starts a process."""

_WORD: Final = re.compile(r"[ \t\n]+")


class Word(NamedTuple):
    """An element of an argument list: its text where that is known, and the expression that it comes from."""

    text: str | None
    value: ast.expr
    scope: Scope


class Start(NamedTuple):
    """A call that starts a process. ``words``: its argument list as far as it is written out, None if it is not;
    ``shell``: whether a shell reads ``command``; None: that depends."""

    call: ast.Call
    site: Site
    name: str
    command: ast.expr | None
    words: list[Word] | None
    shell: bool | None


@once
def starts(module: Module) -> list[Start]:
    """All starts of processes in a file."""
    found = (start(module, call, site) for call, site in calls_of(module, STARTING))
    return [one for one in found if one is not None]


def start(module: Module, call: ast.Call, site: Site) -> Start | None:
    """``call`` as the start of a process, if it is one; looked up once for all detectors."""
    if call not in module.results:
        module.results[call] = _start(module, call, site)
    found: Start | None = module.results[call]
    return found


def _start(module: Module, call: ast.Call, site: Site) -> Start | None:
    if not isinstance(call.func, ast.Name | ast.Attribute | ast.Call):
        return None
    name = called(module, call, site)
    if name.startswith("subprocess."):
        name = name.removesuffix("()")
    if name in SUBPROCESS:
        command = argument(call, 0, "args")
        shell = _truth(keyword(call, "shell"), site.scope)
    elif name in EXEC_LISTS or name.endswith(".subprocess_exec"):
        command = call.args[0] if call.args else keyword(call, "command")
        if name.startswith(("asyncio.", "anyio.")) or call.args:
            spread = not name.startswith(("anyio.", "trio."))
            words = row_of(module, call.args, site.scope) if spread else None
            if words is not None:
                return Start(call, site, name, command, words, shell=False)
        shell = False
    else:
        return None
    words = None if command is None else argv(module, command, site.scope)
    return Start(call, site, name, command, words, shell)


def argv(module: Module, command: ast.expr, scope: Scope) -> list[Word] | None:
    """The elements of an argument list that is written out here, or bound to a name and added to."""
    match command:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return row_of(module, parts, scope)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            one, other = _part(module, left, scope), _part(module, right, scope)
            known = isinstance(left, ast.List | ast.Tuple) or isinstance(right, ast.List | ast.Tuple)
            return None if not known else [*one, *other][:WORDS_MAX]
        case ast.Name() | ast.Attribute():
            return _added(module, command, scope)
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner]):
            return argv(module, inner, scope)
    return None


def words(module: Module, command: ast.expr, scope: Scope) -> list[Word]:
    """The words of a command line that a shell or ``shlex.split`` will read; one with a hole has no text."""
    found: list[Word] = []
    current: list[Piece] = []

    def end() -> None:
        if current:
            texts = [piece for piece in current if isinstance(piece, str)]
            text = "".join(texts).strip("\"'") if len(texts) == len(current) else None
            found.append(Word(text, _expression(current), scope))
            current.clear()

    for piece in pieces(module, command, scope):
        if not isinstance(piece, str):
            current.append(piece)
            continue
        for number, part in enumerate(_WORD.split(piece)):
            if number:
                end()
            if part.strip("\"'"):
                current.append(part)
    end()
    return found[:WORDS_MAX]


def _expression(found: list[Piece]) -> ast.expr:
    """A word as the expression that would give it."""
    if len(found) == 1:
        return ast.Constant(value=found[0]) if isinstance(found[0], str) else found[0]
    values: list[ast.expr] = [
        ast.Constant(value=piece) if isinstance(piece, str) else ast.FormattedValue(value=piece, conversion=-1)
        for piece in found
    ]
    return ast.JoinedStr(values=values)


def row_of(module: Module, parts: list[ast.expr], scope: Scope) -> list[Word]:
    """The words that are written out one by one, as elements of an argument list."""
    row: list[Word] = []
    for part in parts[:WORDS_MAX]:
        if isinstance(part, ast.Starred):
            inner = argv(module, part.value, scope) if isinstance(part.value, ast.List | ast.Tuple) else None
            row += inner if inner is not None else [Word(None, part, scope)]
        else:
            row.append(Word(folded(module, part, scope), part, scope))
    return row


def _part(module: Module, part: ast.expr, scope: Scope) -> list[Word]:
    if isinstance(part, ast.BinOp | ast.List | ast.Tuple):
        return argv(module, part, scope) or [Word(None, part, scope)]
    return [Word(None, ast.Starred(value=part, ctx=ast.Load()), scope)]


def _added(module: Module, name: ast.Name | ast.Attribute, scope: Scope) -> list[Word] | None:
    """A list that a name is bound to, with what ``+=``, ``append`` and ``extend`` put behind it until it is used."""
    steps: list[tuple[int, int, str, ast.expr]] = [
        (binding.line, getattr(binding.node, "col_offset", 0), binding.kind, binding.value)
        for binding in bindings(scope, name)[:BINDINGS_MAX]
        if isinstance(binding.value, ast.List | ast.Tuple | ast.BinOp)
    ]
    if isinstance(name, ast.Name):
        steps += [
            (addition.line, addition.node.col_offset, last_name(addition.node.func), addition.node.args[-1])
            for addition in module.additions.get((scope, name.id), [])[:WORDS_MAX]
            if isinstance(addition.node, ast.Call) and addition.node.args
        ]
    row: list[Word] | None = None
    for line, _column, kind, value in sorted(steps, key=lambda step: step[:2]):
        if line > name.lineno and isinstance(name, ast.Name):
            break
        part = row_of(module, [value], scope) if kind in {"append", "insert"} else argv(module, value, scope)
        if kind == "value":
            row = part
        elif row is not None:
            row = [*row, *(part or [])][:WORDS_MAX]
    return row


def _truth(value: ast.expr | None, scope: Scope) -> bool | None:
    """A keyword's truth: False where it is not given, None where it is not known."""
    match value:
        case None:
            return False
        case ast.Constant(value=constant):
            return bool(constant)
        case ast.Name():
            found = bindings(scope, value)
            constants = [one.value for one in found if one.kind == "value"]
            if len(constants) == len(found) == 1 and isinstance(constants[0], ast.Constant):
                return bool(constants[0].value)
    return None
