"""Commits of a guest behind the wall (docs/guests.md).

Git obeys many files of a repository's folder, also some that are not there yet (``commondir``, ``config.worktree``),
and whoever may write its objects may destroy its history. So an agent never writes the person's ``.git``: inside lies a
copy without objects, over the person's objects, to be read. When nothing of it is alive any more, the new objects are
packed, checked as strictly as git can, and become a branch of their own; nothing else of the copy is believed.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from typing import IO, Final, NamedTuple

from pmagent.actors.sandbox.protected import is_named
from pmagent.actors.sandbox.spec import SandboxRefused
from pmagent.events.errors import PmagentError

OUTSIDE: Final = "outside"
"""Where the person's objects lie in the copy."""
_FILES: Final = ("HEAD", "config", "config.worktree", "index", "packed-refs", "shallow")
_FOLDERS: Final = ("refs", "info")
_SECONDS: Final = 600.0
_HEAD: Final = re.compile(r"ref: (refs/heads/[^\s~^:?*\[\\]+)\n?\Z|([0-9a-f]{40}|[0-9a-f]{64})\n?\Z", re.ASCII)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_HEAD_BYTES: Final = 4096


class NotTaken(PmagentError, exit_code=1):
    """The agent's commits cannot be taken over; the repository is as it was."""


class Taken(NamedTuple):
    """The agent's commits: how many, the ``branch`` that they became, and the paths in it with names that programs obey
    unasked."""

    commits: int
    branch: str
    obeyed: list[str]


def prepare(root: str, own: str) -> tuple[tuple[str, str, bool], ...]:
    """Make the copy in the folder ``own``; what lies where in the sandbox, and whether it is writable there. Raises
    SandboxRefused, OSError."""
    git = f"{root}/.git"
    if os.path.islink(git) or not os.path.isdir(f"{git}/objects"):
        raise SandboxRefused(f"{git} is no repository's own folder", "use --commit at the top of its main worktree")
    odd = [name for name in ("commondir", "objects/info/alternates") if os.path.lexists(f"{git}/{name}")]
    if odd or set(root) & set(':"'):
        what = f"{git}/{odd[0]} leads to another repository" if odd else f"git cannot be told of a path like {root}"
        raise SandboxRefused(what, "let the agent work without --commit")
    os.makedirs(f"{own}/objects/info")
    os.mkdir(f"{own}/{OUTSIDE}")
    with open(f"{own}/objects/info/alternates", "x", encoding="utf-8") as file:
        file.write(f"../{OUTSIDE}\n")  # from the folder of the objects
    for name in _FILES:
        if os.path.isfile(f"{git}/{name}"):
            shutil.copy(f"{git}/{name}", f"{own}/{name}")
    for name in _FOLDERS:
        if os.path.isdir(f"{git}/{name}"):
            shutil.copytree(f"{git}/{name}", f"{own}/{name}", symlinks=True)
    return (git, own, True), (f"{git}/{OUTSIDE}", f"{git}/objects", False)


def take(root: str, own: str, name: str) -> Taken | None:
    """Take over the commit that is checked out in the copy, as the branch ``name``; None where the repository has it
    already. Nothing of the agent may be alive. Raises NotTaken, OSError."""
    objects = f"{own}/objects"
    tip = _tip(own)
    if tip is None or _git(root, "merge-base", "--is-ancestor", tip, "HEAD").returncode == 0:
        return None
    if os.path.islink(f"{objects}/info"):
        os.unlink(f"{objects}/info")
    shutil.rmtree(f"{objects}/info", ignore_errors=True)  # else it could name further objects, of anybody
    _check_plain(objects)
    known = _git(root, "for-each-ref", "--format=%(objectname)")
    _demand(known, "the repository's own branches cannot be read")
    with tempfile.TemporaryFile() as pack:
        wanted = f"{tip}\n--not\n".encode() + known.stdout
        _demand(_git(root, "cat-file", "-e", f"{tip}^{{commit}}", objects=objects), "its commit is not whole")
        packed = _git(root, "pack-objects", "--revs", "--stdout", "-q", objects=objects, given=wanted, into=pack)
        _demand(packed, "its commits cannot be packed")
        pack.seek(0)
        _demand(_git(root, "index-pack", "--strict", "--stdin", source=pack), "git refuses its commits")
    count = _git(root, "rev-list", "--count", tip, "--not", "--all")
    _demand(count, "its commits cannot be counted")
    if int(count.stdout) == 0:
        return None
    _demand(_git(root, "update-ref", "--no-deref", f"refs/heads/{name}", tip, ""), f"the branch {name} cannot be made")
    before = _git(root, "rev-parse", "--verify", "--quiet", "HEAD").stdout.decode().strip()
    trees = (before, tip) if before else ("--root", tip)
    changed = _git(root, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-commit-id", *trees)
    paths = changed.stdout.decode("utf-8", "backslashreplace").split("\0")
    return Taken(int(count.stdout), name, [path for path in paths if is_named(path)])


def _tip(own: str) -> str | None:
    """The commit that is checked out in the copy; None where there is none yet. Raises NotTaken."""
    found = _HEAD.match(_start(f"{own}/HEAD"))
    if found is None:
        raise NotTaken("HEAD of its copy says nothing that is understood", "its files are there; commit them yourself")
    if found[2]:
        return found[2]
    ref: str = found[1]
    if ".." in ref.split("/"):
        raise NotTaken("HEAD of its copy leads elsewhere", "its files are there; commit them yourself")
    loose = f"{own}/{ref}"
    if os.path.realpath(loose) == os.path.join(os.path.realpath(own), ref) and os.path.isfile(loose):
        commit = _COMMIT.match(_start(loose))
        return commit[0] if commit else None
    packed = f"{own}/packed-refs"
    if os.path.isfile(packed) and not os.path.islink(packed):
        with open(packed, encoding="utf-8", errors="replace") as file:
            for line in file:
                commit = _COMMIT.match(line)
                if commit and line[commit.end() :].strip() == ref:
                    return commit[0]
    return None


def _start(path: str) -> str:
    """The start of a regular file, behind no link. Raises NotTaken."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NotTaken(f"{path} is not read: {error.strerror}", "its files are there; commit them yourself") from None
    try:
        return os.read(file, _HEAD_BYTES).decode("utf-8", "replace")
    finally:
        os.close(file)


def _check_plain(objects: str) -> None:
    """Raises NotTaken where anything but folders and regular files lies there: a link could lead to other people's
    objects."""
    pending = [objects]
    while pending:
        folder = pending.pop()
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            raise NotTaken(f"{folder} is no folder", "its files are there; commit them yourself")
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif not entry.is_file(follow_symlinks=False) or entry.stat(follow_symlinks=False).st_nlink != 1:
                    raise NotTaken(f"{entry.path} is no file of its own", "its files are there; commit them yourself")


def _git(
    root: str, *words: str, objects: str = "", given: bytes = b"", source: IO[bytes] | None = None,
    into: IO[bytes] | None = None,
) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
    """Run git in the person's repository, with the agent's objects in view, or without. Raises NotTaken."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"LC_ALL": "C", "GIT_DIR": f"{root}/.git", "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1"}
    if objects:
        environ["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = objects
    quiet = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0")
    with tempfile.TemporaryFile() as words_in:
        words_in.write(given)
        words_in.seek(0)
        try:
            return subprocess.run(
                ["git", *quiet, *words], cwd=root, env=environ, stdin=source or words_in, timeout=_SECONDS, check=False,
                stdout=into or subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotTaken(f"git {words[0]} does not end well: {error}", "look at: git status") from None


def _demand(done: subprocess.CompletedProcess[bytes], what: str) -> None:
    if done.returncode != 0:
        why = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise NotTaken(f"{what}: {why[0][:200]}", "its files are there; commit them yourself")
