"""A command that waits for an outcome stops waiting when the daemon that typed it dies, and keeps no daemon from
starting: a daemon has a line, and finds out."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from pmagent.service.answer import OutcomeOpen
from pmagent.service.operations import call
from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, clean_environment
from tests.support.daemons import running
from tests.support.pla_live import Device, asked, await_event, configure, end_of_log, pla


def outcome(workspace: Path, proposal_id: str) -> tuple[int, str]:
    """How a proposal ended: exit code, and the word for it."""
    answer = call(workspace, "pla.outcome", {"proposal_id": proposal_id})
    return answer.exit_code, answer.document["outcome"]


def test_without_a_daemon_an_outcome_is_read_and_not_waited_for(workspace: Path) -> None:
    configure(workspace)
    pla(workspace, "mode", "SUGGEST")
    name = asked(workspace, "propose", "type: ls")["proposal_id"]
    end = end_of_log(workspace)
    with pytest.raises(OutcomeOpen) as told:
        outcome(workspace, name)
    assert told.value.exit_code == 6
    assert told.value.hint.endswith(f"pmagent pla show {name}")
    assert end_of_log(workspace) == end, "nothing is recorded, and the log is held by nobody"
    pla(workspace, "reject", name, "--reason", "no")
    assert outcome(workspace, name) == (1, "rejected")
    name = asked(workspace, "propose", "type: pwd")["proposal_id"]
    pla(workspace, "approve", name, "--digest", asked(workspace, "show")["digest"])
    assert outcome(workspace, name) == (0, "recorded")


@pytest.mark.slow
def test_a_daemon_that_is_killed_while_it_types_leaves_the_finding_out_to_the_next(
    workspace: Path, tmp_path: Path
) -> None:
    link = workspace.parent / "device"
    configure(workspace, device=str(link))
    device = Device(link, tmp_path / "typed.txt")
    try:
        with running(workspace) as daemon:
            await_event(workspace, "hid.linked")
            for step in (("mode", "SUGGEST"), ("mode", "EXECUTE"), ("arm",)):
                pla(workspace, *step)
            long = asked(workspace, "propose", f"type: {'go on ' * 150}")
            device.pass_over()
            approving = warm.Popen(
                [*PMAGENT, "pla", "approve", long["proposal_id"], "--digest", long["digest"]],
                cwd=workspace, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            device.wait(lambda told: bool(told.get("text")))
            daemon.end(signal.SIGKILL)
            _, errors = approving.communicate(timeout=SECONDS)
            assert approving.returncode == 6
            assert "no daemon that could tell" in errors
        with running(workspace) as daemon:
            await_event(workspace, "pla.executed")
            told = asked(workspace, "show", long["proposal_id"])
            assert told["outcome"] == "aborted", "the device remembers, and was asked"
            assert daemon.end()[0] == 0
    finally:
        device.close()
    assert 0 < len(device.typed) < len("go on " * 150)
