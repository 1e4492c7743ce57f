"""The log's files go away under a daemon, or are gone when a command starts: it says so, and no other log begins."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pmagent.actors.known import blob_check
from pmagent.events.errors import LogLocked, PmagentError
from pmagent.events.lock import is_locked
from pmagent.events.verify import verify_log
from pmagent.projections.oa.state import PATH as STATE
from pmagent.service.operations import call, offline_status
from pmagent.workspace.layout import Layout
from pmagent.workspace.presence import LogGone
from pmagent.workspace.trust import NotAccepted
from pmagent.workspace.user_registry import LogMissing, Registry
from tests.support.commands import accepted, pmagent
from tests.support.daemons import running
from tests.support.shipped import as_earlier


def git(workspace: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git there."""
    named = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    return subprocess.run(["git", *named, *arguments], cwd=workspace, capture_output=True, text=True, check=False)


@pytest.fixture
def committed(workspace: Path) -> Path:
    """The example workspace in git, with its settings committed, after a first snapshot."""
    git(workspace, "init", "-q", "-b", "main")
    assert pmagent(workspace, "init").code == 0
    assert call(workspace, "oa.snapshot").exit_code == 0
    assert git(workspace, "add", "-A").returncode == 0
    assert git(workspace, "commit", "-q", "-m", "all").returncode == 0
    return workspace


def _swap(log: Path) -> None:
    log.rename(log.with_name("old"))
    shutil.copytree(log.with_name("old"), log)


@pytest.mark.parametrize(
    "change",
    [shutil.rmtree, lambda log: shutil.rmtree(log.parent), lambda log: log.rename(log.with_name("old")), _swap,
     lambda log: (log / "HEAD").unlink()],
    ids=["removed", "all of it removed", "moved", "replaced by a copy", "HEAD removed"],
)  # fmt: skip
def test_an_idle_daemon_whose_log_goes_away_ends_loudly(workspace: Path, change: Callable[[Path], object]) -> None:
    with running(workspace) as daemon:
        assert call(workspace, "oa.snapshot").exit_code == 0
        change(Layout(workspace).log)
        code, errors = daemon.wait()
    assert code == 70
    assert "ForeignChange" in errors


def test_a_pause_is_never_answered_as_done_when_the_log_is_gone(workspace: Path) -> None:
    with running(workspace) as daemon:
        assert call(workspace, "oa.snapshot").exit_code == 0
        shutil.rmtree(Layout(workspace).log)
        with pytest.raises(PmagentError) as caught:
            call(workspace, "control.pause", {"operator": "ada", "channel": "cli", "reason": "now"})
        assert caught.value.exit_code != 0
        assert daemon.wait()[0] == 70
    with pytest.raises(LogMissing):
        call(workspace, "oa.snapshot")
    assert not Layout(workspace).log.exists()


@pytest.mark.parametrize("remove", [
    lambda layout: layout.evidence.locks[-1].unlink(),
    lambda layout: [file.unlink() for file in (layout.evidence.locks[-1], layout.folder / "LOCK")],
    lambda layout: (layout.evidence.locks[-1].unlink(), layout.evidence.locks[-1].write_text("pid 1\n")),
], ids=["its own", "both", "replaced"])  # fmt: skip
def test_without_lock_files_no_second_writer_comes_in(workspace: Path, remove: Callable[[Layout], object]) -> None:
    layout = Layout(workspace)
    with running(workspace) as daemon:
        remove(layout)
        assert is_locked(*layout.evidence.locks)
        assert call(workspace, "oa.snapshot").exit_code == 0
        with pytest.raises(AssertionError, match=LogLocked.__name__), running(workspace):
            pass
        assert daemon.end()[0] == 0
    assert verify_log(str(layout.log), decode=True).ok


def test_git_passes_the_evidence_by_and_the_daemon_goes_on(committed: Path) -> None:
    layout = Layout(committed)
    with running(committed) as daemon:
        for how in (["clean", "-fdx"], ["add", "-A"], ["add", "."], ["add", "-f", ".pmagent"]):
            before = sorted(path for path in layout.log.iterdir())
            git(committed, *how)
            named = git(committed, "ls-files", "--stage", "--", ".pmagent").stdout.split("\n")
            assert {line.split("\t")[1] for line in named if line} == {".pmagent/.gitignore", ".pmagent/config.toml"}
            assert sorted(path for path in layout.log.iterdir()) == before
            assert call(committed, "oa.snapshot").exit_code == 0
        assert daemon.end()[0] == 0
    assert git(committed, "status", "--porcelain", "--", ".pmagent").stdout == ""
    assert verify_log(str(layout.log), blobs=blob_check(layout.store.blobs()), decode=True).ok


@pytest.mark.parametrize("ignored", [True, False])
def test_git_clean_passes_by_where_nothing_of_pmagent_is_committed(workspace: Path, ignored: bool) -> None:
    git(workspace, "init", "-q")
    if ignored:
        (workspace / ".gitignore").write_text(".pmagent/\n")
    assert call(workspace, "oa.snapshot").exit_code == 0
    git(workspace, "clean", "-fdx", "--", ".pmagent")
    assert verify_log(str(Layout(workspace).log)).events > 3


# --- what the registry knows -----------------------------------------------------------------------------------------


def emptied(layout: Layout) -> None:
    """The log's files, but not its folder."""
    for path in layout.log.iterdir():
        path.unlink()


def without_folder(layout: Layout) -> None:
    """The log's folder."""
    shutil.rmtree(layout.log)


def without_evidence(layout: Layout) -> None:
    """Log, blobs, cache and lock."""
    shutil.rmtree(layout.home)


def without_anything(layout: Layout) -> None:
    """All that is pmagent's, and each document that tells of a log."""
    shutil.rmtree(layout.folder)
    (layout.workspace / STATE).unlink(missing_ok=True)


@pytest.mark.parametrize("lose", [emptied, without_folder, without_evidence, without_anything])
@pytest.mark.parametrize("durable", [True, False], ids=["with events", "just begun"])
def test_a_removed_log_is_not_begun_silently(workspace: Path, lose: Callable[[Layout], None], durable: bool) -> None:
    git(workspace, "init", "-q")
    assert pmagent(workspace, "init", "--new-log").code == 0
    if durable:
        assert call(workspace, "oa.snapshot").exit_code == 0
    known = Registry().log_of(workspace)
    assert known is not None
    assert (known.position > 0) == durable
    lose(Layout(workspace))

    for words in (["oa", "snapshot"], ["boot", "oa"], ["up"], ["pause"], ["rebuild"], ["log", "adopt", "--yes"]):
        refused = pmagent(workspace, *words)
        assert (refused.code, known.log_id in refused.errors) == (4, True), (words, refused)
        assert "pmagent init --new-log" in refused.errors
        assert (f"events 1 to {known.position} are gone" in refused.errors) == durable
    assert known.log_id in offline_status(workspace)["distrust"]
    assert Registry().log_of(workspace) == known

    begun = pmagent(workspace, "init", "--new-log", "--format", "json")
    assert begun.code == 0
    assert begun.document["log_id"] != known.log_id
    for words in (["oa", "snapshot"], ["boot", "oa"], ["log", "verify"], ["rebuild"], ["replay"]):
        assert pmagent(workspace, *words).code == 0, words
    assert offline_status(workspace)["distrust"] is None


# --- what documents tell of ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("registered", [True, False])
def test_where_state_tells_of_a_log_that_is_gone_no_other_begins(workspace: Path, registered: bool) -> None:
    call(workspace, "oa.snapshot")
    log_id = json.loads((workspace / STATE).read_text())["log"]["log_id"]
    shutil.rmtree(Layout(workspace).home)
    if not registered:
        Registry().forget_log(workspace)
    for command in (["oa", "snapshot"], ["boot", "oa"], ["up"], ["pause"]):
        done = pmagent(workspace, *command)
        assert done.code == (4 if registered else 1), command
        assert log_id in done.errors + done.text
    for command in (["log", "tail"], ["log", "verify"], ["doctor"]):
        done = pmagent(workspace, *command)
        assert done.code == 1, command
        assert log_id in done.errors + done.text
    assert log_id in pmagent(workspace, "status").errors
    assert not Layout(workspace).log.exists()


def test_a_new_log_begins_when_it_is_asked_for(committed: Path) -> None:
    old = json.loads((committed / STATE).read_text())["log"]["log_id"]
    shutil.rmtree(Layout(committed).home)
    begun = pmagent(committed, "init", "--new-log", "--format", "json")
    assert begun.code == 0
    assert begun.document["log_id"] != old
    assert call(committed, "oa.snapshot").exit_code == 0
    assert json.loads((committed / STATE).read_text())["log"]["log_id"] == begun.document["log_id"]
    assert pmagent(committed, "init", "--new-log").code == 1, "there is one"


def test_a_fresh_clone_with_a_committed_state_is_told_the_same(committed: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(committed), "clone")
    assert not Layout(tmp_path / "clone").log.exists()
    with pytest.raises(LogGone) as caught:
        call(accepted(tmp_path / "clone"), "oa.snapshot")
    assert "clone" in caught.value.hint


@pytest.mark.parametrize(
    ("path", "content", "ours"),
    [
        ("jobs/a.json", '{"service": "pmagent-orchestra"}', True), ("jobs/a.json", '{"service": "hexforge-pla"}', True),
        ("jobs/a.json", '{"service": "mine"}', False), ("jobs/a.json", "[", False),
        ("sessions/a.jsonl", '{"previous_log_checksum":"0"}\n', True), ("sessions/a.jsonl", "{}\n", False),
        ("runs/x/report.md", "| Log | `0123456789abcdef0123456789abcdef` |", True), ("runs/x/report.md", "Log", False),
        ("share/orchestrator_assistant/STATE.json", '{"log": 5}', False),
    ],
)
def test_only_documents_of_ours_tell_of_a_log(workspace: Path, path: str, content: str, ours: bool) -> None:
    (workspace / path).parent.mkdir(parents=True, exist_ok=True)
    (workspace / path).write_text(content)
    if ours:
        with pytest.raises(LogGone, match=path):
            call(workspace, "boot.oa")
    else:
        assert call(workspace, "boot.oa").exit_code == 0


# --- where it lies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["../kept", "kept/here", "~/kept", "/absolute"])
def test_log_dir_puts_log_and_blobs_elsewhere(
    workspace: Path, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    expected = {"../kept": workspace.parent / "kept", "kept/here": workspace / "kept" / "here",
                "~/kept": tmp_path / "home" / "kept", "/absolute": tmp_path / "absolute"}[where]  # fmt: skip
    (workspace / ".pmagent").mkdir()
    text = str(expected) if where == "/absolute" else where
    (workspace / ".pmagent" / "config.toml").write_text(f"[storage]\nlog_dir = {json.dumps(text)}\n")
    with pytest.raises(NotAccepted, match="log_dir"):
        call(workspace, "oa.snapshot")
    assert not expected.exists()
    assert call(accepted(workspace), "oa.snapshot").exit_code == 0
    assert Layout(workspace).log == expected / "log"
    assert verify_log(str(expected / "log")).ok
    assert not (workspace / ".pmagent" / "data" / "log").exists()
    for command in (["log", "verify"], ["replay"], ["rebuild", "--check"], ["log", "show", "1"]):
        assert pmagent(workspace, *command).code == 0, command


@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize("to", ["new", "workspace/kept"])
def test_a_log_dir_that_changes_finds_the_log_that_stayed_behind(
    workspace: Path, tmp_path: Path, registered: bool, to: str
) -> None:
    call(workspace, "oa.snapshot")
    behind, new = Layout(workspace).log, tmp_path / to
    if not registered:
        Registry().forget_log(workspace)
    (workspace / ".pmagent" / "config.toml").write_text(f"[storage]\nlog_dir = {json.dumps(str(new))}\n")
    with pytest.raises(NotAccepted, match="log_dir"):
        call(workspace, "oa.snapshot")
    with pytest.raises(LogMissing if registered else LogGone, match=str(behind)) as caught:
        call(accepted(workspace), "oa.snapshot")
    assert "gone" not in caught.value.message
    assert "log_dir" in caught.value.hint
    assert not new.exists()


def test_a_log_that_is_moved_to_a_changed_log_dir_is_adopted_there(workspace: Path, tmp_path: Path) -> None:
    call(workspace, "oa.snapshot")
    home, events = Layout(workspace).home, verify_log(str(Layout(workspace).log)).events
    (tmp_path / "new").mkdir(mode=0o700)
    for part in ("log", "blobs"):
        shutil.move(home / part, tmp_path / "new" / part)
    (workspace / ".pmagent" / "config.toml").write_text('[storage]\nlog_dir = "../new"\n')
    refused = pmagent(workspace, "oa", "snapshot")
    assert (refused.code, "pmagent log adopt" in refused.errors) == (7, True)
    assert pmagent(workspace, "log", "adopt", "--yes").code == 0
    assert call(workspace, "oa.snapshot").exit_code == 0
    assert verify_log(str(tmp_path / "new" / "log")).events > events
    assert not (home / "log").exists()


def test_a_workspace_of_an_earlier_release_goes_on_where_its_log_lies(workspace: Path) -> None:
    folder = workspace / ".pmagent"
    call(workspace, "oa.snapshot")
    as_earlier(workspace)
    Registry().forget_log(workspace)  # an earlier release knows no registry
    assert Layout(workspace).log == folder / "log"
    before = verify_log(str(folder / "log")).events
    assert call(workspace, "oa.snapshot").exit_code == 0
    assert verify_log(str(folder / "log")).events > before
    assert not (folder / "data").exists()


def test_settings_that_cannot_be_read_begin_no_log(workspace: Path) -> None:
    (workspace / ".pmagent").mkdir()
    (workspace / ".pmagent" / "config.toml").write_text("[storage\n")
    for command in (["up"], ["oa", "snapshot"], ["boot", "oa"]):
        assert pmagent(workspace, *command).code == 2, command
    assert not Layout(workspace).home.exists()


def test_settings_that_cannot_be_read_any_more_leave_the_log_where_it_is(workspace: Path, tmp_path: Path) -> None:
    (workspace / ".pmagent").mkdir()
    (workspace / ".pmagent" / "config.toml").write_text('[storage]\nlog_dir = "../kept"\n')
    assert call(accepted(workspace), "oa.snapshot").exit_code == 0
    before = verify_log(str(tmp_path / "kept" / "log")).events
    (workspace / ".pmagent" / "config.toml").write_text("[storage\n")
    refused = pmagent(workspace, "pause")
    assert (refused.code, str(tmp_path / "kept" / "log") in refused.errors) == (4, True)
    assert not (Layout(workspace).home / "log").exists()
    (workspace / ".pmagent" / "config.toml").write_text('[storage]\nlog_dir = "../kept"\n')
    assert pmagent(workspace, "pause").code == 0
    assert verify_log(str(tmp_path / "kept" / "log")).events > before
