"""``pmagent run`` when something fails around it: a reply is lost, the disk is full, another holds the log."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pmagent.events.lock import WriterLock
from pmagent.jobs import following
from pmagent.service.answer import Answer
from pmagent.service.client import HolderGone, call_daemon
from pmagent.service.operations import call
from pmagent.service.wire import RemoteError
from pmagent.workspace.layout import Layout
from tests.support.commands import PMAGENT, SECONDS, clean_environment, pmagent, spawn
from tests.support.daemons import running
from tests.support.started import QUICK, in_workspace, started

pytestmark = pytest.mark.slow

RUN = ("run", "Look around", "--plan", "plan.yaml", "--dry-run")


def events(workspace: Path, type: str) -> int:
    """How many of a type the log has."""
    return len(pmagent(workspace, "log", "tail", "-n", "all", "--type", type).lines)


@pytest.mark.parametrize("then", ["asks again", "in this process"])
def test_a_request_whose_reply_is_lost_is_one_run(workspace: Path, monkeypatch: pytest.MonkeyPatch, then: str) -> None:
    in_workspace(workspace, QUICK)
    asked: list[str] = []
    with running(workspace) as daemon:

        async def lossy(layout: Any, name: str, arguments: dict[str, Any], **_: Any) -> Answer:
            answer = await call_daemon(layout, name, arguments)
            asked.append(name)
            if len(asked) == 1:
                if then == "in this process":
                    daemon.end(signal.SIGKILL)
                raise HolderGone("went away before its answer")
            return answer

        monkeypatch.setattr(following, "call_daemon", lossy)
        done = pmagent(workspace, *RUN[:3], str(workspace / "plan.yaml"), "--dry-run", "--format", "json")
    assert done.code == 0, done.errors
    assert (done.document["state"], done.document["done"]) == ("done", 2)
    assert [events(workspace, type) for type in ("run.requested", "run.ended")] == [1, 1]
    assert asked[0] == "orchestra.run"


def test_a_full_disk_ends_the_command_with_what_is_known(workspace: Path) -> None:
    in_workspace(workspace, "\n".join(f"- {{task_id: t{n}, intent: x, tools: [echo]}}" for n in range(60)))
    limited = ["prlimit", "--fsize=60000", *PMAGENT, *RUN]
    done = subprocess.run(
        limited, cwd=workspace, env=clean_environment(), capture_output=True, check=False, timeout=SECONDS
    )
    assert (done.returncode, done.stdout) == (70, b"")
    error, hint = done.stderr.decode().splitlines()[-2:]
    assert error.startswith("error: writing the log failed (File too large")
    assert hint.startswith("hint: ")

    again = spawn(*RUN, cwd=workspace)
    assert again.code == 0, again.errors
    assert "taken up while this one runs" in again.errors
    assert spawn("log", "verify", cwd=workspace).code == 0


def test_a_run_that_waits_for_another_can_be_left_unrecorded_and_goes_on_when_that_has_ended(workspace: Path) -> None:
    in_workspace(workspace, QUICK)
    Layout(workspace).home.mkdir(parents=True)
    lock = WriterLock(Layout(workspace).evidence.locks[-1], "pid 1, orchestra.run")
    with started(workspace, *RUN) as run:
        run.until("waiting for its end")
        run.send(signal.SIGINT)
        done = run.end()
    assert (done.code, done.out) == (130, b"")
    assert "left as it is" not in done.errors
    assert not Layout(workspace).log.exists()
    with started(workspace, *RUN) as run:
        run.until("waiting for its end")
        lock.release()
        done = run.end()
    assert done.code == 0, done.errors


def test_what_stands_in_the_way_of_the_documents_is_said_before_anything_is_recorded(workspace: Path) -> None:
    in_workspace(workspace, QUICK)
    assert spawn(*RUN, cwd=workspace).code == 0
    (workspace / "jobs").rename(workspace / "jobs.aside")
    (workspace / "jobs").write_text("somebody's file")
    done = spawn(*RUN, cwd=workspace)
    assert done.code == 2, done.errors
    assert "jobs is no folder" in done.errors
    assert events(workspace, "run.requested") == 1


def test_what_another_program_asks_the_daemon_is_checked_there(workspace: Path) -> None:
    with running(workspace):
        for name in ("run", "cancel"):
            with pytest.raises(RemoteError) as caught:
                call(workspace, f"orchestra.{name}", {"run_id": "x"})
            assert caught.value.exit_code == 2, name
        assert pmagent(workspace, "status").code == 0
    assert events(workspace, "run.*") == 0
