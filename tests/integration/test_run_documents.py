"""Documents of runs in a real workspace: written live, after a crash, and anew from the log; old runs' too."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
import pytest

from pmagent.actors.core.engine import Engine
from pmagent.contracts.oa import OaSnapshotRequested
from pmagent.contracts.orchestra_events import RunRequested
from pmagent.events.event import Tail
from pmagent.projections.core.disk import DocumentStore
from pmagent.projections.core.documents import Documents, Taken
from pmagent.projections.rebuild import check_documents
from pmagent.projections.runs.folders import RUNS_KEPT, RunFolders
from pmagent.service import writing
from pmagent.service.cache import SnapshotTaker
from pmagent.service.host import Host, open_host
from pmagent.service.operations import call
from pmagent.workspace.layout import Layout
from tests.conftest import fresh_example
from tests.support.commands import SECONDS, clean_environment
from tests.support.daemons import running
from tests.support.orchestra import Harness, config, plan
from tests.support.run_folders import folded

SURFACE = "orchestra.run"


def run_id(number: int) -> str:
    return f"5b0c7a52-3f7e-4c1d-9a55-{number:012}"


async def dry_run(host: Host, number: int) -> str:
    """A run of two tasks that a simulated tool answers; how it ended."""
    await host.ready()
    asked = RunRequested(
        run_id=run_id(number), intent="try it", config=config(), plan=plan({"a": [], "b": ["a"]}), dry_run=True
    )
    ended = await host.ask(asked, run_id(number), {"run.ended"}, SECONDS)
    state: str = ended.data.state
    return state


def dry_runs(workspace: Path, *numbers: int) -> None:
    """These runs, in a process of their own kind, which ends in order."""

    async def go() -> None:
        async with open_host(workspace, SURFACE) as host:
            for number in numbers:
                assert await dry_run(host, number) == "done"

    anyio.run(go)


def documents(workspace: Path, number: int) -> set[str]:
    folder = workspace / "runs" / run_id(number)
    return {path.relative_to(folder).as_posix().rpartition("/")[2] for path in folder.rglob("*") if path.is_file()}


ALL = {"config.yaml", "plan.json", "tasks.jsonl", "metrics.json", "report.md", "stdout"}


def test_when_a_run_has_ended_its_documents_are_on_disk(workspace: Path) -> None:
    async def go() -> None:
        async with open_host(workspace, SURFACE) as host:
            await dry_run(host, 1)
            assert documents(workspace, 1) == ALL
            assert json.loads((workspace / f"jobs/{run_id(1)}.json").read_text())["status"] == "complete"

    anyio.run(go)
    assert check_documents(workspace) == []


def test_documents_of_runs_that_left_the_state_are_checked_and_written_anew(workspace: Path) -> None:
    dry_runs(workspace, *range(RUNS_KEPT + 3))
    assert all(documents(workspace, number) == ALL for number in range(RUNS_KEPT + 3))
    assert check_documents(workspace) == []
    old, new = (workspace / "runs" / run_id(number) for number in (0, RUNS_KEPT + 2))
    (old / "report.md").write_text("nothing happened")
    shutil.rmtree(new)
    wrong = {(found.path, found.state) for found in check_documents(workspace)}
    assert (f"runs/{run_id(0)}/report.md", "differs") in wrong
    assert {state for path, state in wrong if run_id(RUNS_KEPT + 2) in path} == {"missing"}
    assert set(call(workspace, "rebuild").document["written"]) == {path for path, _ in wrong}
    assert check_documents(workspace) == []


def test_a_daemon_writes_anew_what_somebody_has_changed(workspace: Path) -> None:
    dry_runs(workspace, 1)
    log = workspace / "runs" / run_id(1) / "tasks.jsonl"
    kept = log.read_bytes()
    with running(workspace) as daemon:
        log.write_bytes(kept[:-10])
        answer = call(workspace, "rebuild").document
        assert f"runs/{run_id(1)}/tasks.jsonl" in answer["written"]
        assert f"jobs/{run_id(1)}.json" in answer["documents"]
        assert log.read_bytes() == kept
        assert daemon.end()[0] == 0
    assert check_documents(workspace) == []


_KILLED = """
import os, signal, sys, anyio
from pathlib import Path
from pmagent.projections.core.disk import DocumentStore
from pmagent.service.host import open_host
sys.path.insert(0, sys.argv[3])
from tests.integration import test_run_documents as these

put, when = DocumentStore._put, int(sys.argv[2])
calls = 0

def killed(self, path, *more, **words):
    global calls
    calls += these.run_id(7) in path
    if calls == when:
        os.kill(os.getpid(), signal.SIGKILL)
    return put(self, path, *more, **words)

DocumentStore._put = killed

async def go():
    async with open_host(Path(sys.argv[1]), "orchestra.run") as host:
        await these.dry_run(host, 7)

anyio.run(go)
"""


@pytest.mark.parametrize(("when", "snapshot"), [(1, False), (4, True), (8, False)])
def test_what_a_kill_left_unwritten_the_next_start_writes(workspace: Path, when: int, snapshot: bool) -> None:
    dry_runs(workspace, 1)
    if not snapshot:
        Layout(workspace).snapshot.unlink()
    root = str(Path(__file__).resolve().parents[2])
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(workspace), str(when), root], env=clean_environment(), cwd=root,
        capture_output=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert documents(workspace, 7) != ALL or check_documents(workspace) != []
    dry_runs(workspace)
    assert check_documents(workspace) == []
    assert {"config.yaml", "report.md"} <= documents(workspace, 7)


def test_documents_come_with_pauses_but_at_once_for_who_waits(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "PAUSE_FACTOR", 1e9)
    monkeypatch.setattr(writing, "PAUSE_SECONDS_MAX", 1e9)
    written: list[set[str]] = []
    write = DocumentStore.write

    def counted(store: DocumentStore, documents: Taken, *, by_size: bool = False) -> list[str]:
        written.append(set(documents))
        return write(store, documents, by_size=by_size)

    monkeypatch.setattr(DocumentStore, "write", counted)

    async def go() -> None:
        async with open_host(workspace, SURFACE) as host:
            await host.ask(OaSnapshotRequested(), "s-1", {"oa.snapshot_taken"}, SECONDS)
            before = len(written)
            assert await dry_run(host, 1) == "done"  # dozens of events, and one who waits at the end
            assert len(written) - before <= 2
            assert any(path.endswith("report.md") for path in written[-1])

    anyio.run(go)
    assert check_documents(workspace) == []


def test_no_snapshot_is_taken_while_documents_are_owed_that_it_would_not_know_of(tmp_path: Path) -> None:
    harness = Harness()
    for number in range(2):
        harness.request({"a": []}, run_id=run_id(number))
        harness.run(run_id(number))
    owed = folded(harness.history, Documents([RunFolders(kept=1)]))
    engine: Engine = harness.engine
    taker = SnapshotTaker(tmp_path / "snapshot", "ab" * 16, engine, owed)
    tail = Tail(harness.history[-1].position, 0, harness.history[-1].time, "0" * 64)
    assert taker.final(tail) is None
    owed.take()
    assert taker.final(tail) is None
    owed.settle()
    assert taker.final(tail) is not None


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_documents_are_closed_to_other_users_whatever_the_umask_says(workspace: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        dry_runs(workspace, 1)
        assert call(workspace, "oa.snapshot").exit_code == 0
    finally:
        os.umask(before)
    found = [path for name in ("runs", "jobs") for path in (workspace / name, *(workspace / name).rglob("*"))]
    assert {(path.is_dir(), path.stat().st_mode & 0o777) for path in found} == {(True, 0o700), (False, 0o600)}
    assert {path.stat().st_nlink for path in found if path.name == "stdout"} == {1}
    state = workspace / "share/orchestrator_assistant/STATE.json"
    assert state.stat().st_mode & 0o777 == 0o644 & ~umask


@pytest.mark.parametrize("opened", ["one document", "its folder"])
def test_what_others_may_read_stays_readable_and_what_comes_is_closed(workspace: Path, opened: str) -> None:
    dry_runs(workspace, 1)
    report = workspace / "runs" / run_id(1) / "report.md"
    shared = report if opened == "one document" else report.parent
    shared.chmod(0o666 if shared is report else 0o755)
    report.write_text("altered")
    call(workspace, "rebuild")
    assert report.stat().st_mode & 0o777 == (0o644 if shared is report else 0o600)
    assert report.parent.stat().st_mode & 0o777 == (0o700 if shared is report else 0o755)
    report.unlink()
    call(workspace, "rebuild")
    assert report.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_another_user_reads_no_document() -> None:
    """In a workspace that everybody may enter, and really another user."""
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        os.chmod(place, 0o755)
        workspace = fresh_example(Path(place) / "workspace")
        workspace.chmod(0o755)
        before = os.umask(0o000)
        try:
            dry_runs(workspace, 1)
        finally:
            os.umask(before)
        shown = subprocess.run(
            ["find", str(workspace), "-name", "share", "-prune", "-o", "-type", "f", "-readable", "-print"],
            user=65_534, group=65_534, extra_groups=[], check=False, capture_output=True, text=True, timeout=SECONDS,
        )
        read = {Path(line).relative_to(workspace).parts[0] for line in shown.stdout.splitlines()}
        assert "README.md" in read, "it can enter"
        assert not read & {"runs", "jobs", "sessions", "audit", ".pmagent"}
