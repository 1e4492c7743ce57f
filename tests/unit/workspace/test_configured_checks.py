"""Configured checks in the surfaces: every one stands there, none passes that was not run, and one that is not
configured any more goes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pmagent.actors.checks.results import not_run
from pmagent.actors.kernel.mode import judge
from pmagent.actors.kernel.reader import read_surfaces
from pmagent.contracts.checks import CheckResult
from pmagent.events.errors import PmagentError
from pmagent.workspace import ask_checks
from pmagent.workspace.settings import resolve
from pmagent.workspace.surfaces import init_workspace, refresh_surfaces
from pmagent.workspace.trust import accept

NOW = "2026-11-21T18:00:00.000000Z"
REALITY = "share/REALITY_GREEN_SUMMARY.json"
HANDOFF = "share/HANDOFF_KERNEL.json"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody writes these files but the test: no need to wait for quiet."""
    monkeypatch.setattr("pmagent.actors.kernel.reader.QUIET_S", 0.0)
    monkeypatch.setattr("pmagent.actors.kernel.reader.WAIT_S", 0.0)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A workspace in which two checks are configured."""
    subprocess.run(["git", "-C", str(tmp_path), "init", "-q", "-b", "trunk"], check=True)
    configure(tmp_path, Tests=["make", "test"], Lint=["ruff"])
    return tmp_path


def configure(workspace: Path, **programs: list[str]) -> None:
    (workspace / ".pmagent").mkdir(exist_ok=True)
    lines = [f"{json.dumps(name)} = {json.dumps(argv)}\n" for name, argv in programs.items()]
    (workspace / ".pmagent/config.toml").write_text("[checks]\n" + "".join(lines))
    accept(workspace)


def result(name: str, *, passed: bool = True) -> CheckResult:
    code = 0 if passed else 1
    return CheckResult(name=name, passed=passed, ran=True, message=f"exit code {code}", exit_code=code, end=9)


def reality(workspace: Path) -> Any:
    return json.loads((workspace / REALITY).read_text())


def verdicts(workspace: Path) -> dict[str, bool]:
    return {check["name"]: check["passed"] for check in reality(workspace)["checks"]}


def mode(workspace: Path) -> str:
    return judge(read_surfaces(workspace).surfaces).mode


def test_results_stand_in_the_summary_and_in_what_repeats_it(repository: Path) -> None:
    refresh_surfaces(repository, results=[result("Tests"), result("Lint")], now=NOW)
    found = {check["name"]: check for check in reality(repository)["checks"]}
    assert found["Tests"] == {
        "name": "Tests", "passed": True, "message": "exit code 0",
        "details": {"source": ".pmagent/config.toml", "ran": True, "exit_code": 0, "position": 9},
    }
    assert reality(repository)["reality_green"] is True
    assert json.loads((repository / HANDOFF).read_text())["health"]["checks"]["Lint"] is True
    assert mode(repository) == "NORMAL"


def test_one_that_fails_keeps_the_kernel_red_until_it_passes(repository: Path) -> None:
    refresh_surfaces(repository, results=[result("Tests", passed=False), result("Lint")], now=NOW)
    assert (verdicts(repository)["Tests"], reality(repository)["reality_green"]) == (False, False)
    assert mode(repository) == "DEGRADED"
    refresh_surfaces(repository, results=[result("Tests"), result("Lint")], now=NOW)
    assert mode(repository) == "NORMAL"


def test_what_was_not_run_has_not_passed_and_says_so(repository: Path) -> None:
    refresh_surfaces(repository, results=[result("Lint")], now=NOW)
    found = {check["name"]: check for check in reality(repository)["checks"]}
    assert found["Tests"]["passed"] is False
    assert "nobody has run it yet" in found["Tests"]["message"]
    assert found["Tests"]["details"]["mend"] == "pmagent kernel refresh"
    assert mode(repository) == "DEGRADED"


def test_a_new_workspace_with_checks_is_not_green_before_they_have_run(repository: Path) -> None:
    init_workspace(repository, now=NOW)
    assert [verdicts(repository)[name] for name in ("Tests", "Lint")] == [False, False]
    assert mode(repository) == "DEGRADED"


def test_an_old_pass_does_not_stand_in_for_a_run(repository: Path) -> None:
    refresh_surfaces(repository, results=[result("Tests"), result("Lint")], now=NOW)
    refresh_surfaces(repository, results=[result("Tests")], now=NOW)
    assert verdicts(repository)["Lint"] is False


def test_a_check_that_is_not_configured_any_more_goes_and_those_of_others_stay(repository: Path) -> None:
    refresh_surfaces(repository, results=[result("Tests", passed=False), result("Lint")], now=NOW)
    content = reality(repository)
    content["checks"].append({"name": "Theirs", "passed": True, "message": "fine", "details": {"source": "elsewhere"}})
    content["checks"].append({"name": "Bare", "passed": True, "message": "fine"})
    (repository / REALITY).write_text(json.dumps(content))
    configure(repository, Lint=["ruff"])
    refresh_surfaces(repository, results=[result("Lint"), result("Tests")], now=NOW)
    assert "Tests" not in verdicts(repository)
    assert {"Theirs", "Bare", "Lint"} <= set(verdicts(repository))
    assert "Tests" not in json.loads((repository / HANDOFF).read_text())["health"]["checks"]
    assert mode(repository) == "NORMAL"


def test_a_configured_check_takes_the_place_of_anothers_of_its_name(repository: Path) -> None:
    """So a workspace may compute "AGENTS.md Sync" itself; what repeats it follows."""
    configure(repository, **{"AGENTS.md Sync": ["./sync.sh"]})
    refresh_surfaces(repository, results=[result("AGENTS.md Sync")], now=NOW)
    bootstrap = json.loads((repository / "share/PM_BOOTSTRAP_STATE.json").read_text())
    assert bootstrap["health"]["agents_sync_ok"] is True
    refresh_surfaces(repository, results=[result("AGENTS.md Sync", passed=False)], now=NOW)
    bootstrap = json.loads((repository / "share/PM_BOOTSTRAP_STATE.json").read_text())
    assert bootstrap["health"]["agents_sync_ok"] is False
    assert [check["name"] for check in reality(repository)["checks"]].count("AGENTS.md Sync") == 1


def test_refreshing_twice_writes_the_same(repository: Path) -> None:
    results = [result("Tests", passed=False), not_run("Lint", "no sandbox", "install it")]
    refresh_surfaces(repository, results=results, now=NOW)
    first = {path.name: path.read_bytes() for path in (repository / "share").glob("*.json")}
    refresh_surfaces(repository, results=results, now=NOW)
    assert {path.name: path.read_bytes() for path in (repository / "share").glob("*.json")} == first


def test_when_checks_cannot_be_asked_for_none_passes(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unreachable(PmagentError):
        """Nobody is there."""

    def refuse(*_: Any) -> Any:
        raise Unreachable("the log cannot be opened", "look at it")

    monkeypatch.setattr(ask_checks, "ask", refuse)
    results = ask_checks.run_configured(resolve(str(repository), {}))
    assert [(one.name, one.passed, one.ran, one.mend) for one in results] == [
        ("Tests", False, False, "look at it"), ("Lint", False, False, "look at it"),
    ]
    assert all(one.message == "it could not be run: the log cannot be opened" for one in results)


def test_without_configured_checks_nobody_is_asked(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(repository)
    monkeypatch.delattr(ask_checks, "ask")
    assert ask_checks.run_configured(resolve(str(repository), {})) == []
