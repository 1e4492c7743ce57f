"""Two interrupts while the engine is in the midst of a reaction: the command ends, and the log is valid and opens
again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pmagent.actors.known import blob_check
from pmagent.events.verify import verify_log
from pmagent.workspace.layout import Layout
from tests.support.commands import SECONDS, pmagent
from tests.support.logged import history

HANGING = Path(__file__).with_name("interrupt_engine.py")


def types(workspace: Path) -> list[str]:
    return [event.type for event in history(workspace)]


@pytest.mark.parametrize(
    ("where", "command"),
    [("oa.snapshot_requested", ("oa", "snapshot")), ("kernel.observed", ("oa", "snapshot")),
     ("control.pause_requested", ("pause", "--operator", "ada"))],
)
def test_the_log_ends_with_what_was_whole(workspace: Path, where: str, command: tuple[str, ...]) -> None:
    assert pmagent(workspace, "status").code == 0
    process = subprocess.Popen(
        [sys.executable, str(HANGING), where, str(workspace), *command], cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"in\n"
        process.send_signal(signal.SIGINT)  # the first asks for an orderly end, which this reaction does not hear
        assert process.stdout.readline() == b"heard\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode in (130, -signal.SIGINT, 70), errors
    assert verify_log(str(Layout(workspace).log), blobs=blob_check(Layout(workspace).store.blobs())).ok
    left = types(workspace)
    assert where not in left
    assert "daemon.stopped" not in left, "an orderly stop would say something that is not so"
    done = pmagent(workspace, *command)
    assert done.code == 0, done.errors
    assert types(workspace)[-1] == "daemon.stopped"
