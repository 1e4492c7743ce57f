"""The three real workspaces: what the rules of docs/design.md §12 say comes out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pmagent.actors.kernel.mode import judge
from pmagent.actors.kernel.reader import read_surfaces
from pmagent.contracts.oa_documents import LogPlace
from pmagent.oa import tools
from pmagent.projections.oa.state import PATH, render, state_document

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "guards" / "guard_oa_state.py"
MODE = {"coherent_green": "NORMAL", "coherent_red": "DEGRADED", "incoherent_bootstrap": "DEGRADED"}
COHERENT = {"coherent_green", "coherent_red"}


def run_guard(workspace: Path, mode: str) -> subprocess.CompletedProcess[str]:
    """The guard as its users run it, from another directory."""
    environment = {**os.environ, "PMAGENT_WORKSPACE": str(workspace)}
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--mode", mode], capture_output=True, text=True, cwd="/", env=environment,
        check=False,
    )


def test_the_mode_is_as_ruled(real_workspace: Path) -> None:
    judged = judge(read_surfaces(real_workspace).surfaces)
    assert judged.mode == MODE[real_workspace.name]
    assert judged.complete
    assert judged.phase == "24"
    assert tools.kernel_status(real_workspace)["mode"] == judged.mode


@pytest.mark.parametrize("own_state", [False, True])
@pytest.mark.parametrize("mode", ["STRICT", "HINT"])
def test_the_guard_passes_what_is_coherent(real_workspace: Path, mode: str, own_state: bool) -> None:
    """With the STATE.json that came with the workspace, and with ours."""
    if own_state:
        place = LogPlace(log_id="0" * 32, position=2, sum="0" * 64)
        document = state_document(read_surfaces(real_workspace), "2026-11-21T18:00:00.000000Z", place)
        assert document is not None
        (real_workspace / PATH).write_bytes(render(document))
    done = run_guard(real_workspace, mode)
    answer = json.loads(done.stdout)
    coherent = real_workspace.name in COHERENT
    assert answer["ok"] is coherent
    assert answer["mode"] == mode
    assert done.returncode == (0 if coherent or mode == "HINT" else 1)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
    if not coherent:
        assert [mismatch["check"] for mismatch in answer["mismatches"]] == ["reality"]


def test_our_state_says_what_theirs_said(real_workspace: Path) -> None:
    theirs = json.loads((real_workspace / PATH).read_text())
    place = LogPlace(log_id="0" * 32, position=2, sum="0" * 64)
    document = state_document(read_surfaces(real_workspace), "2026-11-21T18:00:00.000000Z", place)
    assert document is not None
    ours = json.loads(render(document))
    for key in (
        "version", "source", "branch", "current_phase", "last_completed_phase", "reality_green", "checks_summary",
        "dms_hint_summary", "surfaces", "oa_context",
    ):
        assert ours[key] == theirs[key], key


def test_the_guard_without_arguments_is_strict_and_a_wrong_mode_is_a_usage_error(tmp_path: Path) -> None:
    assert run_guard(tmp_path, "STRICT").returncode == 1
    assert run_guard(tmp_path, "HINT").returncode == 0
    assert run_guard(tmp_path, "LENIENT").returncode == 2
