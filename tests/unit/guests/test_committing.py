"""Commits of a guest become a branch; nothing else of the copy that it wrote is believed, and nothing of it runs."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pmagent.actors.sandbox.spec import SandboxRefused
from pmagent.guests.committing import NotTaken, Taken, prepare, take
from tests.support.cases import each
from tests.support.commands import SECONDS

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}


def git(folder: Path, *words: str, **environ: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **WHO, **environ}, check=True, timeout=SECONDS,
        capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


class Copied:
    """A repository with a commit, and an agent's copy of its folder, in which it has committed."""

    def __init__(self, folder: Path) -> None:
        self.root, self.own = folder / "w", folder / "own"
        self.root.mkdir()
        git(self.root, "init", "-q", "-b", "main")
        (self.root / "a.txt").write_text("first\n")
        git(self.root, "add", "a.txt")
        git(self.root, "commit", "-qm", "first")
        _, (_, objects, _) = prepare(str(self.root), str(self.own))
        (self.own / "outside").rmdir()
        (self.own / "outside").symlink_to(objects)  # in the sandbox it is mounted there

    def git(self, *words: str) -> str:
        """The commands of the agent inside."""
        return git(self.root, *words, GIT_DIR=str(self.own), GIT_WORK_TREE=str(self.root))

    def commit(self, path: str, text: str) -> str:
        """It commits a file."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.git("add", "-f", path)
        self.git("commit", "-qm", path)
        return self.git("rev-parse", "HEAD")

    def take(self) -> Taken | None:
        return take(str(self.root), str(self.own), "pmagent/guest-1")

    def state(self) -> dict[str, str]:
        """The files that git obeys, and its history: all but new objects."""
        folder = self.root / ".git"
        found = (path for path in folder.rglob("*") if path.is_file() and "objects" not in path.parts)
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def test_its_commits_become_a_branch_and_nothing_else_changes(tmp_path: Path) -> None:
    made = Copied(tmp_path)
    before = made.state()
    made.commit("b.txt", "second")
    tip = made.commit(".claude/settings.json", "{}")
    assert made.state() == before
    assert made.take() == Taken(2, "pmagent/guest-1", [".claude/settings.json"])
    assert {path for path in made.state() if path not in before} == {
        f"{made.root}/.git/refs/heads/pmagent/guest-1", f"{made.root}/.git/logs/refs/heads/pmagent/guest-1",
    }  # fmt: skip
    assert {path: sum for path, sum in made.state().items() if path in before} == before
    assert git(made.root, "rev-parse", "pmagent/guest-1") == tip
    assert git(made.root, "fsck", "--strict", "--no-dangling") == ""
    git(made.root, "reset", "-q", "pmagent/guest-1")
    assert git(made.root, "status", "--porcelain") == ""


def test_a_copy_without_new_commits_leaves_nothing(tmp_path: Path) -> None:
    made = Copied(tmp_path)
    assert made.take() is None
    made.git("checkout", "-q", "-b", "other")
    assert made.take() is None
    assert git(made.root, "branch", "--format=%(refname)") == "refs/heads/main"


def test_another_branch_of_it_and_a_commit_on_none_are_taken(tmp_path: Path) -> None:
    made = Copied(tmp_path)
    made.git("checkout", "-q", "--detach")
    tip = made.commit("b.txt", "second")
    assert made.take() is not None
    assert git(made.root, "rev-parse", "pmagent/guest-1") == tip


def _settings(made: Copied) -> None:
    ran = f"touch {made.root.parent}/RAN"
    for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.alternateRefsCommand",
                 "uploadpack.packObjectsHook", "diff.external", "filter.x.clean", "filter.x.smudge"):  # fmt: skip
        made.git("config", name, ran)
    made.git("config", "extensions.partialClone", "evil")
    made.git("config", "remote.evil.url", f"ext::{ran}")


def _hooks(made: Copied) -> None:
    (made.own / "hooks").mkdir()
    for name in ("reference-transaction", "post-index-change", "post-checkout", "pre-auto-gc", "fsmonitor-watchman"):
        (made.own / "hooks" / name).write_text(f"#!/bin/sh\ntouch {made.root.parent}/RAN\n")
        (made.own / "hooks" / name).chmod(0o755)


def _common(made: Copied) -> None:
    (made.own / "commondir").write_text(str(made.root.parent / "elsewhere"))


def _alternates(made: Copied) -> None:
    (made.own / "objects/info/alternates").write_text(f"{made.root.parent}/elsewhere/.git/objects\n")


def _linked_info(made: Copied) -> None:
    folder = made.own / "objects/info"
    (folder / "alternates").unlink()
    folder.rmdir()
    folder.symlink_to(made.root / ".git/info")


def _replaced(made: Copied) -> None:
    (made.own / "refs/replace").mkdir()
    (made.own / "refs/replace" / made.git("rev-parse", "HEAD~")).write_text(made.git("rev-parse", "HEAD") + "\n")


HARMLESS: list[Callable[[Copied], None]] = [_settings, _hooks, _common, _alternates, _linked_info, _replaced]


@each("attack", HARMLESS)
def test_nothing_that_it_writes_beside_its_commits_counts(tmp_path: Path, attack: Callable[[Copied], None]) -> None:
    made = Copied(tmp_path)
    tip = made.commit("b.txt", "second")
    before = made.state()
    attack(made)
    assert made.take() is not None
    assert git(made.root, "rev-parse", "pmagent/guest-1") == tip
    assert {path: sum for path, sum in made.state().items() if path in before} == before
    assert (made.root / ".git/info/exclude").exists()
    assert not (tmp_path / "RAN").exists()


def _head(text: str) -> Callable[[Copied], None]:
    def write(made: Copied) -> None:
        (made.own / "HEAD").write_text(text)

    return write


def _linked_head(made: Copied) -> None:
    (made.own / "HEAD").unlink()
    (made.own / "HEAD").symlink_to("/etc/hostname")


def _linked_objects(made: Copied) -> None:
    (made.own / "objects").rename(made.own / "mine")
    (made.own / "objects").symlink_to(made.own / "mine")


def _linked_object(made: Copied) -> None:
    file = next(path for path in (made.own / "objects").rglob("*") if path.is_file() and len(path.name) == 38)
    file.rename(made.own / "x")
    file.symlink_to(made.own / "x")


def _second_name(made: Copied) -> None:
    file = next(path for path in (made.own / "objects").rglob("*") if path.is_file() and len(path.name) == 38)
    os.link(file, made.own / "x")


def _missing(made: Copied) -> None:
    tree = made.git("rev-parse", "HEAD^{tree}")
    (made.own / "objects" / tree[:2] / tree[2:]).unlink()


def _forbidden_name(made: Copied) -> None:
    blob = made.git("hash-object", "-w", "b.txt")
    done = subprocess.run(
        ["git", "hash-object", "-t", "tree", "-w", "--literally", "--stdin"], cwd=made.root, check=True,
        input=b"40000 .git\0" + bytes.fromhex(_tree_of(made, blob)), capture_output=True,
        env={**os.environ, "GIT_DIR": str(made.own)},
    )  # fmt: skip
    commit = made.git("commit-tree", done.stdout.decode().strip(), "-m", "x")
    (made.own / "HEAD").write_text(commit + "\n")


def _tree_of(made: Copied, blob: str) -> str:
    done = subprocess.run(
        ["git", "mktree"], cwd=made.root, input=f"100644 blob {blob}\thooks\n", text=True, check=True,
        capture_output=True, env={**os.environ, "GIT_DIR": str(made.own)},
    )  # fmt: skip
    return done.stdout.strip()


REFUSED: list[Callable[[Copied], None]] = [
    _head(""), _head("ref: refs/heads/../../../../etc/hostname\n"), _head("ref: refs/heads/a b\n"), _head("--all\n"),
    _head("0" * 40 + "\n"), _linked_head, _linked_objects, _linked_object, _second_name, _missing, _forbidden_name,
]  # fmt: skip


@each("attack", REFUSED)
def test_a_copy_that_is_none_is_not_taken_over(tmp_path: Path, attack: Callable[[Copied], None]) -> None:
    made = Copied(tmp_path)
    made.commit("b.txt", "second")
    before = made.state()
    attack(made)
    with pytest.raises(NotTaken):
        made.take()
    assert made.state() == before
    assert git(made.root, "branch", "--format=%(refname)") == "refs/heads/main"


def test_only_a_repositorys_own_folder_is_copied(tmp_path: Path) -> None:
    made = Copied(tmp_path)
    git(made.root, "worktree", "add", "-q", str(tmp_path / "tree"))
    (tmp_path / "none").mkdir()
    git(tmp_path, "clone", "-q", "--shared", str(made.root), str(tmp_path / "shared"))
    for name in ("tree", "none", "shared"):
        with pytest.raises(SandboxRefused):
            prepare(str(tmp_path / name), str(tmp_path / f"copy-{name}"))
