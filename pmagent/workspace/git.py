"""Queries git about the workspace, of which the surfaces take only the branch; and the list of what it ignores."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pmagent.events.errors import PmagentError
from pmagent.workspace.errors import WorkspaceError

LIMIT_S = 30.0


def branch(workspace: Path) -> str:
    """The current branch, also of a repository without a commit; ``detached@<commit>`` when HEAD is detached.

    Raises WorkspaceError when the workspace is in no git repository, or git is missing or refuses.
    """
    named = _git(workspace, "symbolic-ref", "--quiet", "--short", "HEAD")
    if named.returncode == 0:
        return named.stdout.strip()
    commit = _git(workspace, "rev-parse", "--quiet", "--verify", "--short=12", "HEAD")
    if commit.returncode == 0:
        return f"detached@{commit.stdout.strip()}"
    inside = _git(workspace, "rev-parse", "--git-dir")
    if inside.returncode == 0:
        raise WorkspaceError(f"{workspace}: git cannot tell the branch", "look at: git status")
    if "ownership" in inside.stderr:
        raise WorkspaceError(
            f"{workspace} belongs to another user, so git does not read it",
            f"git config --global --add safe.directory {workspace}",
        )
    raise WorkspaceError(f"{workspace} is not in a git repository", "run git init there first")


class GitSilent(PmagentError):
    """A repository is there, and git does not tell what is asked."""


def checked_out(folder: str) -> str:
    """The branch that is checked out around ``folder``, read from its files without a process; "" where there is
    none."""
    try:  # asked for with every call of a guest, which mostly works at the top
        return _branch_in(_beginning(f"{folder}/.git/HEAD"))
    except (OSError, UnicodeError):
        above = folder
    while not os.path.lexists(git := f"{above}/.git"):
        if not above.strip("/"):
            return ""
        above = above.rpartition("/")[0]
    try:
        if not os.path.isdir(git):
            git = os.path.join(above, _beginning(git).removeprefix("gitdir:").strip())
        return _branch_in(_beginning(f"{git}/HEAD"))
    except (OSError, UnicodeError):
        return ""


def _branch_in(head: str) -> str:
    name = head.strip()
    return name.removeprefix("ref: refs/heads/") if name.startswith("ref: refs/heads/") else ""


def _beginning(path: str) -> str:
    """The first 4 KiB of a file. Raises OSError, UnicodeError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return os.read(descriptor, 4096).decode("utf-8")
    finally:
        os.close(descriptor)


def tracked(path: Path) -> str:
    """A file at or below ``path`` (a folder) that a repository tracks, of all that ``path`` lies in; "": none does.

    Raises GitSilent where there is a repository, and git is missing or refuses.
    """
    real = Path(os.path.realpath(path))
    for folder in (real, *real.parents):
        if not os.path.lexists(folder / ".git"):
            continue
        try:
            # A repository's own settings start no program here.
            listed = _git(
                folder, "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
                "ls-files", "-z", "--", os.path.relpath(real, folder),
            )
        except WorkspaceError as error:
            raise GitSilent(error.message, error.hint) from error
        if listed.returncode != 0:
            raise GitSilent(f"git ls-files fails in {folder}", "look at: git status")
        if listed.stdout:
            return listed.stdout.split("\0", 1)[0]
    return ""


def not_ignored(workspace: Path, folders: Iterable[str]) -> list[str]:
    """Lines for git's list of ignored files: one for each of the folders (relative to ``workspace``) that git does not
    ignore yet. Raises WorkspaceError."""
    prefix = _git(workspace, "rev-parse", "--show-prefix").stdout.removesuffix("\n")
    return [
        "/" + _SPECIAL.sub(r"\\\g<0>", f"{prefix}{folder}/")
        for folder in folders
        if _git(workspace, "check-ignore", "--quiet", f"{folder}/any").returncode != 0
    ]


def ignore(workspace: Path, lines: Iterable[str]) -> Path:
    """Add ``lines`` to the repository's own list of ignored files, ``.git/info/exclude``, which no commit contains; its
    path. It follows no link of that file or its folder. Raises WorkspaceError, OSError."""
    named = _git(workspace, "rev-parse", "--git-path", "info/exclude").stdout.removesuffix("\n")
    path = workspace / named  # of a worktree: an absolute path in the main repository
    path.parent.mkdir(exist_ok=True)
    if path.parent.is_symlink() or path.is_symlink():
        raise WorkspaceError(f"{named} is a link, so nothing is written there", "write the lines where git reads them")
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    with open(descriptor, "a+b") as file:
        file.seek(0)
        before = file.read()
        begun = before and not before.endswith(b"\n")
        file.write(b"\n" * bool(begun) + "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    return path


_SPECIAL: Final = re.compile(r"[\\*?\[]")
"""Characters that mean something in a list of ignored files."""


def _git(workspace: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # GIT_DIR and its like, set by a hook or a shell, would answer for another repository.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        return subprocess.run(
            ["git", "-C", str(workspace), *arguments], capture_output=True, text=True, errors="replace",
            timeout=LIMIT_S, env=environment, check=False, stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise WorkspaceError("git is not installed", "install the package git") from None
    except subprocess.TimeoutExpired:
        raise WorkspaceError(f"git did not answer in {LIMIT_S:.0f} s", "look at: git status") from None
