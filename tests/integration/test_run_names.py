"""Names of artifacts that hold secrets are masked; what is left of them harms no document and no later task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import pmagent
from tests.support.sandboxes import needs_sandbox

pytestmark = [needs_sandbox, pytest.mark.slow]

NAME = "p=pw; p=${p}d="
"""The text before a secret, in two parts: a plan's own secrets are masked before its tasks see them."""

SETTINGS = 'version: "1.0"\nwhitelist_tools: [sh, find]\nretries: {max: 0}\n'


def run(workspace: Path, script: str) -> dict[str, Any]:
    """A run of a task that leaves things and one that looks at what was left; as ``pmagent run`` tells it."""
    (workspace / "orchestra.config.yaml").write_text(SETTINGS)
    tasks = [
        {"task_id": "leave", "intent": "x", "tools": ["sh"], "inputs": {"args": ["-c", script]}},
        {"task_id": "look", "intent": "x", "tools": ["find"], "depends_on": ["leave"],
         "inputs": {"args": ["/inputs/leave", "-type", "f", "-size", "+0"]}},
    ]  # fmt: skip
    (workspace / "plan.json").write_text(json.dumps(tasks))
    done = pmagent(workspace, "run", "names", "--plan", str(workspace / "plan.json"), "--format", "json")
    told: dict[str, Any] = done.document
    return told


def artifact(workspace: Path, told: dict[str, Any], number: int, path: str) -> Path:
    folder, task_id = str(told["folder"]), str(told["tasks"][number]["task_id"])
    return workspace / folder / "artifacts" / task_id / path


def test_a_name_that_is_too_long_when_it_is_masked_is_left_out_and_said(workspace: Path) -> None:
    name = "\u00e9" * 122
    told = run(workspace, f"cd $ARTIFACTS; {NAME}; echo 1 > {name}${{p}}abcdef; echo 2 > good")
    assert told["state"] == "done"
    assert artifact(workspace, told, 0, "good").read_text() == "2\n"
    assert artifact(workspace, told, 1, "stdout").read_text() == "/inputs/leave/good\n"
    assert "its path is too long: left out" in (workspace / told["report"]).read_text()


def test_no_name_keeps_from_being_told_what_a_tool_did_besides(workspace: Path) -> None:
    name = "x" * 244
    told = run(workspace, f"cd $ARTIFACTS; {NAME}; echo 1 > {name}${{p}}abcdef; echo 2 > good; exit 3")
    assert [(task["state"], task["exit_code"]) for task in told["tasks"]] == [("failed", 3), ("failed", None)]
    assert artifact(workspace, told, 0, "good").read_text() == "2\n"
    report = (workspace / told["report"]).read_text()
    assert "with its secrets masked, the name is too long" in report
    assert "abcdef" not in report


def test_of_names_that_are_one_when_they_are_masked_the_first_is_kept(workspace: Path) -> None:
    script = "echo 1 > ${p}abcdef; echo 2 > ${p}ghijkl; mkdir ${p}mnopqr; echo 3 > ${p}mnopqr/x"
    told = run(workspace, f"cd $ARTIFACTS; {NAME}; {script}")
    assert told["state"] == "done"
    assert artifact(workspace, told, 0, "pwd=***REDACTED***").read_text() == "1\n"
    assert artifact(workspace, told, 1, "stdout").read_text() == "/inputs/leave/pwd=***REDACTED***\n"
    assert "is in another one" in (workspace / told["report"]).read_text()
