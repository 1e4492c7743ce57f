"""The output of a run's tasks, from the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pmagent.cli import logs as module
from pmagent.contracts.orchestra_events import Captured
from tests.support.commands import Ran, invoke
from tests.support.pages import recorded

RUN = "00000000-0000-4000-8000-000000000002"
"""In the recorded history: a succeeds, b fails twice, c reads what a wrote."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with recorded runs."""
    return recorded(tmp_path_factory.mktemp("logs") / "workspace", "runs")


def logs(workspace: Path, *arguments: str) -> Ran:
    return invoke("--workspace", str(workspace), "logs", *arguments)


def outputs(workspace: Path, *arguments: str) -> list[tuple[str, int, str]]:
    document: dict[str, Any] = json.loads(logs(workspace, RUN, *arguments, "--format", "json").out)
    return [(one["task"], one["attempt"], one["stdout"]["text"]) for one in document["outputs"]]


def test_a_run_has_the_last_output_of_each_of_its_tasks(workspace: Path) -> None:
    assert outputs(workspace) == [("a", 1, ""), ("b", 2, "no\n"), ("c", 1, "a\n")]
    assert outputs(workspace, "--failed") == [("b", 2, "no\n")]
    assert outputs(workspace, "b", "--attempt", "1") == [("b", 1, "no\n")]
    shown = logs(workspace, RUN)
    assert [line.split(":")[0] for line in shown.text.splitlines() if line.startswith("── ") and "," in line] == [
        "── a, attempt 1", "── b, attempt 2", "── c, attempt 1",
    ]  # fmt: skip


def test_a_stream_of_a_task_goes_to_a_pipe_byte_for_byte(workspace: Path) -> None:
    assert logs(workspace, RUN, "c", "--stream", "stdout").out == b"a\n"


def test_following_shows_each_attempt_and_ends_with_the_run(workspace: Path) -> None:
    shown = logs(workspace, RUN, "b", "--follow")
    assert (shown.code, shown.text.count("exit code 3")) == (0, 2)


def test_a_task_that_the_run_does_not_have_is_named_with_those_it_has(workspace: Path) -> None:
    refused = logs(workspace, RUN, "zzz")
    assert (refused.code, refused.out) == (2, b"")
    assert b"'zzz'" in refused.err
    assert b"a, b, c" in refused.err


def test_an_attempt_that_a_signal_ended_has_failed(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = module.Ended
    monkeypatch.setattr(
        module, "Ended", lambda name, exited: ended(name, msgspec.structs.replace(exited, exit_code=None, signal=9))
    )
    assert [name for name, _, _ in outputs(workspace, "--failed")] == ["a", "b", "c"]
    assert logs(workspace, RUN, "c", "--failed", "--follow").text.count("signal 9") == 1


def test_it_is_told_how_much_of_an_output_was_kept(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(captured: Captured) -> Captured:
        return msgspec.structs.replace(captured, total_bytes=50 * 1024 * 1024, cut=True)

    ended = module.Ended
    monkeypatch.setattr(
        module, "Ended",
        lambda name, exited: ended(name, msgspec.structs.replace(exited, stdout=cut(exited.stdout))),
    )
    shown = logs(workspace, RUN, "c")
    assert b"2 B of 50.0 MiB" in shown.err
