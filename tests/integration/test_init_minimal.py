"""A workspace without kernel surfaces (``pmagent init --minimal``), by its commands."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import Ran, invoke, pmagent
from tests.support.sandboxes import needs_sandbox

STATE = "share/orchestrator_assistant/STATE.json"
NONE = "no kernel surfaces: mode is not computed"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)  # tools of root's commands run as somebody else
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    assert pmagent(tmp_path, "init", "--minimal").code == 0
    return tmp_path


def codes(done: Ran) -> list[str]:
    return [reason["code"] for reason in done.document["reasons"]]


@needs_sandbox
def test_a_minimal_workspace_works_without_surfaces(bare: Path) -> None:
    assert not (bare / "share").exists()
    assert pmagent(bare, "run", "look", "--plan", str(bare / "plan.yaml")).code == 0
    assert NONE in pmagent(bare, "status").text
    assert codes(pmagent(bare, "status", "--format", "json")) == ["no_surfaces"]
    assert pmagent(bare, "oa", "snapshot", "--format", "json").document["state"]["kernel_surfaces"] == "none"
    assert pmagent(bare, "boot", "oa").code == 0
    assert pmagent(bare, "oa", "guard", "--mode", "STRICT").code == 0
    assert NONE in pmagent(bare, "doctor").text
    assert pmagent(bare, "replay").code == 0
    assert pmagent(bare, "rebuild", "--check").code == 0
    assert pmagent(bare, "init").code == 0
    assert not (bare / "share/PM_BOOTSTRAP_STATE.json").exists(), "init respects the setting"


def test_init_names_the_plan_as_the_current_folder_reaches_it(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = bare / "a folder"
    below.mkdir()
    for folder, plan in ((bare, "plan.yaml"), (below, "../plan.yaml"), (bare.parent, str(bare / "plan.yaml"))):
        monkeypatch.chdir(folder)
        assert f"--plan {plan};" in pmagent(bare, "init").errors
    monkeypatch.chdir(below)
    missing = pmagent(bare, "run", "x", "--plan", "plan.yaml")
    assert (missing.code, "--plan ../plan.yaml" in missing.errors) == (2, True)
    nowhere = pmagent(bare, "run", "x", "--plan", "other.yaml")
    assert (nowhere.code, "../other.yaml" in nowhere.errors) == (2, False)


def test_init_does_not_say_that_there_was_nothing_to_do_where_it_changed_what_git_ignores(bare: Path) -> None:
    assert "nothing to do" in pmagent(bare, "init").text
    ignored = pmagent(bare, "init", "--ignore")
    assert ("nothing to do" in ignored.text, "ignored by git" in ignored.errors) == (False, True)
    assert "nothing to do" in pmagent(bare, "init", "--ignore").text


def test_one_command_outside_a_workspace_leads_to_init(tmp_path: Path) -> None:
    done = pmagent(tmp_path, "run", "--", "make")
    assert done.code == 1
    assert "pmagent init" in done.errors
    assert "whitelist_tools" not in done.errors


def test_reasons_of_a_refused_command_are_told_apart(bare: Path) -> None:
    config = bare / ".pmagent/config.toml"
    config.write_text(config.read_text().replace('surfaces = "none"', 'surfaces = "required"'))
    done = pmagent(bare, "run", "--", "echo", "hi")
    assert done.code == 1
    assert "is missing; share/" in done.errors
    assert "is missing: share/" not in done.errors
    assert "pmagent init" in done.errors


def test_a_minimal_workspace_that_had_surfaces_is_blocked_without_them(bare: Path) -> None:
    """Also after the log's next start, and whatever STATE.json says."""
    assert pmagent(bare, "oa", "snapshot").code == 0
    surface = bare / "share/HANDOFF_KERNEL.json"
    surface.write_text("{}")
    assert pmagent(bare, "oa", "snapshot").code == 1
    surface.unlink()
    assert pmagent(bare, "oa", "snapshot").code == 1
    status = pmagent(bare, "status", "--format", "json")
    assert (status.document["mode"], codes(status)[0]) == ("BLOCKED", "surfaces_lost")


def test_the_setting_counts_only_in_an_accepted_file(bare: Path) -> None:
    config = bare / ".pmagent/config.toml"
    config.write_text(config.read_text().replace('surfaces = "none"', 'surfaces = "required"'))
    assert pmagent(bare, "trust", "--yes").code == 0
    refused = pmagent(bare, "oa", "snapshot", environ={"PMAGENT_KERNEL_SURFACES": "none"})
    assert refused.code == 1, "no variable sets it"
    config.write_text(config.read_text().replace('surfaces = "required"', 'surfaces = "none"'))
    refused = invoke("oa", "snapshot", "--workspace", str(bare))
    assert refused.code != 0, "nobody has accepted the change"
    assert pmagent(bare, "oa", "snapshot").code == 0


def test_nothing_writes_surfaces_into_a_minimal_workspace(bare: Path) -> None:
    refused = pmagent(bare, "kernel", "refresh")
    assert refused.code == 2
    assert ".pmagent/config.toml" in refused.errors
    assert not (bare / "share").exists()


def test_minimal_is_refused_where_there_are_surfaces_or_other_settings(bare: Path) -> None:
    (bare / ".pmagent/config.toml").write_text("[kernel]\n")
    refused = pmagent(bare, "init", "--minimal")
    assert refused.code == 2
    assert 'surfaces = "none"' in refused.errors
    (bare / ".pmagent/config.toml").unlink()
    (bare / "share").mkdir()
    (bare / "share/HANDOFF_KERNEL.json").write_text("{}")
    refused = pmagent(bare, "init", "--minimal")
    assert refused.code == 2
    assert not (bare / ".pmagent/config.toml").exists()


def test_the_doctor_leads_to_init_where_nothing_is_yet(tmp_path: Path) -> None:
    found = pmagent(tmp_path, "doctor", "--format", "json").document["checks"]
    surfaces = next(check for check in found if check["name"] == "surfaces")
    assert (surfaces["state"], surfaces["remedy"]) == ("warn", "pmagent init")


def test_a_decision_does_not_advise_what_would_write_nothing(bare: Path) -> None:
    warned = pmagent(bare, "oa", "decision", "Write the manual").document["warnings"]
    assert any("config.toml" in warning for warning in warned)
    assert not any(warning.startswith("to mend it: pmagent init") for warning in warned)


def test_init_says_that_the_log_is_gone(bare: Path) -> None:
    assert pmagent(bare, "oa", "snapshot").code == 0
    shutil.rmtree(bare / ".pmagent/data/log")
    told = pmagent(bare, "init").errors
    assert "--new-log" in told
    assert "next:" not in told, "a run would be refused"
    assert "next:" in pmagent(bare, "init", "--new-log").errors


def test_a_name_that_is_nearly_right_leads_on(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bare)
    assert "plan.yaml" in pmagent(bare, "run", "x", "--plan", "plan.yml").errors
    for typed, meant in (("stop", "down"), ("start", "up"), ("gc", "prune")):
        ran = pmagent(bare, typed)
        assert (ran.code, f"did you mean {meant}?" in ran.errors) == (2, True)


@needs_sandbox
def test_a_red_run_names_the_command_that_shows_what_it_wrote(bare: Path) -> None:
    (bare / "bad.yaml").write_text("[{task_id: a, intent: x, tools: [cat], inputs: {args: [/nosuch]}}]")
    ran = pmagent(bare, "run", "x", "--plan", str(bare / "bad.yaml"))
    assert ran.code == 1
    (command,) = (line.split(None, 1)[1] for line in ran.lines if line.startswith("  output"))
    _, *words = command.split()
    assert "nosuch" in pmagent(bare, *words).text


def test_init_says_first_why_a_folder_can_be_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "orchestra.config.yaml").write_text("whitelist_tools: [make]\n")
    here = {"PMAGENT_WORKSPACE": str(tmp_path)}
    outside = invoke("init", environ=here)
    assert (outside.code, "git init" in outside.errors) == (2, True)
    assert "not accepted" in invoke("status", environ=here).text
    (tmp_path / "orchestra.config.yaml").unlink()
    assert "not accepted" not in invoke("status", environ=here).text, "there is nothing to accept"
