"""A projection that raises in a live workspace: the stop switch works, readers of its documents are refused, every
start works, and a version that does not fail mends it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from pmagent.contracts.kernel import WATCHER, KernelObserved
from pmagent.events.event import Event
from pmagent.projections.core.disk import noted_halts
from pmagent.projections.oa.state import PATH, OaState, OaStateView
from pmagent.projections.runs.folders import RunFolders
from pmagent.service.host import open_host
from pmagent.service.operations import perform
from pmagent.workspace.layout import Layout
from tests.support.commands import pmagent
from tests.support.consoles import live_host

STATE = "oa_state"


def fails_to_fold(patch: pytest.MonkeyPatch) -> None:
    evolve = OaState.evolve

    def raising(self: OaState, state: OaStateView, event: Event, sum: str) -> OaStateView:
        if isinstance(event.data, KernelObserved):
            raise KeyError("planted")
        return evolve(self, state, event, sum)

    patch.setattr(OaState, "evolve", raising)


def fails_to_give_documents(patch: pytest.MonkeyPatch) -> None:
    def raising(*_: Any) -> Any:
        raise KeyError("planted")

    patch.setattr(OaState, "documents", raising)


def fails_to_render(patch: pytest.MonkeyPatch) -> None:
    def raising(*_: Any) -> bytes:
        raise KeyError("planted")

    patch.setattr("pmagent.projections.oa.state.render", raising)


FAILURES = {"evolve": fails_to_fold, "documents": fails_to_give_documents, "render": fails_to_render}


def document(workspace: Path, *arguments: str) -> Any:
    """The answer of a command, whatever its exit code."""
    return pmagent(workspace, *arguments, "--format", "json").document


@pytest.fixture(params=FAILURES)
def plant(request: pytest.FixtureRequest) -> Callable[[pytest.MonkeyPatch], None]:
    """One of the ways to fail."""
    return FAILURES[request.param]


@pytest.mark.parametrize("late", [False, True])
def test_without_a_daemon(workspace: Path, plant: Callable[[pytest.MonkeyPatch], None], late: bool) -> None:
    if late:
        assert pmagent(workspace, "oa", "snapshot").code == 0
    before = (workspace / PATH).read_bytes() if (workspace / PATH).exists() else None
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        refused = pmagent(workspace, "oa", "snapshot", "--format", "json")
        assert refused.code == 70
        assert refused.document["success"] is False
        assert STATE in refused.document["error"]
        for _ in range(2):  # every later start works, and so does the stop switch
            assert pmagent(workspace, "pause", "--operator", "ada").code == 0
            assert pmagent(workspace, "resume", "--operator", "ada").code == 0
            assert pmagent(workspace, "pla", "disarm", "--operator", "ada").code in (0, 1)
        (stale,) = document(workspace, "status")["stale"]
        assert (stale["projection"], stale["error"]) == (STATE, "KeyError")
        assert "planted" not in str(stale)
        assert STATE in pmagent(workspace, "status").text
        looks = {check["name"]: check for check in document(workspace, "doctor")["checks"]}
        assert looks["documents"]["state"] == "fail"
        assert STATE in looks["documents"]["text"]
        boot = pmagent(workspace, "boot", "oa")
        assert boot.code == 70
        assert STATE in boot.errors
        guard = pmagent(workspace, "oa", "guard", "--name", "oa_state")
        assert guard.code != 0
        assert STATE in guard.errors
        assert pmagent(workspace, "oa", "guard", "--name", "log_integrity").code == 0
        rebuilt = pmagent(workspace, "rebuild", "--check", "--format", "json")
        assert rebuilt.code == 70
        assert rebuilt.document["ok"] is False
        assert [one["path"] for one in rebuilt.document["differences"] if one["state"] == "halted"] == [STATE]
        assert pmagent(workspace, "rebuild").code == 70
        if before is not None:
            assert (workspace / PATH).read_bytes() == before, "its last document stays"
        assert not (Layout(workspace).snapshot.exists() and not late), "no snapshot is taken of it"
    assert pmagent(workspace, "oa", "snapshot").code == 0
    assert document(workspace, "status")["stale"] == []
    assert noted_halts(workspace) == []
    assert pmagent(workspace, "oa", "guard", "--name", "oa_state").code == 0
    assert pmagent(workspace, "rebuild", "--check").code == 0


def test_with_a_daemon(workspace: Path, plant: Callable[[pytest.MonkeyPatch], None]) -> None:
    async def session() -> None:
        told: list[str] = []
        async with open_host(workspace, "daemon") as host:
            host.documents.on_halt = lambda halt: told.append(halt.projection)
            with anyio.fail_after(60):
                answer = await perform(host, "oa.snapshot", {"request": "oa.snapshot-1"})
                assert answer.exit_code == 70
                assert STATE in answer.document["error"]
                who = {"operator": "ada", "channel": "cli"}
                paused = await perform(host, "control.pause", {"request": "control.pause-1", **who})
                assert paused.document["paused"]
                resumed = await perform(host, "control.resume", {"request": "control.resume-1", **who})
                assert not resumed.document["paused"]
                (stale,) = (await perform(host, "status", {})).document["stale"]
                assert stale["projection"] == STATE
                rebuilt = await perform(host, "rebuild", {})
                assert rebuilt.exit_code == 70
                assert [one["projection"] for one in rebuilt.document["stale"]] == [STATE]
                with pytest.raises(Exception, match=STATE):
                    await perform(host, "boot.oa", {"request": "boot.oa-1"})

    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        anyio.run(session)
        assert [halt.projection for halt in noted_halts(workspace)] == [STATE]


def test_the_stop_switch_waits_for_no_document_that_cannot_be_written(workspace: Path) -> None:
    assert pmagent(workspace, "oa", "snapshot").code == 0
    folder = (workspace / PATH).parent
    folder.rename(folder.with_name("aside"))
    folder.write_text("no folder")
    for command in (("pause",), ("resume",)):
        done = pmagent(workspace, *command, "--operator", "ada")
        assert done.code == 0, done.errors
    assert document(workspace, "status")["paused"] is None


def test_two_projections_are_halted_apart(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_to_give_documents(monkeypatch)
    monkeypatch.setattr(RunFolders, "documents", OaState.documents)
    assert pmagent(workspace, "pause", "--operator", "ada").code == 0
    assert {one["projection"] for one in document(workspace, "status")["stale"]} == {STATE, "run_folders"}


def test_documents_that_a_daemon_has_still_to_write_are_no_difference(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PAUSE_FACTOR", "PAUSE_SECONDS_MAX"):  # nothing more is written before somebody waits for it
        monkeypatch.setattr(f"pmagent.service.writing.{name}", 1e9)
    with live_host(workspace) as live:
        assert pmagent(workspace, "oa", "snapshot").code == 0
        written = (workspace / PATH).read_bytes()
        summary = workspace / "share" / "REALITY_GREEN_SUMMARY.json"
        summary.write_text(summary.read_text().replace('"passed": true', '"passed": false', 1))
        kernel = live.host.runtime.engine.states
        before = kernel[WATCHER].mode
        live.run(live.host.until, lambda: kernel[WATCHER].mode != before)
        checked = pmagent(workspace, "rebuild", "--check")
        assert checked.code == 0, checked.text
        assert (workspace / PATH).read_bytes() != written, "the daemon had not written it yet"
        (workspace / PATH).write_bytes(written)
        checked = pmagent(workspace, "rebuild", "--check")
        assert (checked.code, live.host.writer.failed) == (1, False), "what somebody else changed, stays a difference"
        assert PATH in checked.text
