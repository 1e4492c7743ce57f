"""Git clones in the code: where they go, by which means, and whether the URL can be taken for an option; pure."""

from __future__ import annotations

import ast
from typing import Final, Literal, NamedTuple

from pmagent.actors.audit.detectors.code.calls import STARTING, Word, argv, row_of, start, words
from pmagent.actors.audit.detectors.code.names import argument, by_word, called, calls_of, dotted, keyword, last_name
from pmagent.actors.audit.detectors.code.scopes import Module, Site, once
from pmagent.actors.audit.detectors.code.strings import folded
from pmagent.actors.audit.lists import Lists

_LISTS: Final = Lists(__package__, "clones")

_GIT_VALUED: Final = _LISTS.words("git_valued")
"""Options of git and of git clone whose value is the next word."""

Kind = Literal["git", "GitPython", "pygit2", "dulwich", "GitLoader"]


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


@once
def clones(module: Module) -> list[Clone]:
    """All git clones: by argument list, by command line, through GitPython, pygit2 or dulwich, and through a function
    of the repository that has git in its name."""
    names = {word for word in by_word(module, ast.Call) if "git" in word.lower()} | _CLONING
    found = (_library_clone(module, call, site) or _command_clone(module, call, site)
             for call, site in calls_of(module, names))  # fmt: skip
    return [one for one in found if one is not None]


_RUNNING: Final = frozenset(("run", "execute", "check", "call", "run_command", "run_cmd", "_run"))
"""Names of functions of the repository's own that may run a command."""
_SHELL: Final = _LISTS.words("shell")
_CLONING: Final = frozenset((
    "clone_from", "clone_repository", "clone", "GitLoader", *STARTING, *_RUNNING,
    *(name.rpartition(".")[2] for name in _SHELL),
))  # fmt: skip

_LIBRARIES: Final[dict[str, tuple[Kind, int, str]]] = {
    "git.Repo.clone_from": ("GitPython", 1, "to_path"),
    "git.repo.Repo.clone_from": ("GitPython", 1, "to_path"),
    "git.repo.base.Repo.clone_from": ("GitPython", 1, "to_path"),
    "git.Git().clone": ("GitPython", 1, "path"),
    "pygit2.clone_repository": ("pygit2", 1, "path"),
    "dulwich.porcelain.clone": ("dulwich", 1, "target"),
    "porcelain.clone": ("dulwich", 1, "target"),
    "GitLoader": ("GitLoader", 0, "repo_path"),
}
"""Calls of libraries that clone: where in the call the target stands, and under which keyword."""


def _library_clone(module: Module, call: ast.Call, site: Site) -> Clone | None:
    written = last_name(call.func)
    if written not in {"clone_from", "clone_repository", "clone", "GitLoader"}:
        return None
    known = _LIBRARIES.get(called(module, call, site)) or _LIBRARIES.get(written)
    if known is None and written == "clone_from" and last_name(getattr(call.func, "value", None)) == "Repo":
        known = _LIBRARIES["git.Repo.clone_from"]
    if known is None or (written == "GitLoader" and keyword(call, "clone_url") is None):
        return None
    kind, index, name = known
    target, url = argument(call, index, name), keyword(call, "url", "source", "clone_url")
    spread = any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords)
    return Clone(site, kind, target, None, url or argument(call, 1 - index), dashes=True, unknown=spread)


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
    elif started is not None or not _SHELL.isdisjoint((called(module, call, site), written)):
        command = argument(call, 0, "args", "cmd", "command")
        row = [] if command is None else words(module, _split(command), site.scope)
    elif "git" in written.lower() or written in _RUNNING:
        return _own_git(module, call, site, written)
    else:
        return None
    for number, word in enumerate(row):
        if _is_git(module, word):
            return row[number + 1 :] if _says_clone(row[number + 1 :]) else None
    return None


def _split(command: ast.expr) -> ast.expr:
    """The expression that ``shlex.split`` is given."""
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
    row = listed if listed is not None else row_of(module, call.args, site.scope)
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
