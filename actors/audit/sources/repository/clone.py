"""Fetches a repository: the whole history of its default branch, into a folder of the caller's; blocking
(docs/design.md §15.4).

Nothing is checked out: what is read of it is read from git's objects (``objects``), so there are no links to follow, no
filters to run, and no file system to lose names in. Contract 5.1's ``clone_repo`` does check out, see ``repo_tools``.
"""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path
from typing import Final

import msgspec

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.repository.address import Address, address
from pmagent.actors.audit.sources.repository.git import Git, configured
from pmagent.actors.audit.sources.repository.trouble import failed
from pmagent.contracts.audit_events import AuditLimits

REF: Final = "refs/audited/head"
"""The ref of the audited commit, in our clone."""
DETACHED: Final = "HEAD"
"""The branch's name where the source is on none."""

_SLACK_BYTES: Final = 2**20
"""git's files may be so much longer than the limit, that it is seen to be passed."""
_ADVERTISED_BYTES: Final = 64 * 1024
_SHA256_DIGITS: Final = 64
_SYMREF: Final = re.compile(rb"^ref: refs/heads/([^\t\n]+)\tHEAD$", re.MULTILINE)
_HEAD: Final = re.compile(rb"^([0-9a-f]{40}|[0-9a-f]{64})\tHEAD$", re.MULTILINE)


class Clone(msgspec.Struct, frozen=True, kw_only=True):
    """A fetched repository. ``git_dir`` lies in ``top``, which has nothing checked out. ``notes``: what is not as it
    mostly is. ``git`` asks it more."""

    top: str
    git_dir: str
    commit: str
    branch: str
    notes: tuple[str, ...]
    git: Git

    def ask(self, *arguments: str, output_bytes: int = 2**20, stdin: bytes = b"") -> bytes:
        """The output of git about the clone. Raises SourceFailed."""
        ended = self.git.run(("--git-dir", self.git_dir, *arguments), output_bytes=output_bytes, stdin=stdin)
        if ended.code:
            raise failed(ended.stderr, (self.top,))
        return ended.stdout


def fetch(repo_url: str, limits: AuditLimits, folder: str, stop: threading.Event | None = None) -> Clone:
    """Fetch ``repo_url`` into ``folder`` (exists, is empty). Raises SourceFailed: bad_url, not_found, auth,
    network, too_large, timed_out, cancelled, git."""
    where = address(repo_url)
    folder = os.path.abspath(folder)  # git is not started here
    top = os.path.join(folder, "repository")
    git_dir = os.path.join(top, ".git")
    git = Git(
        config=configured(folder),
        deadline=time.monotonic() + limits.clone_seconds,
        memory_bytes=limits.survey_memory,
        file_bytes=limits.clone_bytes + _SLACK_BYTES,
        stop=stop,
    )
    notes: list[str] = []
    if where.protocol == "file":
        where = Address("file", os.path.abspath(where.location))
        notes += _look_at_source(git, where.location)
    branch, known = _branch(git, where)
    _made(git, top, "sha256" if len(known) == _SHA256_DIGITS else "sha1")
    _fetched(git, where, git_dir, limits, folder)
    clone = Clone(top=top, git_dir=git_dir, commit="", branch=branch, notes=(), git=git)
    commit = clone.ask("rev-parse", "--verify", "--end-of-options", f"{REF}^{{commit}}").decode().strip()
    if os.path.exists(os.path.join(git_dir, "shallow")):
        notes.append(
            "the repository is a shallow one: its history is cut short, and commits before the cut are missing"
        )
    return msgspec.structs.replace(clone, commit=commit, notes=tuple(notes))


def opened(repo_path: str, limits: AuditLimits, folder: str) -> Clone:
    """A repository of this machine as it is, to be asked about its commits; ``folder`` holds what git needs meanwhile.
    Raises SourceFailed: not_found, git."""
    git = Git(
        config=configured(folder),
        deadline=time.monotonic() + limits.clone_seconds,
        memory_bytes=limits.survey_memory,
        file_bytes=0,
    )
    top = os.path.abspath(repo_path)
    git_dir = _git_dir(git, top)
    clone = Clone(top=top, git_dir=git_dir, commit="", branch="", notes=(), git=git)
    return msgspec.structs.replace(clone, commit=clone.ask("rev-parse", "--verify", "HEAD^{commit}").decode().strip())


def _look_at_source(git: Git, path: str) -> list[str]:
    """See that a repository of this machine is one, and whole. Its configuration must not make the half of git that
    reads it fetch what is missing: from where, and by which program, stands there too."""
    source = _git_dir(git, path)
    lazy = r"^(extensions\.partialclone|remote\..*\.(promisor|partialclonefilter))$"
    if git.run(("--git-dir", source, "config", "--get-regexp", lazy)).code == 0:
        raise SourceFailed(
            "git", "the repository is a partial clone: objects are missing", "clone it whole, and give that path"
        )
    bare = os.path.samefile(source, path)
    return [] if bare else ["the commit was audited, not what is changed in the working tree of the source"]


def _git_dir(git: Git, path: str) -> str:
    """Where the repository at ``path`` has what git knows. Raises SourceFailed: not_found."""
    if not os.path.isdir(path):
        raise SourceFailed("not_found", "the repository's path is no folder", "give the top folder of a repository")
    for inside in (os.path.join(path, ".git"), path):
        resolved = git.run(("rev-parse", "--resolve-git-dir", inside))
        if resolved.code == 0:
            return os.path.abspath(os.path.join(path, os.fsdecode(resolved.stdout.removesuffix(b"\n"))))
    raise SourceFailed(
        "not_found", "the repository's path is not the top folder of a git repository", "git init, commit, try again"
    )


def _branch(git: Git, where: Address) -> tuple[str, str]:
    """The name of the default branch, and its commit. Raises SourceFailed where there is no commit on it."""
    told = git.run(
        ("ls-remote", "--quiet", "--symref", "--", where.location, "HEAD"),
        protocol=where.protocol, output_bytes=_ADVERTISED_BYTES,
    )  # fmt: skip
    if told.code:
        raise failed(told.stderr, (where.location,))
    head = _HEAD.search(told.stdout)
    if head is None:
        raise SourceFailed(
            "git",
            "the repository has no commit on its default branch",
            "commit to it, or set its HEAD to another branch",
        )
    named = _SYMREF.search(told.stdout)
    return named[1].decode("utf-8", "backslashreplace") if named else DETACHED, head[1].decode("ascii")


def _made(git: Git, top: str, names: str) -> None:
    """An empty repository, whose objects are named as the source's are."""
    made = git.run(("init", "--quiet", "--template=", f"--object-format={names}", "--", top))
    if made.code:
        raise failed(made.stderr, (top,))


def _fetched(git: Git, where: Address, git_dir: str, limits: AuditLimits, folder: str) -> None:
    objects = Path(git_dir, "objects")

    def watch() -> None:
        if _size(objects) > limits.clone_bytes:
            raise _too_large(limits)

    ended = git.run(
        (
            "--git-dir", git_dir, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance",
            "--update-shallow", "--no-write-fetch-head", "--", where.location, f"+HEAD:{REF}",
        ),
        protocol=where.protocol,
        watch=watch,
    )  # fmt: skip
    watch()  # git does not tell that the kernel kept it from writing more
    if ended.code:
        raise failed(ended.stderr, (folder, where.location))


def _too_large(limits: AuditLimits) -> SourceFailed:
    return SourceFailed(
        "too_large",
        f"the repository is larger than {limits.clone_bytes} bytes",
        "raise clone_bytes, or audit a smaller one",
    )


def _size(folder: Path) -> int:
    """Bytes of the files below ``folder``; those that go while it is looked at do not count."""
    size = 0
    pending = [str(folder)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_size
        except FileNotFoundError:
            continue
    return size
