"""A blob of an old run is lost: that is told, the run's document is left out, and everything else goes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pmagent.projections.core.disk import ContentLost
from pmagent.projections.runs.folders import RUNS_KEPT
from pmagent.service.host import Host, open_host
from pmagent.service.operations import call, perform
from pmagent.service.wire import RemoteError
from pmagent.workspace.layout import Layout
from tests.integration.test_run_documents import documents, dry_runs, run_id
from tests.support.commands import pmagent
from tests.support.daemons import running

Loss = Callable[[Path, Path], None]
"""Given the blob and the document."""


def gone(blob: Path, document: Path) -> None:
    blob.unlink()
    document.unlink()


def altered(blob: Path, document: Path) -> None:
    blob.chmod(0o600)
    blob.write_bytes(b"tampered")
    document.write_bytes(b"tampered, too")


def linked(blob: Path, document: Path) -> None:
    blob.unlink()
    blob.symlink_to("/etc/hostname")
    document.unlink()


def a_fifo(blob: Path, document: Path) -> None:
    blob.unlink()
    os.mkfifo(blob)
    document.unlink()


LOSSES = [gone, altered, linked, a_fifo]


def lose(workspace: Path, number: int, loss: Loss) -> str:
    """Lose the blob of this run's output, and the documents that are copies of it; the path of one."""
    copies = sorted((workspace / "runs").glob("*/artifacts/*/stdout"))
    mine = next(path for path in copies if run_id(number) in str(path))
    (blob,) = {
        path for path in Layout(workspace).blobs.glob("??/*") if path.read_bytes() == mine.read_bytes()
    }  # fmt: skip
    loss(blob, mine)
    return mine.relative_to(workspace).as_posix()


OPERATOR = ("--operator", "ada")


def goes_on(workspace: Path) -> None:
    """Each request is carried out and answered."""
    assert pmagent(workspace, "pause", *OPERATOR).code == 0
    assert pmagent(workspace, "status", "--format", "json").document["paused"]["operator_id"] == "ada"
    assert pmagent(workspace, "resume", *OPERATOR).code == 0
    for command in (("oa", "snapshot"), ("boot", "oa"), ("pla", "mode", "SUGGEST", *OPERATOR)):
        ran = pmagent(workspace, *command)
        assert ran.code == 0, (command, ran.errors)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_daemon_starts_beside_a_lost_blob_tells_it_once_and_goes_on(workspace: Path, loss: Loss) -> None:
    dry_runs(workspace, 1)
    path = lose(workspace, 1, loss)
    with running(workspace) as daemon:
        goes_on(workspace)
        unwritten = pmagent(workspace, "status", "--format", "json").document["unwritten"]
        assert path in {one["path"] for one in unwritten["first"]}
        assert unwritten["count"] == len(unwritten["first"])
        assert path in pmagent(workspace, "status").text
        code, errors = daemon.end()
    assert code == 0
    assert errors.count("documents are left out") == 1
    assert "lost" in errors
    assert pmagent(workspace, "log", "verify").code == 4


@pytest.mark.parametrize("loss", LOSSES)
def test_a_blob_that_is_lost_beside_a_daemon_ends_nothing(workspace: Path, loss: Loss) -> None:
    dry_runs(workspace, 1)
    with running(workspace) as daemon:
        path = lose(workspace, 1, loss)
        goes_on(workspace)
        with pytest.raises(RemoteError, match="lost"):
            call(workspace, "rebuild")
        goes_on(workspace)
        assert not (workspace / path).exists() or loss is altered
        assert daemon.end()[0] == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_a_command_without_a_daemon_goes_on_too(workspace: Path, loss: Loss) -> None:
    dry_runs(workspace, 1)
    lose(workspace, 1, loss)
    goes_on(workspace)
    with pytest.raises(ContentLost):
        call(workspace, "rebuild")
    dry_runs(workspace, 2)  # whose output is the same, which mends the blob
    assert "report.md" in documents(workspace, 2)
    call(workspace, "rebuild")
    assert pmagent(workspace, "rebuild", "--check").code == 0


def test_a_run_that_left_the_state_is_no_different(workspace: Path) -> None:
    dry_runs(workspace, *range(RUNS_KEPT + 2))
    path = lose(workspace, 0, gone)
    Layout(workspace).snapshot.unlink()
    with running(workspace) as daemon:
        goes_on(workspace)
        unwritten = pmagent(workspace, "status", "--format", "json").document["unwritten"]
        assert path in {one["path"] for one in unwritten["first"]}
        assert daemon.end()[0] == 0


OPERATOR_FIELDS = {"operator": "ada"}
STOPS = {
    "control.pause": OPERATOR_FIELDS, "control.resume": OPERATOR_FIELDS, "pla.disarm": OPERATOR_FIELDS,
    "pla.mode": {"mode": "OBSERVE", **OPERATOR_FIELDS}, "orchestra.cancel": {"run_id": run_id(1)},
}  # fmt: skip


async def test_to_stop_something_waits_for_no_document(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer of documents may be stuck on a disk for as long as that likes."""

    async def waits(_: Host) -> None:
        raise AssertionError("it waits for documents")

    monkeypatch.setattr(Host, "flush", waits)
    async with open_host(workspace, "test") as host:
        await host.ready()
        for operation, fields in STOPS.items():
            answer = await perform(host, operation, {"request": f"{operation}-1", **fields})
            assert answer.document, operation
