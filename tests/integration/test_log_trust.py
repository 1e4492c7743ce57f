"""A log that was not begun here is read, and never obeyed: however it came, and whatever stands in it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pmagent.actors.core.gate import GateState, Permit
from pmagent.actors.core.snapshot import decode_snapshot, encode_snapshot
from pmagent.contracts.control import LogAdopted
from pmagent.contracts.effect import EffectCancelled, EffectInterrupted
from pmagent.contracts.oa import OaPermitRevoked
from pmagent.contracts.orchestra_events import RunEnded, TaskAttemptRequested
from pmagent.service.folding import folded
from pmagent.service.operations import call, offline_status
from pmagent.workspace.layout import Layout
from pmagent.workspace.trust import accept
from pmagent.workspace.user_registry import Registry, snapshot_digest, trusted
from tests.support.cases import each
from tests.support.commands import pmagent, spawn
from tests.support.daemons import running
from tests.support.logged import history
from tests.support.shipped import as_earlier, git, lines_of, shipped

SECURITY, CORRUPT = 7, 4

Bring = Callable[[Path, Path], None]
"""How a workspace comes to another place: from, to."""


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A workspace of somebody else, whose log has an open run."""
    return shipped(tmp_path / "theirs", tmp_path / "their-state")


@pytest.fixture
def lived(workspace: Path) -> Path:
    """A workspace of this user's, with a log and a snapshot of its state."""
    for name in ("oa.snapshot", "boot.oa"):
        assert call(workspace, name).exit_code == 0
    return workspace


def clone(source: Path, target: Path) -> None:
    """By git, with the log committed: only where an earlier release keeps it does git track it."""
    cloned(as_earlier(source), target)


def clone_log_dir(source: Path, target: Path) -> None:
    """By git, with the log committed elsewhere, and settings that name the place."""
    (source / "kept").mkdir()
    for part in ("log", "blobs"):
        shutil.move(source / ".pmagent/data" / part, source / "kept" / part)
    shutil.rmtree(source / ".pmagent/data")
    (source / ".pmagent/config.toml").write_text('[storage]\nlog_dir = "kept"\n')
    cloned(source, target)


def clone_link(source: Path, target: Path) -> None:
    """By git, with the log committed elsewhere, and a link that leads there."""
    shutil.rmtree(source / ".pmagent/data/.git")
    shutil.move(source / ".pmagent/data", source / "elsewhere")
    (source / ".pmagent/data").symlink_to("../elsewhere")
    cloned(source, target)


def cloned(source: Path, target: Path) -> None:
    """All of ``source`` committed, and cloned."""
    git(source, "init", "--quiet")
    git(source, "add", "--force", ".")
    git(source, "commit", "--quiet", "--message", "x")
    subprocess.run(["git", "clone", "--quiet", str(source), str(target)], check=True, capture_output=True)


def submodule(source: Path, target: Path) -> None:
    """As a repository of its own for ``.pmagent``, inside of the workspace's."""
    shutil.copytree(as_earlier(source), target)
    git(target / ".pmagent", "init", "--quiet")
    git(target / ".pmagent", "add", "--force", ".")


def submodule_data(source: Path, target: Path) -> None:
    """In a repository in the place of the empty one."""
    shutil.copytree(source, target)
    shutil.rmtree(target / ".pmagent/data/.git")
    git(target / ".pmagent/data", "init", "--quiet")
    git(target / ".pmagent/data", "add", "--force", ".")


def copy(source: Path, target: Path) -> None:
    """With owners, modes and times."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def archive(source: Path, target: Path) -> None:
    """Through tar."""
    target.mkdir()
    packed = subprocess.run(["tar", "-C", str(source), "-c", "."], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-C", str(target), "-x"], input=packed, check=True)


def hard_links(source: Path, target: Path) -> None:
    """The same files under second names."""
    subprocess.run(["cp", "-al", str(source), str(target)], check=True)


def linked(source: Path, target: Path) -> None:
    """``.pmagent`` as a symbolic link."""
    shutil.copytree(source, target)
    shutil.move(target / ".pmagent", target.parent / "elsewhere")
    (target / ".pmagent").symlink_to(target.parent / "elsewhere")


def linked_data(source: Path, target: Path) -> None:
    """The folder that holds all evidence as a symbolic link."""
    replaced_by_link(source, target, target / ".pmagent/data")


def linked_log(source: Path, target: Path) -> None:
    """The log's folder as a symbolic link."""
    replaced_by_link(source, target, target / ".pmagent/data/log")


def linked_segment(source: Path, target: Path) -> None:
    """A segment as a symbolic link."""
    replaced_by_link(source, target, target / ".pmagent/data/log/00000000000000000001.jsonl")


def linked_lock(source: Path, target: Path) -> None:
    """The lock as a symbolic link."""
    replaced_by_link(source, target, target / ".pmagent/data/LOCK")


def linked_earlier_lock(source: Path, target: Path) -> None:
    """The lock of an earlier release as a symbolic link that leads nowhere."""
    shutil.copytree(source, target)
    (target / ".pmagent/LOCK").unlink()
    (target / ".pmagent/LOCK").symlink_to(target.parent / "anything")


def replaced_by_link(source: Path, target: Path, path: Path) -> None:
    """A copy, in which ``path`` is a link to what was there."""
    shutil.copytree(source, target)
    shutil.move(path, target.parent / path.name)
    path.symlink_to(target.parent / path.name)


def moved(source: Path, target: Path) -> None:
    """The folder itself."""
    shutil.move(source, target)


@pytest.mark.parametrize(
    "bring",
    [clone, clone_log_dir, clone_link, submodule, submodule_data, copy, archive, hard_links, linked, linked_data,
     linked_log, linked_segment, linked_lock, linked_earlier_lock, moved],
)  # fmt: skip
def test_a_log_with_an_open_run_that_came_along_is_not_obeyed(foreign: Path, tmp_path: Path, bring: Bring) -> None:
    here = tmp_path / "here"
    bring(foreign, here)
    (here / ".pmagent").chmod(0o700)
    accept(here)
    before = contents(here)

    refused = [pmagent(here, *words) for words in (["up"], ["oa", "snapshot"], ["pause"], ["rebuild"], ["boot", "oa"])]

    assert [ran.code for ran in refused] == [SECURITY] * len(refused), refused
    assert contents(here) == before


def contents(workspace: Path) -> dict[str, bytes]:
    """Every file, with what is in it; the lock names who tried to hold it."""
    return {
        str(path): path.read_bytes()
        for folder, _, names in os.walk(workspace, followlinks=True)
        for path in (Path(folder, name) for name in names)
        if path.name not in ("LOCK", ".gitignore")
    }


def test_what_is_not_trusted_can_be_read_verified_and_replayed(foreign: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    clone(foreign, here)
    for words in (
        ["status"], ["log", "tail"], ["log", "stat"], ["log", "verify"], ["replay"], ["runs"], ["pla", "status"],
        ["log", "export"], ["log", "why", "3"],
    ):
        assert pmagent(here, *words).code == 0, words
    assert pmagent(here, "rebuild", "--check").code in (0, 1)
    assert pmagent(here, "status", "--format", "json").document["distrust"]
    assert pmagent(here, "log", "verify", "--format", "json").document["distrust"]
    checks = pmagent(here, "doctor", "--format", "json").document["checks"]
    assert [check["state"] for check in checks if check["name"] == "trust"] == ["fail"]


@pytest.mark.parametrize("bring", [clone, copy, moved])
def test_adopting_ends_what_is_open_and_never_goes_on_with_it(foreign: Path, tmp_path: Path, bring: Bring) -> None:
    here = tmp_path / "here"
    bring(foreign, here)
    subprocess.run(["chmod", "-R", "go-w", str(here)], check=True)
    accept(here)
    end = len(lines_of(here)) - 1

    assert pmagent(here, "log", "adopt").code == 2  # nobody can be asked
    adopted = pmagent(here, "log", "adopt", "--yes", "--operator", "ada")

    assert adopted.code == 0
    assert "run " in adopted.errors
    new = [event for event in history(here) if event.position > end]
    kinds = [type(event.data) for event in new]
    assert TaskAttemptRequested not in kinds
    assert [event.data.state for event in new if isinstance(event.data, RunEnded)] == ["cancelled"]
    assert kinds.count(OaPermitRevoked) == 1
    assert {EffectCancelled, EffectInterrupted} & set(kinds)
    [told] = [event.data for event in new if isinstance(event.data, LogAdopted)]
    assert (told.operator_id, told.uid, told.gone_to) == ("ada", os.getuid(), 0)
    status = offline_status(here)
    assert (status["jobs"], status["open_effects"], status["permits"]) == ([], [], 0)
    assert status["distrust"] is None
    assert pmagent(here, "log", "adopt", "--yes").code == 1  # nothing to do
    assert pmagent(here, "oa", "snapshot").code == 0
    assert pmagent(here, "replay").code == 0


def test_a_forged_snapshot_gives_no_permit(lived: Path) -> None:
    layout = Layout(lived)
    assert snapshot_digest(layout)
    snapshot = decode_snapshot(layout.snapshot.read_bytes())
    assert snapshot is not None
    permit = Permit("feature_work", "run:x", "worker", "oa", 9, "2999-01-01T00:00:00.000000Z")
    gate = msgspec.to_builtins(GateState(permits={3: permit}))
    states = {**snapshot.engine.states, "gate": msgspec.Raw(msgspec.json.encode(gate))}
    engine = msgspec.structs.replace(snapshot.engine, states=states)
    layout.snapshot.write_bytes(encode_snapshot(msgspec.structs.replace(snapshot, engine=engine)))

    with folded(lived) as (found, _, _):
        assert found.states["gate"].permits == {}
    assert call(lived, "oa.snapshot").exit_code == 0
    assert offline_status(lived)["permits"] == 0


@pytest.mark.parametrize("bring", [copy, moved, hard_links])
def test_a_known_log_elsewhere_is_not_this_users_own(lived: Path, tmp_path: Path, bring: Bring) -> None:
    other = tmp_path / "other"
    bring(lived, other)
    accept(other)
    ran = pmagent(other, "oa", "snapshot")
    assert ran.code == SECURITY
    if bring is moved:
        assert "moved from" in ran.errors
        assert pmagent(other, "log", "adopt", "--yes").code == 0
        assert pmagent(other, "oa", "snapshot").code == 0
    elif bring is copy:
        assert pmagent(lived, "oa", "snapshot").code == 0  # the original goes on


def test_adopting_a_copy_of_a_log_ends_the_trust_in_the_original(lived: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    copy(lived, other)
    assert pmagent(other, "log", "adopt", "--yes").code == 0
    assert pmagent(other, "oa", "snapshot").code == 0
    assert pmagent(lived, "oa", "snapshot").code == SECURITY


def test_another_log_in_the_place_of_a_known_one_is_not_trusted(lived: Path, foreign: Path) -> None:
    for part in ("log", "blobs"):
        shutil.rmtree(lived / ".pmagent/data" / part)
        shutil.copytree(foreign / ".pmagent/data" / part, lived / ".pmagent/data" / part)
    assert pmagent(lived, "oa", "snapshot").code == SECURITY
    assert offline_status(lived)["distrust"]


def test_the_same_bytes_in_another_folder_are_another_log(lived: Path) -> None:
    log = Layout(lived).log
    shutil.copytree(log, lived / "aside")
    shutil.rmtree(log)
    shutil.move(lived / "aside", log)
    log.chmod(0o700)
    assert pmagent(lived, "oa", "snapshot").code == SECURITY


def truncated(log: Path, older: Path) -> None:
    """Cut the last lines off, and take HEAD back with them."""
    for name in ("HEAD", "00000000000000000001.jsonl"):
        (log / name).chmod(0o600)
        (log / name).write_bytes((older / name).read_bytes())


def restored(log: Path, older: Path) -> None:
    """Copy an older backup over it."""
    subprocess.run(["cp", "-a", f"{older}/.", str(log)], check=True)


@pytest.mark.parametrize("lose", [truncated, restored])
def test_events_that_are_gone_together_with_head_are_found(lived: Path, tmp_path: Path, lose: Bring) -> None:
    log, older = Layout(lived).log, tmp_path / "older"
    shutil.copytree(log, older)
    kept = len(lines_of(lived)) - 1
    assert call(lived, "boot.oa").exit_code == 0
    end = len(lines_of(lived)) - 1
    assert end > kept
    lose(log, older)

    acting = pmagent(lived, "oa", "snapshot")

    assert acting.code == CORRUPT
    assert f"events {kept + 1} to {end} were here and are gone" in acting.errors
    assert f"events {kept + 1} to {end}" in offline_status(lived)["distrust"]
    assert pmagent(lived, "log", "verify").code == CORRUPT
    assert pmagent(lived, "log", "adopt", "--yes").code == 0
    assert pmagent(lived, "oa", "snapshot").code == 0
    assert pmagent(lived, "log", "verify").code == 0
    [told] = [event.data for event in history(lived) if isinstance(event.data, LogAdopted)]
    assert (told.gone_from, told.gone_to, len(told.known_sum)) == (kept + 1, end, 64)


@each("part", [
    "", "LOCK", "data", "data/log", "data/log/HEAD", "data/log/00000000000000000001.jsonl", "data/blobs", "data/cache",
    "data/LOCK",
])  # fmt: skip
@each("mode", [0o020, 0o002])
def test_log_files_that_others_may_write_are_refused(lived: Path, part: str, mode: int) -> None:
    path = lived / ".pmagent" / part
    path.chmod(path.stat().st_mode | mode)
    ran = pmagent(lived, "oa", "snapshot")
    assert (ran.code, "chmod go-w" in ran.errors) == (SECURITY, True)
    assert ran.errors.endswith(f"chmod go-w {path}\n"), "named once"
    path.chmod(path.stat().st_mode & ~0o022)
    assert pmagent(lived, "oa", "snapshot").code == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_another_users_log_is_trusted_after_adoption_alone(lived: Path) -> None:
    subprocess.run(["chown", "-R", "4711", str(lived / ".pmagent")], check=True)
    assert pmagent(lived, "oa", "snapshot").code == SECURITY
    assert pmagent(lived, "log", "adopt", "--yes").code == 0
    known = Registry().log_of(lived)
    assert known is not None
    assert known.uid == 4711
    assert pmagent(lived, "oa", "snapshot").code == 0
    subprocess.run(["chown", "-R", "4712", str(Layout(lived).log)], check=True)
    assert pmagent(lived, "oa", "snapshot").code == SECURITY


def earlier(workspace: Path) -> Path:
    """As an earlier release left it: nothing is registered."""
    Registry().forget_log(workspace)
    return workspace


def test_the_log_of_an_earlier_release_is_registered_once_and_said_so(lived: Path) -> None:
    earlier(lived)
    first = spawn("oa", "snapshot", cwd=lived)
    again = spawn("oa", "snapshot", cwd=lived)
    assert (first.code, again.code) == (0, 0)
    assert sum("registered" in line for line in first.errors.splitlines()) == 1
    assert "registered" not in again.errors
    assert trusted(Layout(lived)) is not None


def test_the_log_of_an_earlier_release_with_an_open_run_is_adopted_or_only_read(foreign: Path) -> None:
    accept(foreign)
    ran = pmagent(foreign, "oa", "snapshot")
    assert (ran.code, "run 5b0c7a52" in ran.errors) == (SECURITY, True)


def test_a_log_that_git_tracks_is_never_taken_for_one_of_an_earlier_release(lived: Path) -> None:
    earlier(as_earlier(lived))
    git(lived, "init", "--quiet")
    git(lived, "add", "--force", ".pmagent/log")
    ran = pmagent(lived, "oa", "snapshot")
    assert (ran.code, "git tracks it" in ran.errors) == (SECURITY, True)


def test_a_log_is_not_taken_for_one_of_an_earlier_release_where_git_does_not_answer(lived: Path) -> None:
    earlier(lived)
    (lived / ".git").write_text("gitdir: /nowhere\n")
    ran = pmagent(lived, "oa", "snapshot")
    assert (ran.code, "git does not tell" in ran.errors) == (SECURITY, True)
    assert Registry().log_of(lived) is None


def test_two_workspaces_and_their_daemons_do_not_concern_each_other(lived: Path, tmp_path: Path) -> None:
    from tests.conftest import fresh_example

    other = fresh_example(tmp_path / "beside")
    with running(lived) as first, running(other) as second:
        for workspace in (lived, other, lived):
            assert call(workspace, "oa.snapshot").exit_code == 0
        assert (first.end()[0], second.end()[0]) == (0, 0)
    for workspace in (lived, other):
        known = trusted(Layout(workspace))
        assert known is not None
        assert known.position == offline_status(workspace)["log"]["position"]


def test_a_registry_that_cannot_be_written_later_is_told_and_ends_no_daemon(
    lived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    accept(lived)
    with running(lived) as daemon:
        shutil.move(state / "pmagent/logs", state / "aside")
        (state / "pmagent/logs").write_text("no folder")
        assert call(lived, "oa.snapshot").exit_code == 0
        told = None
        while told is None:  # written at most once a second; the daemon's own end is the last word
            told = call(lived, "status").document["distrust"]
            assert daemon.process.poll() is None
        assert "logs" in told
        (state / "pmagent/logs").unlink()
        shutil.move(state / "aside", state / "pmagent/logs")
        code, _ = daemon.end()
    assert code == 0
    known = trusted(Layout(lived))
    assert known is not None
    assert known.position == offline_status(lived)["log"]["position"]
