"""The facts found about folders before a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pmagent.actors.orchestra.running.effects import ready
from pmagent.actors.orchestra.running.sandbox_spec import documents_of
from pmagent.actors.sandbox import host
from pmagent.actors.sandbox.arguments import Guarded
from pmagent.actors.sandbox.host import look, protected_in
from pmagent.actors.sandbox.spec import SandboxRefused, SandboxSpec, SandboxUnavailable
from tests.support.orchestra import RUN, config
from tests.support.sandboxes import writable


def spec(tmp_path: Path, **more: object) -> SandboxSpec:
    (tmp_path / "artifacts").mkdir(exist_ok=True)
    return SandboxSpec(argv=("ls",), artifacts=str(tmp_path / "artifacts"), **more)  # type: ignore[arg-type]


def test_what_is_protected_is_found_at_any_depth_and_not_entered(tmp_path: Path) -> None:
    for path in ("a/b/.git/.git", "a/.HG", ".vscode", "a/.pmagent"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / ".bashrc").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = {path.removeprefix(f"{tmp_path}/") for path in protected_in(str(tmp_path))}
    assert found == {"a/b/.git", "a/.HG", ".vscode", "a/.pmagent", ".bashrc"}


def test_too_many_entries_to_guard_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "ENTRIES_MAX", 3)
    for name in "abc":
        (tmp_path / name).touch()
    assert protected_in(str(tmp_path)) == set()
    (tmp_path / "d").touch()
    with pytest.raises(SandboxRefused, match="more than 3 entries"):
        protected_in(str(tmp_path))


def test_a_folder_that_is_removed_meanwhile_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = [tmp_path / "a", tmp_path / "b"]
    for folder in both:
        (folder / ".git").mkdir(parents=True)
    scandir = os.scandir

    def scanned(path: str) -> os._ScandirIterator[str]:
        for other in both:
            if Path(path) in both and other != Path(path) and other.exists():
                (other / ".git").rmdir()
                other.rmdir()
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scanned)
    unreadable: list[str] = []
    (left,) = protected_in(str(tmp_path), unreadable)
    assert Path(left).parent in both
    assert unreadable == []


def test_the_same_folders_give_the_same_guards_and_nothing_is_guarded_twice(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    (folder / ".git" / "hooks").mkdir(parents=True)
    writable(folder)
    protect = (f"{folder}/.git/hooks", f"{folder}/s/x", "/else")
    one = spec(tmp_path, fs="rw", allow_write=(str(folder),), protect=protect)
    assert look(one).guarded == (
        Guarded(f"{folder}/.git", missing=False),
        Guarded(f"{folder}/.pmagent", missing=True),
        Guarded(f"{folder}/orchestra.config.yaml", missing=True),
        Guarded(f"{folder}/s", missing=True),
    )
    assert look(one).guarded == look(one).guarded
    assert look(spec(tmp_path, allow_write=(str(folder),))).guarded == ()


def test_packages_behind_a_link_are_guarded_where_they_lie_and_refuse_nothing(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "w"
    (folder / "real").mkdir(parents=True)
    writable(folder)
    names = ("link", "out", "whole", "missing")
    for name, target in zip(names, ("real", str(tmp_path), "."), strict=False):
        (folder / name).symlink_to(target)
    packages = tuple(f"{folder}/{name}" for name in names)
    found = look(spec(tmp_path, fs="rw", allow_write=(str(folder),), packages=packages)).guarded
    assert {Path(one.path).name: one.missing for one in found if Path(one.path).name in {"real", *names, "w"}} == {
        "real": False, "missing": True,
    }  # fmt: skip


def test_a_tool_is_never_given_the_ids_of_root(tmp_path: Path) -> None:
    first, second = look(spec(tmp_path)), look(spec(tmp_path))
    assert first.uid > 0
    assert first.gid > 0
    if os.geteuid() == 0:
        assert first.uid != second.uid, "each run of a privileged service has ids of its own"


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's tools read what that user reads")
def test_what_only_its_owner_reads_is_refused_and_not_left_to_fail(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o700)
    with pytest.raises(SandboxRefused, match="by its owner only"):
        look(spec(tmp_path, allow_read=(str(tmp_path / "mine"),)))


def test_missing_folders_and_special_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, said in (("missing", "No such file"), ("fifo", "neither a folder nor a regular file")):
        with pytest.raises(SandboxRefused, match=said):
            look(spec(tmp_path, allow_read=(str(tmp_path / name),)))


def test_a_machine_whose_calls_are_not_known_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(SandboxUnavailable, match="no system call filter for riscv64"):
        look(spec(tmp_path))


def test_folders_of_documents_are_made_and_nothing_runs_where_they_cannot_be(tmp_path: Path) -> None:
    found = documents_of(str(tmp_path), config(), RUN)
    ready(str(tmp_path), found)
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert made == {"jobs", "sessions", "runs", f"runs/{RUN}"}
    (tmp_path / "jobs").rmdir()
    (tmp_path / "jobs").touch()
    with pytest.raises(SandboxRefused, match="/jobs is to hold documents, and is no folder here"):
        ready(str(tmp_path), found)
    (tmp_path / "jobs").unlink()
    (tmp_path / "jobs").symlink_to("/")
    with pytest.raises(SandboxRefused, match="/jobs is to hold documents, and is no folder here"):
        ready(str(tmp_path), found)
