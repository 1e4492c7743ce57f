"""Fetching repositories of this machine: the whole branch and nothing else, whatever the source is like."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.repository import tree as trees
from pmagent.actors.audit.sources.repository.clone import REF, Clone, fetch
from pmagent.actors.audit.sources.repository.history import history
from pmagent.actors.audit.sources.repository.objects import Missing, Objects
from pmagent.actors.audit.sources.repository.tree import tree
from pmagent.contracts.audit_events import AuditLimits
from tests.support.repositories import BEGAN, Made

LIMITS = AuditLimits()


@pytest.fixture
def source(tmp_path: Path) -> Made:
    made = Made(tmp_path / "source")
    made.commit("Set up", {"a.py": "a = 1\n", "README": "words\n"})
    made.commit("Add tools", {"tools/b.py": "b = 1\n"})
    made.commit("Join them", {"a.py": "a = 2\n"})
    return made


@pytest.fixture
def folder(tmp_path: Path) -> str:
    place = tmp_path / "clone"
    place.mkdir()
    return str(place)


def paths(clone: Clone) -> list[str]:
    return [entry.path for entry in tree(clone.ask, REF, LIMITS.clone_bytes).files]


def failing(repo_url: str, folder: str, limits: AuditLimits = LIMITS) -> SourceFailed:
    with pytest.raises(SourceFailed) as raised:
        fetch(repo_url, limits, folder)
    assert raised.value.hint
    return raised.value


def test_the_whole_history_of_the_default_branch_comes_and_no_other(source: Made, folder: str) -> None:
    source.git("tag", "v1")
    source.git("checkout", "--quiet", "-b", "other")
    other = source.commit("Elsewhere", {"c.py": ""})
    source.git("checkout", "--quiet", "main")
    clone = fetch(str(source.path), LIMITS, folder)
    assert clone.commit == source.git("rev-parse", "main")
    assert clone.branch == "main"
    assert history(clone.ask, REF).total == 3
    assert paths(clone) == ["README", "a.py", "tools/b.py"]
    assert clone.ask("for-each-ref", "--format=%(refname)").split() == [REF.encode()]
    with Objects(clone.git_dir, clone.git.config) as objects, pytest.raises(Missing):
        objects.read(other)


def test_what_is_fetched_is_read_from_objects_and_nothing_is_checked_out(source: Made, folder: str) -> None:
    clone = fetch(str(source.path), LIMITS, folder)
    assert sorted(os.listdir(clone.top)) == [".git"]
    entry = tree(clone.ask, REF, LIMITS.clone_bytes).files[1]
    with Objects(clone.git_dir, clone.git.config) as objects:
        assert objects.read(entry.object) == b"a = 2\n"


@pytest.mark.parametrize("name", ["with blanks", "col:on", "ümläut", "--upload-pack=x", "per%20cent"])
def test_paths_are_taken_as_they_are(tmp_path: Path, folder: str, name: str) -> None:
    made = Made(tmp_path / name)
    commit = made.commit("One")
    assert fetch(str(made.path), LIMITS, folder).commit == commit


def test_a_file_url_is_decoded(tmp_path: Path, folder: str) -> None:
    made = Made(tmp_path / "with blanks")
    commit = made.commit("One")
    assert fetch(f"file://{tmp_path}/with%20blanks", LIMITS, folder).commit == commit


def test_a_bare_source_and_a_detached_one(source: Made, tmp_path: Path, folder: str) -> None:
    bare = Made(tmp_path / "bare", bare=True)
    source.git("push", "--quiet", str(bare.path), "main")
    assert fetch(str(bare.path), LIMITS, folder).notes == ()
    source.git("checkout", "--quiet", "--detach", "HEAD~1")
    second = tmp_path / "second"
    second.mkdir()
    clone = fetch(str(source.path), LIMITS, str(second))
    assert (clone.branch, clone.commit) == ("HEAD", source.git("rev-parse", "HEAD"))
    assert history(clone.ask, REF).total == 2


def test_a_linked_working_tree_is_audited_at_its_own_head(source: Made, tmp_path: Path, folder: str) -> None:
    source.git("worktree", "add", "--quiet", "-b", "linked", str(tmp_path / "linked"), "HEAD~2")
    clone = fetch(str(tmp_path / "linked"), LIMITS, folder)
    assert (clone.branch, history(clone.ask, REF).total) == ("linked", 1)


def test_objects_may_be_named_by_sha_256(tmp_path: Path, folder: str) -> None:
    source = tmp_path / "source"
    subprocess.run(["git", "init", "--quiet", "--object-format=sha256", str(source)], check=True)
    made = Made(source)
    commit = made.commit("One", {"a.py": "a = 1\n"})
    clone = fetch(str(source), LIMITS, folder)
    assert clone.commit == commit
    assert len(commit) == 64
    (entry,) = tree(clone.ask, REF, LIMITS.clone_bytes).files
    with Objects(clone.git_dir, clone.git.config) as objects:
        assert objects.read(entry.object) == b"a = 1\n"


def test_uncommitted_changes_are_not_seen_and_that_is_said(source: Made, folder: str) -> None:
    (source.path / "a.py").write_text("changed")
    clone = fetch(str(source.path), LIMITS, folder)
    assert clone.notes == ("the commit was audited, not what is changed in the working tree of the source",)


def test_a_shallow_source_is_told(source: Made, tmp_path: Path, folder: str) -> None:
    shallow = Made(tmp_path / "elsewhere")
    shallow.git("fetch", "--quiet", "--depth=1", f"file://{source.path}", "main")
    shallow.git("checkout", "--quiet", "-B", "main", "FETCH_HEAD")
    clone = fetch(str(shallow.path), LIMITS, folder)
    past = history(clone.ask, REF)
    assert past.total == 1
    assert past.cut
    assert any("shallow" in note for note in clone.notes)


def test_a_partial_clone_is_refused_and_its_program_not_run(source: Made, tmp_path: Path, folder: str) -> None:
    marker = tmp_path / "marker"
    source.git("config", "extensions.partialClone", "origin")
    source.git("config", "remote.origin.promisor", "true")
    source.git("config", "remote.origin.url", f"file://{source.path}")
    source.git("config", "remote.origin.uploadpack", f"touch {marker};")
    assert failing(str(source.path), folder).code == "git"
    assert not marker.exists()


def test_what_is_no_repository_is_not_found(source: Made, tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "none", tmp_path / "empty", source.path / "tools", source.path / "a.py"):
        assert failing(str(place), folder).code == "not_found"


def test_without_git_that_is_what_is_said(source: Made, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", folder)
    told = failing(str(source.path), folder)
    assert (told.code, told.message) == ("git", "git is not installed")


def test_a_repository_without_commits_says_so(source: Made, tmp_path: Path, folder: str) -> None:
    empty = Made(tmp_path / "empty")
    assert "no commit" in failing(str(empty.path), folder).message
    source.git("symbolic-ref", "HEAD", "refs/heads/nowhere")
    second = tmp_path / "second"
    second.mkdir()
    assert "no commit" in failing(str(source.path), str(second)).message


def test_missing_objects_are_an_error_of_git(source: Made, folder: str) -> None:
    blob = source.git("rev-parse", "HEAD~1:tools/b.py")
    (source.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert failing(str(source.path), folder).code == "git"


def test_nobody_elses_configuration_holds(
    source: Made, tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "marker"
    script = tmp_path / "program"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    home = tmp_path / "home"
    (home / "hooks").mkdir(parents=True)
    for hook in ("reference-transaction", "post-checkout", "post-merge"):
        (home / "hooks" / hook).symlink_to(script)
    settings = f"[core]\n hooksPath = {home}/hooks\n fsmonitor = {script}\n[init]\n templateDir = {home}\n"
    settings += f'[url "file:///nowhere"]\n insteadOf = /\n[uploadpack]\n packObjectsHook = {script}\n'
    (home / ".gitconfig").write_text(settings)
    monkeypatch.setenv("HOME", str(home))
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG_GLOBAL"):
        monkeypatch.setenv(name, str(home / ".gitconfig"))
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "GIT_SSH_COMMAND"):
        monkeypatch.setenv(name, str(script))
    clone = fetch(str(source.path), LIMITS, folder)
    assert history(clone.ask, REF).total == 3
    assert not marker.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_source_of_somebody_else_is_read(source: Made, folder: str) -> None:
    for place in (source.path, *source.path.rglob("*")):
        os.chown(place, 12345, 12345, follow_symlinks=False)
    assert fetch(str(source.path), LIMITS, folder).branch == "main"


def test_links_and_submodules_are_named_and_not_followed(source: Made, tmp_path: Path, folder: str) -> None:
    inner = Made(tmp_path / "inner")
    inner.commit("Inside", {"secret.py": "x = 1\n"})
    source.git("submodule", "--quiet", "add", str(inner.path), "vendored")
    (source.path / "way_out").symlink_to("/etc/passwd")
    (source.path / "module.py").symlink_to("../../inner/secret.py")
    source.commit("Join")
    clone = fetch(str(source.path), LIMITS, folder)
    found = tree(clone.ask, REF, LIMITS.clone_bytes)
    plain = [entry.path for entry in found.files if not entry.link]
    assert plain == [".gitmodules", "README", "a.py", "tools/b.py"]
    assert [entry.path for entry in found.files if entry.link] == ["module.py", "way_out"]
    assert found.notes == [
        "2 symbolic links, not followed: module.py, way_out",
        "1 submodule, not fetched: vendored",
    ]


def test_names_of_every_kind_are_kept_apart(tmp_path: Path, folder: str) -> None:
    made = Made(tmp_path / "names")
    made.commit("Names", {"Case.py": "1", "case.py": "2", "new\nline.py": "3", "ünï.py": "4"})
    with open(os.fsencode(made.path) + b"/\xff.py", "w") as file:
        file.write("5")
    made.commit("Bytes")
    clone = fetch(str(made.path), LIMITS, folder)
    found = tree(clone.ask, REF, LIMITS.clone_bytes)
    assert [entry.path for entry in found.files] == ["Case.py", "\\xff.py", "case.py", "new\\x0aline.py", "ünï.py"]
    with Objects(clone.git_dir, clone.git.config) as objects:
        assert [objects.read(entry.object) for entry in found.files] == [b"1", b"5", b"2", b"3", b"4"]
    assert any("upper and lower case" in note for note in found.notes)
    assert any(note.startswith("2 files with names that are shown escaped") for note in found.notes)
    assert not any("shallow" in note for note in found.notes)


def test_a_repository_that_is_too_large_is_left(tmp_path: Path, folder: str) -> None:
    made = Made(tmp_path / "large")
    made.commit("Noise", {"noise": os.urandom(3 * 2**20)})
    told = failing(str(made.path), folder, AuditLimits(clone_bytes=2**20))
    assert told.code == "too_large"
    assert "1048576 bytes" in told.message


def test_files_that_unpack_to_too_much_are_too_large(tmp_path: Path, folder: str) -> None:
    made = Made(tmp_path / "bomb")
    made.commit("Nothing", {"nothing": bytes(8 * 2**20)})
    clone = fetch(str(made.path), AuditLimits(clone_bytes=2**20), folder)
    with pytest.raises(SourceFailed, match="take 8388608 bytes") as raised:
        tree(clone.ask, REF, 2**20)
    assert raised.value.code == "too_large"


def test_a_tree_of_trees_is_not_unfolded(tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "_LIST_BYTES", 2**20)
    made = Made(tmp_path / "bomb")
    made.commit("One", {"file": "x"})
    inner = made.git("rev-parse", "HEAD:file")
    lines = "".join(f"100644 blob {inner}\tf{n}\n" for n in range(10))
    for _ in range(12):
        inner = made.git("mktree", stdin=lines.encode())
        lines = "".join(f"040000 tree {inner}\td{n}\n" for n in range(10))
    commit = made.git("commit-tree", inner, "-m", "Bomb")
    made.git("update-ref", "refs/heads/main", commit)
    clone = fetch(str(made.path), LIMITS, folder)
    with pytest.raises(SourceFailed) as raised:
        tree(clone.ask, REF, LIMITS.clone_bytes)
    assert raised.value.code == "too_large"


def test_the_history_is_told_oldest_first_with_its_times(source: Made, folder: str) -> None:
    source.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    source.commit("Beside", {"side.py": ""}, zone="+0530")
    source.git("checkout", "--quiet", "main")
    source.git("merge", "--quiet", "--no-ff", "-m", "Merge", "side", env={"GIT_COMMITTER_DATE": f"{source.time} +0000"})
    clone = fetch(str(source.path), LIMITS, folder)
    found = history(clone.ask, REF)
    assert [commit.message for commit in found.shown] == ["Set up", "Add tools", "Join them", "Beside", "Merge"]
    assert found.shown[0].timestamp == "2025-10-09T08:53:20+00:00"
    assert found.shown[3].timestamp == "2025-10-09T17:23:20+05:30"
    assert found.span_s == 4 * 3600
    assert found.burst == 0.2
    assert BEGAN == 1_760_000_000


def test_no_commit_stands_before_its_parents_whatever_its_clock_said(tmp_path: Path, folder: str) -> None:
    made = Made(tmp_path / "skewed")
    made.time = BEGAN + 500
    first = made.commit("First")
    made.git("checkout", "--quiet", "-b", "early")
    made.time = BEGAN
    made.commit("Early by its clock")
    made.git("checkout", "--quiet", "main")
    made.time = BEGAN + 1_000
    made.commit("Late")
    made.time = BEGAN + 2_000
    tips = made.git("rev-parse", "main", "early").split()
    made.git("merge", "--quiet", "-m", "Merge", "early", env={"GIT_COMMITTER_DATE": f"{made.time} +0000"})
    found = history(fetch(str(made.path), LIMITS, folder).ask, REF)
    assert [commit.message for commit in found.shown] == ["First", "Early by its clock", "Late", "Merge"]
    assert [commit.commit for commit in found.shown][:3] == [first, tips[1], tips[0]]


def test_of_a_long_history_the_first_and_the_last_are_shown(tmp_path: Path, folder: str) -> None:
    made = Made(tmp_path / "long")
    stream = "".join(
        f"commit refs/heads/main\ncommitter A <a@b> {BEGAN + 60 * n} +0000\ndata <<END\nNumber {n}\n\nMore.\nEND\n"
        for n in range(250)
    )
    made.git("fast-import", "--quiet", stdin=stream.encode())
    clone = fetch(str(made.path), LIMITS, folder)
    found = history(clone.ask, REF)
    assert found.total == 250
    assert [commit.message for commit in found.shown] == [f"Number {n}" for n in (*range(50), *range(200, 250))]
    assert found.burst == round(31 / 250, 4)


def test_messages_and_times_that_are_none_are_borne(tmp_path: Path, folder: str) -> None:
    made = Made(tmp_path / "odd")
    raw = (
        f"tree {made.git('mktree')}\nauthor a <a> 1 +0000\ncommitter a <a> 99999999999999 +9999\n\n".encode()
        + b"\xff\x1b[31m red\tand \xc3\xa4\n"
    )
    commit = made.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=raw)
    made.git("update-ref", "refs/heads/main", commit)
    clone = fetch(str(made.path), LIMITS, folder)
    (only,) = history(clone.ask, REF).shown
    assert only.message == "� [31m red and ä"
    assert only.timestamp == ""


def test_a_clone_can_be_removed_and_leaves_no_process(source: Made, folder: str) -> None:
    fetch(str(source.path), LIMITS, folder)
    subprocess.run(["rm", "-r", folder], check=True)
