"""A workspace that others misuse: things where they should not be, requests without sense, many commands at once."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from pmagent.events.errors import PmagentError
from pmagent.events.verify import verify_log
from pmagent.oa.guards.table import run_guard
from pmagent.projections.oa.state import PATH as STATE
from pmagent.projections.rebuild import check_documents
from pmagent.service.operations import call
from pmagent.service.wire import RemoteError
from pmagent.workspace.layout import Layout
from tests.support.daemons import running

SUMMARY = "share/REALITY_GREEN_SUMMARY.json"


def test_commands_at_the_same_time_take_turns_without_a_daemon(workspace: Path) -> None:
    """A command that finds the log held by another waits for it to end, instead of giving up."""
    call(workspace, "oa.snapshot")
    names = ["oa.snapshot", "boot.oa", "status"] * 3
    with ThreadPoolExecutor(len(names)) as pool:
        answers = list(pool.map(lambda name: call(workspace, name), names))
    assert [answer.exit_code for answer in answers] == [0] * len(names)
    assert verify_log(str(Layout(workspace).log)).ok
    assert len(call(workspace, "status").document["sessions"]) == 3


def test_a_command_that_meets_a_daemon_stopping_does_its_work_itself(workspace: Path) -> None:
    with running(workspace) as daemon, ThreadPoolExecutor(1) as pool:
        ending = pool.submit(daemon.end)
        while not ending.done():
            assert call(workspace, "oa.snapshot").exit_code == 0
        assert ending.result()[0] == 0
    assert check_documents(workspace) == []


def test_without_a_share_folder_a_snapshot_is_refused_with_reasons_and_the_next_one_is_taken(workspace: Path) -> None:
    call(workspace, "oa.snapshot")
    shutil.move(workspace / "share", workspace / "aside")
    (workspace / "share").write_text("I am no folder")

    answer = call(workspace, "oa.snapshot")
    assert (answer.exit_code, answer.document["success"]) == (1, False)
    assert SUMMARY in answer.document["error"]
    assert call(workspace, "boot.oa").document["mode"] == "BLOCKED"
    assert [found.state for found in check_documents(workspace)] == ["missing"]
    assert run_guard("projections", workspace).missing_surfaces == [STATE]

    (workspace / "share").unlink()
    shutil.move(workspace / "aside", workspace / "share")
    assert call(workspace, "oa.snapshot").exit_code == 0
    assert check_documents(workspace) == []


def test_a_document_that_cannot_be_read_is_a_difference_and_no_damage_of_the_log(workspace: Path) -> None:
    call(workspace, "oa.snapshot")
    (workspace / STATE).unlink()
    (workspace / STATE).mkdir()
    assert [(found.state, found.found) for found in check_documents(workspace)] == [("unreadable", "EISDIR")]
    report = run_guard("projections", workspace)
    assert not report.ok
    assert report.diagnostics[0].category == "config_drift"


def test_a_cache_that_can_neither_be_read_nor_written_stands_in_nobodys_way(workspace: Path) -> None:
    call(workspace, "oa.snapshot")
    cache = Layout(workspace).snapshot
    cache.unlink()
    cache.mkdir()
    assert call(workspace, "oa.snapshot").exit_code == 0
    assert call(workspace, "status").document["mode"] == "NORMAL"


def test_a_summary_of_many_failed_checks_degrades_and_halts_nobody(workspace: Path) -> None:
    checks = [{"name": f"check {n}", "passed": False, "message": ""} for n in range(20_000)]
    (workspace / SUMMARY).write_text(json.dumps({"reality_green": False, "checks": checks}))
    assert call(workspace, "oa.snapshot").exit_code == 0
    status = call(workspace, "status").document
    assert (status["mode"], status["halted"]) == ("DEGRADED", [])


SCOPE = {"action": "diagnostic", "subject": "s", "holder": "h"}


SENSELESS: list[dict[str, Any]] = [
    {}, SCOPE | {"uses": []}, SCOPE | {"uses": 1.5}, SCOPE | {"seconds": None}, SCOPE | {"seconds": "nan"},
    SCOPE | {"subject": 5}, SCOPE | {"colour": "red"}, SCOPE | {"request": 5},
]


def test_a_request_that_makes_no_sense_is_its_senders_mistake_and_not_the_daemons_end(workspace: Path) -> None:
    with running(workspace):
        for arguments in SENSELESS:
            with pytest.raises(RemoteError) as caught:
                call(workspace, "oa.permit", arguments)
            assert caught.value.exit_code == 2, arguments
            assert call(workspace, "status").document["running"] is True, arguments


@pytest.mark.parametrize("live", [False, True], ids=["without a daemon", "with a daemon"])
def test_a_document_that_cannot_be_written_is_said_at_once_and_mended_later(workspace: Path, live: bool) -> None:
    """Neither does anybody wait for ever, nor is a state printed that is not in the file."""
    call(workspace, "oa.snapshot")
    with running(workspace) if live else nullcontext() as daemon:
        call(workspace, "oa.snapshot")  # what the start led to is written then
        (workspace / STATE).unlink()
        (workspace / STATE).symlink_to("/nowhere")
        with pytest.raises(PmagentError, match="symbolic link"):
            call(workspace, "oa.snapshot")
        if daemon is not None:
            code, errors = daemon.wait()
            assert (code, "symbolic link" in errors) == (1, True)
            assert b'"reason":"error"' in next(Layout(workspace).log.glob("*.jsonl")).read_bytes()
    (workspace / STATE).unlink()
    assert call(workspace, "oa.snapshot").exit_code == 0
    assert check_documents(workspace) == []
    assert verify_log(str(Layout(workspace).log)).ok


def test_what_a_link_leads_to_outside_the_workspace_is_not_shown(workspace: Path, tmp_path: Path) -> None:
    """A repository may bring such a link along; the log and STATE.json are read by more people than the file."""
    (tmp_path / "private.json").write_text('{"context": {"note": "for my eyes only"}}')
    context = workspace / "share/oa/CONTEXT.json"
    context.unlink()
    context.symlink_to(tmp_path / "private.json")
    assert call(workspace, "oa.snapshot").document["state"]["oa_context"] == {}
    segments = list(Layout(workspace).log.glob("*.jsonl"))
    assert not any(b"for my eyes only" in path.read_bytes() for path in [*segments, workspace / STATE])
    assert any(b"a link leads out of the workspace" in path.read_bytes() for path in segments)


def test_a_required_surface_outside_the_workspace_blocks(workspace: Path, tmp_path: Path) -> None:
    shutil.move(workspace / SUMMARY, tmp_path / "summary.json")
    (workspace / SUMMARY).symlink_to(tmp_path / "summary.json")
    assert call(workspace, "oa.snapshot").document["success"] is False
    assert call(workspace, "status").document["mode"] == "BLOCKED"
    (workspace / SUMMARY).unlink()
    shutil.move(tmp_path / "summary.json", workspace / "summary.json")
    (workspace / SUMMARY).symlink_to(workspace / "summary.json")
    assert call(workspace, "oa.snapshot").exit_code == 0, "a link within it is as good as the file"
