"""``pmagent prune``: old runs go, everything else stays, and nobody takes that for damage."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from pmagent.contracts.control import Pruned, PruneEnded
from pmagent.jobs.catalogue import Catalogue
from pmagent.jobs.kinds import RUNS
from pmagent.projections.rebuild import check_documents
from pmagent.workspace.layout import Layout
from tests.conftest import fresh_example
from tests.support.commands import Ran, owned, pmagent
from tests.support.daemons import running
from tests.support.logged import proven_history
from tests.support.prunable import blobs_in, real_runs, run_id, runs_left
from tests.support.rebuilt import documents_of
from tests.support.sandboxes import needs_sandbox

pytestmark = needs_sandbox

ALL = ("prune", "--older-than", "0d", "--operator", "ada")
KEPT = 3
"""The run that stays; the fixture has two older ones."""


@pytest.fixture
def runs(workspace: Path) -> Path:
    """A workspace with three runs."""
    real_runs(workspace, 1, 2, KEPT)
    return workspace


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, of which all runs but the newest have been pruned."""
    workspace = fresh_example(tmp_path_factory.mktemp("pruned") / "workspace")
    real_runs(workspace, 1, 2, KEPT)
    done = pmagent(workspace, *ALL, "--keep", "1", "--yes")
    assert done.code == 0, done.errors
    return workspace


def test_old_runs_go_and_every_check_is_green(runs: Path) -> None:
    before, kept = blobs_in(runs), documents_of(runs)
    shown = pmagent(runs, *ALL, "--keep", "1", "--dry-run", "--format", "json").document
    assert (shown["runs"], shown["needed"]) == ([run_id(1), run_id(2)], [])
    assert blobs_in(runs) == before, "so far it is only shown"
    done = pmagent(runs, *ALL, "--keep", "1", "--yes")
    assert done.code == 0, done.errors
    assert runs_left(runs) == {run_id(KEPT)}
    assert len(before) - len(blobs_in(runs)) == shown["blobs"] > 0
    mine = {path: content for path, content in kept.items() if run_id(KEPT) in path}
    assert documents_of(runs).items() >= mine.items(), "what stays is as it was"
    for command in ("log verify", "rebuild --check", "replay", "doctor", "rebuild"):
        ran = pmagent(runs, *command.split())
        assert ran.code == 0, (command, ran.text, ran.errors)
    assert runs_left(runs) == {run_id(KEPT)}, "a rebuild writes nothing of them"
    history = proven_history(runs, "control.")
    assert [type(event.data) for event in history] == [Pruned, PruneEnded]
    assert (history[0].kind, history[0].actor, history[0].data.operator_id) == ("fact", "operator", "ada")
    assert pmagent(runs, *ALL, "--keep", "1", "--yes").code == 0, "there is nothing to do"
    assert len(proven_history(runs, "control.")) == 2


def test_what_somebody_nested_very_deep_in_a_run_goes_with_it(runs: Path) -> None:
    at = os.open(runs / "runs" / run_id(1), os.O_RDONLY)
    for _ in range(2 * sys.getrecursionlimit()):
        os.mkdir("d", dir_fd=at)
        at, above = os.open("d", os.O_RDONLY, dir_fd=at), at
        os.close(above)
    os.close(at)
    done = pmagent(runs, *ALL, "--keep", "1", "--yes")
    assert done.code == 0, done.errors
    assert runs_left(runs) == {run_id(KEPT)}


def test_nothing_is_given_up_whose_documents_lie_behind_a_link(runs: Path, tmp_path: Path) -> None:
    (runs / "runs").rename(tmp_path / "elsewhere")
    (runs / "runs").symlink_to(tmp_path / "elsewhere")
    before = blobs_in(runs)
    ran = pmagent(runs, *ALL, "--keep", "1", "--yes")
    assert (ran.code, "leads out" in ran.errors) == (1, True)
    assert (proven_history(runs, "control."), blobs_in(runs)) == ([], before)
    assert len(list((tmp_path / "elsewhere").iterdir())) == KEPT
    (runs / "runs").unlink()
    (tmp_path / "elsewhere").rename(runs / "runs")
    assert pmagent(runs, *ALL, "--keep", "1", "--yes").code == 0
    assert runs_left(runs) == {run_id(KEPT)}


@pytest.mark.parametrize("command", ["logs", "rerun --failed", "apply"])
def test_a_pruned_run_is_said_to_be_pruned(pruned: Path, command: str) -> None:
    ran = pmagent(pruned, *command.split(), run_id(1))
    assert ran.code == 1
    assert "pruned" in ran.errors
    assert "pmagent runs" in ran.errors, "which is the next step"


def test_the_log_still_tells_of_a_pruned_run(pruned: Path) -> None:
    found = pmagent(pruned, "runs", run_id(1), "--format", "json").document
    assert (found["state"], bool(found["pruned_at"])) == ("done", True)
    listed = pmagent(pruned, "runs", "--format", "json").document["runs"]
    assert [bool(one["pruned_at"]) for one in listed] == [False, True, True]
    assert pmagent(pruned, "runs").text.count("(pruned)") == 2
    forward = Catalogue(Layout(pruned), window=1).listed(RUNS, 5)
    assert [bool(one.pruned) for one in forward.entries] == [False, True, True]


def refused(workspace: Path, *arguments: str) -> Ran:
    """It is refused, and nothing has changed."""
    before = runs_left(workspace), blobs_in(workspace), len(proven_history(workspace))
    ran = pmagent(workspace, *arguments)
    assert (runs_left(workspace), blobs_in(workspace), len(proven_history(workspace))) == before
    return ran


def test_unasked_it_does_nothing(runs: Path) -> None:
    ran = refused(runs, *ALL)
    assert (ran.code, "--yes" in ran.errors) == (2, True)
    assert refused(runs, "prune", "--yes").code == 0, "by default only runs of 30 days ago go"
    assert refused(runs, "prune", "--older-than", "often").code == 2


@pytest.mark.slow
def test_it_does_nothing_beside_a_daemon(runs: Path) -> None:
    with running(runs):
        ran = pmagent(runs, *ALL, "--yes")
        assert (ran.code, "pmagent down" in ran.errors) == (1, True)
        assert pmagent(runs, *ALL, "--dry-run").code == 0, "it may look"
    assert runs_left(runs) == {run_id(number) for number in (1, 2, KEPT)}


def test_other_losses_are_still_told(pruned: Path, tmp_path: Path) -> None:
    workspace = owned(shutil.copytree(pruned, tmp_path / "workspace"))
    shutil.rmtree(workspace / "runs" / run_id(KEPT))
    (workspace / "runs" / run_id(1)).mkdir()
    found = check_documents(workspace)
    assert {one.state for one in found if run_id(KEPT) in one.path} == {"missing"}
    assert [one.state for one in found if run_id(1) in one.path] == ["extra"]
    assert pmagent(workspace, "rebuild").code == 0
    assert check_documents(workspace) == []
    lost = next(iter(Layout(workspace).blobs.glob("??/*")))
    lost.unlink()
    assert pmagent(workspace, "log", "verify").code == 4


def test_a_run_whose_results_a_kept_one_took_over_stays(workspace: Path) -> None:
    plan = workspace / "red.yaml"
    plan.write_text("""
- {task_id: fine, intent: x, tools: [echo], inputs: {args: [kept]}}
- {task_id: red, intent: x, tools: [cat], depends_on: [fine], inputs: {args: [/nosuch]}, constraints: {max_retries: 0}}
""")
    first = pmagent(workspace, "run", "x", "--plan", str(plan), "--format", "json").document["run_id"]
    second = pmagent(workspace, "rerun", "--failed", first, "--format", "json").document["run_id"]
    shown = pmagent(workspace, *ALL, "--keep", "1", "--dry-run", "--format", "json").document
    assert (shown["runs"], shown["needed"]) == ([], [first])
    assert pmagent(workspace, *ALL, "--yes").code == 0, "both go together"
    assert runs_left(workspace) == set()
    assert [one["run_id"] for one in pmagent(workspace, "runs", "--format", "json").document["runs"]] == [second, first]
    assert pmagent(workspace, "log", "verify").code == 0
