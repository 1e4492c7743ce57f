"""Where no sandbox can be made, no run begins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pmagent.workspace.layout import Layout
from tests.support import warm

PLAN = "- {task_id: one, intent: x, tools: [echo]}\n"


def run(workspace: Path, path: str, *more: str) -> subprocess.CompletedProcess[str]:
    """``pmagent run`` with this search path."""
    (workspace / "plan.yaml").write_text(PLAN)
    command = [sys.executable, "-I", "-m", "pmagent", "--workspace", str(workspace), "run", "x", *more]
    environment = {**os.environ, "PATH": path}
    return warm.run(
        [*command, "--plan", str(workspace / "plan.yaml")], env=environment, capture_output=True, text=True, check=False
    )


def test_without_bubblewrap_no_run_is_recorded_and_the_package_is_named(workspace: Path, tmp_path: Path) -> None:
    done = run(workspace, str(tmp_path / "empty"))
    assert done.returncode == 1
    assert "bubblewrap is not installed" in done.stderr
    assert "apt-get install bubblewrap" in done.stderr
    log = b"".join(path.read_bytes() for path in Layout(workspace).log.glob("*.jsonl"))
    assert b"run.requested" not in log
    assert not (workspace / "runs").exists()


def test_what_starts_nothing_needs_none(workspace: Path, tmp_path: Path) -> None:
    assert run(workspace, str(tmp_path / "empty"), "--dry-run").returncode == 0
    assert run(workspace, str(tmp_path / "empty"), "--plan-only").returncode == 0
