"""A workspace from init to snapshot with the real log: every guard passes, and fails for what it guards."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from pmagent.events.errors import NotFound
from pmagent.oa.guards.table import GUARDS, run_guard
from pmagent.projections.oa.state import PATH as STATE
from pmagent.service.operations import call
from pmagent.workspace.layout import Layout
from pmagent.workspace.surfaces import init_workspace, refresh_surfaces
from pmagent.workspace.trust import accept


@pytest.fixture
def living(tmp_path: Path) -> Path:
    """A new workspace, with its first snapshot taken."""
    subprocess.run(["git", "-C", str(tmp_path), "init", "-q", "-b", "trunk"], check=True)
    init_workspace(tmp_path)
    accept(tmp_path)
    assert call(tmp_path, "oa.snapshot").exit_code == 0
    return tmp_path


def failing(workspace: Path) -> set[str]:
    return {name for name in GUARDS if not run_guard(name, workspace).ok}


def test_after_init_and_snapshot_every_guard_passes(living: Path) -> None:
    assert failing(living) == set()


def test_after_refresh_a_snapshot_makes_every_guard_pass(living: Path) -> None:
    (living / ".pmagent/config.toml").write_text('[kernel]\nphase = "2"\n')
    refresh_surfaces(living)
    assert "oa_state" in failing(living)
    assert call(living, "oa.snapshot").exit_code == 0
    assert failing(living) == set()
    checks = json.loads((living / "share/REALITY_GREEN_SUMMARY.json").read_text())["checks"]
    assert [check["name"] for check in checks if check["passed"]][-1] == "Log Integrity"


def test_a_document_that_the_log_does_not_say_is_found(living: Path) -> None:
    state = (living / STATE).read_bytes()
    (living / STATE).write_bytes(state + b" ")
    assert failing(living) == {"projections"}
    (living / STATE).unlink()
    assert "projections" in failing(living)


def test_a_changed_bit_of_the_log_is_found(living: Path) -> None:
    (segment,) = Layout(living).log.glob("*.jsonl")
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    assert {"log_integrity"} <= failing(living) <= {"log_integrity", "projections"}
    refresh_surfaces(living)
    assert json.loads((living / "share/REALITY_GREEN_SUMMARY.json").read_text())["reality_green"] is False


def test_in_a_folder_that_is_no_workspace_nothing_is_begun(tmp_path: Path) -> None:
    answer = call(tmp_path, "oa.snapshot")
    assert answer.exit_code == 1
    assert answer.document["success"] is False
    assert answer.document["state"] is None
    assert "pmagent init" in answer.document["error"]
    with pytest.raises(NotFound):
        call(tmp_path, "boot.oa")
    assert list(tmp_path.iterdir()) == []
