"""Calls that start processes: which there are, their argument lists, and the git clones among them; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from actors.audit.code.names import BINDINGS_MAX, argument, bindings, dotted, keyword, last_name
from actors.audit.code.scopes import Module, Scope, Site
from actors.audit.code.strings import Piece, folded, pieces

SUBPROCESS: Final = frozenset(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen"))
RAISING: Final = frozenset({"subprocess.check_call", "subprocess.check_output"})
EXEC_LISTS: Final = frozenset({"asyncio.create_subprocess_exec", "anyio.run_process", "anyio.open_process",
                               "trio.run_process", "asyncio.subprocess.create_subprocess_exec"})  # fmt: skip
SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "cmd", "cmd.exe", "powershell", "pwsh"})
WORDS_MAX: Final = 200

_GIT_VALUED: Final = frozenset({
    "-b", "--branch", "-o", "--origin", "-c", "--config", "-u", "--upload-pack", "-j", "--jobs", "--depth",
    "--shallow-since", "--shallow-exclude", "--reference", "--reference-if-able", "--template", "--separate-git-dir",
    "--filter", "--server-option", "--bundle-uri", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path",
})  # fmt: skip
"""Options of git and of git clone whose value is the next word."""

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


def starts(module: Module) -> Iterator[Start]:
    """All calls that start a process through subprocess, asyncio or anyio."""
    for call, site in module.calls():
        started = start(module, call, site)
        if started is not None:
            yield started


def start(module: Module, call: ast.Call, site: Site) -> Start | None:
    """``call`` as the start of a process, if it is one."""
    if not isinstance(call.func, ast.Name | ast.Attribute | ast.Call):
        return None
    name = dotted(module, call.func, site.scope)
    if name.startswith("subprocess."):
        name = name.removesuffix("()")
    if name in SUBPROCESS:
        command = argument(call, 0, "args")
        shell = _truth(keyword(call, "shell"), site.scope)
    elif name in EXEC_LISTS or name.endswith(".subprocess_exec"):
        command = call.args[0] if call.args else keyword(call, "command")
        if name.startswith(("asyncio.", "anyio.")) or call.args:
            spread = not name.startswith(("anyio.", "trio."))
            words = _row(module, call.args, site.scope) if spread else None
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
            return _row(module, parts, scope)
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
            text = "".join(piece for piece in current if isinstance(piece, str))
            whole = all(isinstance(piece, str) for piece in current)
            holes = [piece for piece in current if not isinstance(piece, str)]
            value = holes[0] if len(current) == 1 and holes else command
            found.append(Word(text.strip("\"'") if whole else None, value, scope))
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


def _row(module: Module, parts: list[ast.expr], scope: Scope) -> list[Word]:
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
    steps: list[tuple[int, str, ast.expr]] = [
        (binding.line, binding.kind, binding.value)
        for binding in bindings(scope, name)[:BINDINGS_MAX]
        if isinstance(binding.value, ast.List | ast.Tuple | ast.BinOp)
    ]
    if isinstance(name, ast.Name):
        steps += [
            (addition.line, last_name(addition.node.func), addition.node.args[-1])
            for addition in module.additions.get((scope, name.id), [])[:WORDS_MAX]
            if isinstance(addition.node, ast.Call) and addition.node.args
        ]
    row: list[Word] | None = None
    for line, kind, value in sorted(steps, key=lambda step: step[0]):
        if line > name.lineno and isinstance(name, ast.Name):
            break
        part = _row(module, [value], scope) if kind in {"append", "insert"} else argv(module, value, scope)
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


Kind = Literal["git", "GitPython", "pygit2", "dulwich"]


class Clone(NamedTuple):
    """A git clone in the code. ``target``: where it goes; None: it is not said, so the working directory, or what
    ``folder`` says. ``dashes``: whether ``--`` stands before the URL. ``url``: what is cloned."""

    site: Site
    kind: Kind
    target: ast.expr | None
    folder: ast.expr | None
    url: ast.expr | None
    dashes: bool
    unknown: bool = False


def clones(module: Module) -> Iterator[Clone]:
    """All git clones: by argument list, by command line, through GitPython, pygit2 or dulwich, and through a function
    of the repository that has git in its name."""
    for call, site in module.calls():
        clone = _library_clone(module, call, site) or _command_clone(module, call, site)
        if clone is not None:
            yield clone


_LIBRARIES: Final[dict[str, tuple[Kind, tuple[str, ...]]]] = {
    "git.Repo.clone_from": ("GitPython", ("to_path",)),
    "git.repo.Repo.clone_from": ("GitPython", ("to_path",)),
    "git.repo.base.Repo.clone_from": ("GitPython", ("to_path",)),
    "pygit2.clone_repository": ("pygit2", ("path",)),
    "dulwich.porcelain.clone": ("dulwich", ("target",)),
    "porcelain.clone": ("dulwich", ("target",)),
}


def _library_clone(module: Module, call: ast.Call, site: Site) -> Clone | None:
    written = last_name(call.func)
    if written not in {"clone_from", "clone_repository", "clone"}:
        return None
    name = dotted(module, call.func, site.scope)
    known = _LIBRARIES.get(name)
    if known is None and written == "clone_from" and last_name(getattr(call.func, "value", None)) == "Repo":
        known = _LIBRARIES["git.Repo.clone_from"]
    if known is None:
        return None
    kind, names = known
    target = argument(call, 1, *names)
    spread = any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords)
    return Clone(site, kind, target, None, argument(call, 0, "url", "source"), dashes=True, unknown=spread)


def _command_clone(module: Module, call: ast.Call, site: Site) -> Clone | None:
    row = _clone_words(module, call, site)
    if row is None:
        return None
    positional: list[Word] = []
    dashes = valued = unknown = False
    folder = keyword(call, "cwd")
    for number, word in enumerate(row):
        if valued:
            if row[number - 1].text == "-C":
                folder = word.value
            valued = False
        elif dashes:
            positional.append(word)
        elif word.text == "--":
            dashes = True
        elif word.text is not None and word.text.startswith("-"):
            valued = word.text in _GIT_VALUED
        elif isinstance(word.value, ast.Starred):
            unknown = True
        else:
            positional.append(word)
    first = next((number for number, word in enumerate(positional) if word.text == "clone"), None)
    rest = positional if first is None else positional[first + 1 :]
    target = rest[1].value if len(rest) > 1 else None
    url = rest[0].value if rest else None
    return Clone(site, "git", target, folder, url, dashes, unknown=unknown and target is None)


def _clone_words(module: Module, call: ast.Call, site: Site) -> list[Word] | None:
    """The words of a command that is a git clone; those from ``git`` or ``clone`` on."""
    if not call.args and not call.keywords:
        return None
    started = start(module, call, site)
    written = last_name(call.func)
    if started is not None and started.words is not None:
        row = started.words
        if len(row) == 1 and started.command is not None:
            row = words(module, started.command, site.scope)
    elif started is not None or _is_shell_name(dotted(module, call.func, site.scope), written):
        command = argument(call, 0, "args", "cmd", "command")
        row = [] if command is None else words(module, _split(command), site.scope)
    elif "git" in written.lower() or written in {"run", "execute", "check", "call", "run_command", "run_cmd", "_run"}:
        return _own_git(module, call, site, written)
    else:
        return None
    for number, word in enumerate(row):
        if _is_git(module, word):
            return row[number + 1 :] if _says_clone(row[number + 1 :]) else None
    return None


def _split(command: ast.expr) -> ast.expr:
    """What ``shlex.split`` is given."""
    if isinstance(command, ast.Call) and last_name(command.func) == "split":
        if isinstance(command.func, ast.Attribute) and last_name(command.func.value) != "shlex":
            return command.func.value
        return command.args[0] if command.args else command
    return command


def _own_git(module: Module, call: ast.Call, site: Site, written: str) -> list[Word] | None:
    """The words given to a function of the repository that runs git, or any command."""
    first = call.args[0] if call.args else keyword(call, "args", "cmd", "command")
    if first is None:
        return None
    listed = argv(module, first, site.scope) if isinstance(first, ast.List | ast.Tuple | ast.Name) else None
    row = listed if listed is not None else _row(module, call.args, site.scope)
    if row and _is_git(module, row[0]):
        return row[1:] if _says_clone(row[1:]) else None
    if "git" in written.lower() and row and row[0].text == "clone":
        return row
    return None


def _is_git(module: Module, word: Word) -> bool:
    if word.text is not None:
        return word.text == "git" or word.text.endswith(("/git", "\\git.exe"))
    value = word.value
    return last_name(value).lower() in {"git", "git_bin", "git_path", "git_exe", "git_binary", "git_executable"} or (
        isinstance(value, ast.Call)
        and dotted(module, value.func, word.scope) == "shutil.which"
        and bool(value.args)
        and folded(module, value.args[0], word.scope) == "git"
    )


def _says_clone(row: list[Word]) -> bool:
    """Whether the first word behind git's own options is ``clone``."""
    valued = False
    for word in row:
        if valued:
            valued = False
        elif word.text is None:
            continue
        elif word.text.startswith("-"):
            valued = word.text in _GIT_VALUED
        else:
            return word.text == "clone"
    return False


def _is_shell_name(name: str, written: str) -> bool:
    return name in {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"} or written in {
        "create_subprocess_shell",
        "subprocess_shell",
    }
