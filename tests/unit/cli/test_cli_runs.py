"""``pmagent runs``: choosing among runs and tasks, watching them, and what was cut; ``run --follow``."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pmagent.cli.output import Output
from pmagent.contracts.orchestra import Artifact
from pmagent.contracts.orchestra_events import TaskFinished
from pmagent.jobs.kinds import RUNS
from tests.support.cases import each
from tests.support.commands import Ran, invoke
from tests.support.orchestra import RUN as CUT
from tests.support.orchestra import exited
from tests.support.pages import RunHarness, pages, recorded, text, written
from tests.support.pages import page as shown_page

FAILED = "00000000-0000-4000-8000-000000000002"
"""In the recorded history: a succeeds, b fails twice, c reads what a wrote."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with recorded runs."""
    return recorded(tmp_path_factory.mktemp("runs") / "workspace", "runs")


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with one run, whose first task wrote more than is kept."""
    harness = RunHarness()
    left = Artifact(path="stdout", size_bytes=0, checksum=sha256(b"").hexdigest(), gap_at=7, gap_bytes=46 * 2**20)
    harness.tool = lambda event: exited(event, artifacts=[] if harness.of(TaskFinished) else [left])
    harness.request({"fetch": [], "page": ["fetch"]})
    harness.run()
    folder = tmp_path_factory.mktemp("cut") / "workspace"
    folder.mkdir()
    return written(folder, harness.history, [b""])


def of(workspace: Path, *arguments: str) -> Ran:
    return invoke("--workspace", str(workspace), *arguments)


def names(workspace: Path, *arguments: str) -> list[str]:
    """The tasks that are chosen."""
    document: Any = of(workspace, "runs", FAILED, *arguments, "--format", "json").document
    chosen = [document["names"][task["task_id"]] for task in document["tasks"]]
    shown = of(workspace, "runs", FAILED, *arguments).lines
    assert [line.split()[1] for line in shown[1:] if line[:3] in (" ✓ ", " ✗ ", " · ")] == chosen
    return chosen


def test_failed_runs_are_those_that_ended_without_success(workspace: Path) -> None:
    every = of(workspace, "runs", "-n", "1000", "--json").document["runs"]
    failed = of(workspace, "runs", "-n", "1000", "--failed", "--json").document["runs"]
    assert failed == [run for run in every if run["state"] in RUNS.failures]
    assert 0 < len(failed) < len(every)
    assert len(of(workspace, "runs", "--failed").lines) == len(failed) + 1


@each("arguments, chosen", [
    ((), ["a", "b", "c", "d"]),
    (("--failed",), ["b", "d"]),
    (("--state", "done"), ["a", "c"]),
    (("--state", "done", "-n", "1"), ["a"]),
    (("--text", "EXIT CODE"), ["b"]),
    (("--text", "nothing like it"), []),
])
def test_tasks_of_a_run_are_chosen(workspace: Path, arguments: tuple[str, ...], chosen: list[str]) -> None:
    assert names(workspace, *arguments) == chosen


@each(
    "arguments",
    [
        (FAILED, "--before", "7"), (FAILED, "--watch", "--failed"), (FAILED, "--state", "cancelled"),
        ("--state", "blocked"), ("--watch", "--json"), ("--watch",),
    ],
)
def test_what_cannot_be_chosen_is_a_usage_error(workspace: Path, arguments: tuple[str, ...]) -> None:
    assert of(workspace, "runs", *arguments).code == 2


def test_output_that_was_cut_is_marked_in_every_view(cut: Path) -> None:
    shown = of(cut, "runs", CUT)
    assert shown.text.count("✂ stdout: 46.0 MiB missing") == 2, "in the summary, and in the task's line"
    (fetch, page) = of(cut, "runs", CUT, "--json").document["tasks"]
    assert (fetch["artifacts"][0]["gap_at"], fetch["artifacts"][0]["gap_bytes"]) == (7, 46 * 2**20)
    assert page["artifacts"] == []
    with pages(cut) as client:
        assert "✂ stdout: 46.0 MiB missing" in text(shown_page(client, f"/runs/{CUT}"))


def test_following_a_run_that_is_over_answers_as_the_run_did(cut: Path, workspace: Path) -> None:
    followed = of(cut, "run", "--follow", CUT[:8], "--json")
    assert followed.code == 0
    assert followed.document["tasks"][0]["cut"] == [{"path": "stdout", "gap_at": 7, "gap_bytes": 46 * 2**20}]
    assert "✂ stdout: 46.0 MiB missing" in followed.errors
    failed = of(workspace, "run", "--follow", FAILED)
    assert failed.code == 1
    assert "✗ failed" in failed.text


@each("more", [("INTENT",), ("--detach",), ("--plan", "x"), ("--request", CUT)])
def test_a_run_to_follow_is_named_alone(cut: Path, more: tuple[str, ...]) -> None:
    assert of(cut, "run", "--follow", CUT[:8], *more).code == 2
    assert of(cut, "run").code == 2


def test_a_run_that_nobody_carries_cannot_be_followed(tmp_path: Path) -> None:
    harness = RunHarness()
    harness.request({"a": []})
    refused = of(written(tmp_path, harness.history), "run", "--follow", CUT)
    assert refused.code == 5
    assert "pmagent up" in refused.errors


def test_a_watched_list_is_drawn_until_the_terminal_is_gone(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter([os.terminal_size((80, 6))] * 3)
    monkeypatch.setattr(Output, "notes_screen", lambda _: next(sizes, None))
    done = of(workspace, "runs", "--watch")
    listed = of(workspace, "runs", "-n", "3").text.splitlines()
    assert done.code == 0
    drawn = [line for line in done.errors.replace("\x1b[K", "").splitlines() if line]
    assert drawn.pop(0) == "note: no daemon runs"
    assert [line.split()[0] for line in drawn[:3]] == [line.split()[0] for line in listed[:3]]
