"""``pmagent init`` and ``pmagent kernel refresh``: coherent at once, nothing of others lost, nothing done twice."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pmagent.actors.kernel.mode import judge
from pmagent.actors.kernel.reader import read_surfaces
from pmagent.contracts.oa_documents import LogPlace
from pmagent.events.errors import PmagentError
from pmagent.oa.guards.table import run_guard
from pmagent.projections.oa.state import PATH as STATE
from pmagent.projections.oa.state import render, state_document
from pmagent.workspace import git
from pmagent.workspace import surfaces as workspace_surfaces
from pmagent.workspace.errors import WorkspaceError
from pmagent.workspace.surfaces import init_workspace, refresh_surfaces

NOW = "2026-11-21T18:00:00.000000Z"
LATER = "2026-11-21T19:00:00.000000Z"
BOOTSTRAP = "share/PM_BOOTSTRAP_STATE.json"
REALITY = "share/REALITY_GREEN_SUMMARY.json"
SSOT = "share/SSOT_SURFACE_V17.json"
HANDOFF = "share/HANDOFF_KERNEL.json"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody writes these files but the test: no need to wait for quiet."""
    monkeypatch.setattr("pmagent.actors.kernel.reader.QUIET_S", 0.0)
    monkeypatch.setattr("pmagent.actors.kernel.reader.WAIT_S", 0.0)


def run_git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    return subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """An empty git repository on branch trunk."""
    run_git(tmp_path, "init", "-q", "-b", "trunk")
    return tmp_path


def load(workspace: Path, path: str) -> Any:
    return json.loads((workspace / path).read_text())


def change(workspace: Path, path: str, **changes: Any) -> None:
    (workspace / path).write_text(json.dumps(load(workspace, path) | changes))


def mode(workspace: Path) -> str:
    return judge(read_surfaces(workspace).surfaces).mode


def snapshot(workspace: Path) -> None:
    place = LogPlace(log_id="0" * 32, position=1, sum="0" * 64)
    document = state_document(read_surfaces(workspace), NOW, place)
    assert document is not None
    (workspace / STATE).parent.mkdir(exist_ok=True)
    (workspace / STATE).write_bytes(render(document))


def contents(workspace: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in workspace.rglob("*.json")}


def test_init_writes_a_coherent_set_from_git(repository: Path) -> None:
    created = init_workspace(repository, now=NOW)
    assert sorted(created) == sorted(
        [".pmagent/config.toml", ".pmagent/.gitignore", BOOTSTRAP, REALITY, SSOT, HANDOFF, "share/oa/CONTEXT.json"]
    )
    judged = judge(read_surfaces(repository).surfaces)
    assert (judged.mode, judged.phase, judged.branch) == ("NORMAL", "1", "trunk")
    snapshot(repository)
    assert run_guard("oa_state", repository).ok
    assert (repository / ".pmagent").stat().st_mode & 0o777 == 0o700


def test_init_again_touches_nothing(repository: Path) -> None:
    init_workspace(repository, now=NOW)
    change(repository, SSOT, current_phase="7")
    before = contents(repository)
    assert init_workspace(repository, now=LATER) == []
    assert contents(repository) == before


def test_init_completes_what_others_began(repository: Path) -> None:
    """The surfaces that it adds fit those that are there, whose phase and version count."""
    (repository / "share").mkdir()
    (repository / "share/SSOT_SURFACE_V18.json").write_text('{"current_phase": "28B", "mine": [null]}')
    (repository / ".pmagent").mkdir()
    (repository / ".pmagent/config.toml").write_text("[kernel]\n")
    created = init_workspace(repository, now=NOW)
    assert SSOT not in created
    assert load(repository, "share/SSOT_SURFACE_V18.json") == {"current_phase": "28B", "mine": [None]}
    assert load(repository, BOOTSTRAP)["meta"]["current_phase"] == "28B"
    assert (repository / ".pmagent/config.toml").read_text() == "[kernel]\n"
    assert mode(repository) == "NORMAL"


@pytest.mark.parametrize("function", [init_workspace, refresh_surfaces])
def test_without_a_git_repository_nothing_is_written(function: Any, tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="not in a git repository"):
        function(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_branch_is_gits_also_unborn_and_detached(repository: Path) -> None:
    assert git.branch(repository) == "trunk"
    run_git(repository, "commit", "-q", "--allow-empty", "-m", "one")
    run_git(repository, "switch", "-q", "-c", "feat/größer")
    assert git.branch(repository) == "feat/größer"
    run_git(repository, "checkout", "-q", "--detach")
    commit = run_git(repository, "rev-parse", "--short=12", "HEAD")
    assert git.branch(repository) == f"detached@{commit}"


def test_another_repository_in_the_environment_is_not_asked(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("other")
    run_git(other, "init", "-q", "-b", "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert git.branch(repository) == "trunk"


def test_refresh_follows_branch_and_phase_and_once_is_enough(repository: Path) -> None:
    init_workspace(repository, now=NOW)
    snapshot(repository)
    run_git(repository, "switch", "-q", "-c", "next")
    (repository / ".pmagent/config.toml").write_text('[kernel]\nphase = 2\nlast_completed_phase = "1B"\n')
    assert refresh_surfaces(repository, now=LATER) == [SSOT, HANDOFF, REALITY, BOOTSTRAP]
    first = contents(repository)
    judged = judge(read_surfaces(repository).surfaces)
    assert (judged.mode, judged.phase, judged.branch) == ("NORMAL", "2", "next")
    refresh_surfaces(repository, now=LATER)
    assert contents(repository) == first
    assert not run_guard("oa_state", repository).ok, "STATE.json is still the old one"
    snapshot(repository)
    assert run_guard("oa_state", repository).ok


def test_a_stale_state_has_no_say_in_what_is_refreshed(repository: Path) -> None:
    init_workspace(repository, now=NOW)
    snapshot(repository)
    change(repository, STATE, reality_green=False, branch="old", oa_tools=None)
    change(repository, REALITY, checks=[{"name": "OA State", "passed": False, "message": "stale"}])
    refresh_surfaces(repository, now=LATER)
    assert mode(repository) == "NORMAL"


def test_a_failed_check_of_others_stays_and_keeps_the_kernel_red(repository: Path) -> None:
    init_workspace(repository, now=NOW)
    checks = load(repository, REALITY)["checks"]
    theirs = [{"name": "AGENTS.md Sync", "passed": True, "message": ""}, {"name": "Backup", "passed": False}, None]
    change(repository, REALITY, checks=[*theirs, *checks], reality_green=True, extra="kept")
    refresh_surfaces(repository, now=LATER)
    reality = load(repository, REALITY)
    assert [check["name"] for check in reality["checks"][:2]] == ["AGENTS.md Sync", "Backup"]
    assert (reality["reality_green"], reality["extra"]) == (False, "kept")
    assert load(repository, BOOTSTRAP)["health"] == {"reality_green": False, "source": REALITY, "agents_sync_ok": True}
    assert mode(repository) == "DEGRADED"


def test_refresh_mends_an_incoherent_kernel_and_keeps_what_it_does_not_compute(repository: Path) -> None:
    init_workspace(repository, now=NOW)
    change(repository, BOOTSTRAP, health={"reality_green": False, "agents_sync_ok": "?"}, notes=["mine"], phases={})
    change(repository, HANDOFF, mode="NORMAL", branch="old", health=None)
    change(repository, SSOT, current_phase=None, phases={"current": "1", "notes": "n"}, dms={"x": 1})
    refresh_surfaces(repository, now=LATER)
    assert mode(repository) == "NORMAL"
    assert load(repository, BOOTSTRAP)["notes"] == ["mine"]
    assert load(repository, HANDOFF)["mode"] == "NORMAL"
    assert load(repository, SSOT)["phases"] == {"current": 1, "notes": "n"}
    assert load(repository, SSOT)["dms"] == {"x": 1}


def test_refresh_restores_a_missing_surface(repository: Path) -> None:
    init_workspace(repository, now=NOW)
    (repository / REALITY).unlink()
    refresh_surfaces(repository, now=LATER)
    assert mode(repository) == "NORMAL"


@pytest.mark.parametrize("broken", ["{", "[]", ""])
def test_a_broken_surface_is_named_and_nothing_is_written(repository: Path, broken: str) -> None:
    init_workspace(repository, now=NOW)
    (repository / SSOT).write_text(broken)
    before = contents(repository)
    with pytest.raises(WorkspaceError, match="SSOT_SURFACE_V17"):
        refresh_surfaces(repository, now=LATER)
    assert contents(repository) == before


def test_the_summary_is_written_last_but_one_and_the_bootstrap_last(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init_workspace(repository, now=NOW)
    written: list[str] = []
    monkeypatch.setattr(workspace_surfaces, "write_atomic", lambda path, _: written.append(path.name))
    refresh_surfaces(repository, now=LATER)
    assert written[-2:] == [os.path.basename(REALITY), os.path.basename(BOOTSTRAP)]


@pytest.mark.parametrize(
    "settings", ["[kernel", "kernel = 1", "[kernel]\nphase = true", '[kernel]\nphase = " "', "[kernel]\nphase = []"]
)
def test_a_configuration_that_cannot_be_understood_is_an_error(repository: Path, settings: str) -> None:
    init_workspace(repository, now=NOW)
    (repository / ".pmagent/config.toml").write_text(settings)
    with pytest.raises(PmagentError, match=r"config\.toml"):
        refresh_surfaces(repository)


def test_refreshing_a_real_workspace_makes_it_coherent(real_workspace: Path) -> None:
    run_git(real_workspace, "init", "-q", "-b", "feat/phase28c-cleanup")
    refresh_surfaces(real_workspace, now=NOW)
    red = real_workspace.name == "coherent_red"
    assert mode(real_workspace) == ("DEGRADED" if red else "NORMAL")
    codes = {reason.code for reason in judge(read_surfaces(real_workspace).surfaces).reasons}
    assert codes == ({"reality_not_green", "check_failed"} if red else set())
    snapshot(real_workspace)
    assert run_guard("oa_state", real_workspace).ok


def test_surfaces_are_not_written_through_a_link_out_of_the_workspace(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (repository / "share").symlink_to(outside)
    for command in (init_workspace, refresh_surfaces):
        with pytest.raises(WorkspaceError, match="a link leads out of the workspace"):
            command(repository)
    assert list(outside.iterdir()) == []


def test_something_that_is_no_folder_in_the_way_is_named(repository: Path) -> None:
    (repository / "share").write_text("")
    with pytest.raises(WorkspaceError, match="no folder"):
        refresh_surfaces(repository)


def test_one_refresh_is_enough_when_the_phases_were_half_broken(repository: Path) -> None:
    """Parts of a broken SSOT surface that can be understood count in the first run, not only in the second."""
    init_workspace(repository, now=NOW)
    broken = load(repository, SSOT) | {"phases": [1], "current_phase": None, "last_completed_phase": "23"}
    (repository / SSOT).write_text(json.dumps(broken))
    refresh_surfaces(repository, now=NOW)
    once = {path: path.read_bytes() for path in (repository / "share").rglob("*.json")}
    assert load(repository, SSOT)["phases"] == {"current": 1, "last_completed": 23}
    refresh_surfaces(repository, now=NOW)
    assert {path: path.read_bytes() for path in once} == once


PHASED = ("share/SSOT_SURFACE_V17.json", "share/PM_BOOTSTRAP_STATE.json", "share/HANDOFF_KERNEL.json")


@pytest.mark.parametrize("kept", PHASED)
def test_the_phase_of_surfaces_that_are_there_stays(repository: Path, kept: str) -> None:
    init_workspace(repository, now=NOW)
    for path in PHASED:
        content = json.loads((repository / path).read_text().replace('"1"', '"28B"'))
        content.get("phases", {}).pop("current", None)
        (repository / path).write_text(json.dumps(content))
        if path != kept:
            (repository / path).unlink()
    (repository / ".pmagent" / "config.toml").unlink()

    init_workspace(repository, now=NOW)
    refresh_surfaces(repository, now=NOW)

    assert mode(repository) == "NORMAL"
    assert judge(read_surfaces(repository).surfaces).phase == "28B"
    assert 'phase = "28B"' in (repository / ".pmagent" / "config.toml").read_text()


def test_a_broken_context_is_left_to_its_writer_and_keeps_nobody_from_the_rest(repository: Path) -> None:
    init_workspace(repository, now=NOW)
    context = repository / "share" / "oa" / "CONTEXT.json"
    context.write_text('{"context": ')
    change(repository, "share/PM_BOOTSTRAP_STATE.json", branch="another")

    written = refresh_surfaces(repository, now=NOW)

    assert mode(repository) == "NORMAL"
    assert "share/oa/CONTEXT.json" not in written
    assert context.read_text() == '{"context": '


def test_a_context_written_while_surfaces_are_computed_stays(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init_workspace(repository, now=NOW)
    context = repository / "share/oa/CONTEXT.json"
    context.unlink()
    compute = workspace_surfaces._computed

    def meanwhile(*given: Any) -> Any:
        context.write_text('{"active_goal": "theirs"}')
        return compute(*given)

    monkeypatch.setattr(workspace_surfaces, "_computed", meanwhile)
    refresh_surfaces(repository, now=LATER)
    assert context.read_text() == '{"active_goal": "theirs"}'
