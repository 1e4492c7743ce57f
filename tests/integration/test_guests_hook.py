"""The hook against a real daemon, started as Claude Code would start it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pmagent.guests.harnesses import too_old
from pmagent.workspace.layout import Layout
from tests.support.commands import pmagent
from tests.support.daemons import running
from tests.support.logged import history
from tests.support.policies import write_policy
from tests.unit.guests.test_hook import Ended, refused, run


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """With a daemon that allows ``echo``."""
    folder = tmp_path_factory.mktemp("hooked") / "w"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    assert pmagent(folder, "init", "--minimal").code == 0
    write_policy(folder, 'version: 1\nallow: ["Bash(echo *)"]\n')
    with running(folder):
        yield folder


def asked(workspace: Path, line: str, version: str, *, mode: str = "enforce") -> Ended:
    """A call of the shell by an agent of Claude Code of a version."""
    payload = {
        "session_id": f"s{version}", "cwd": str(workspace), "tool_name": "Bash", "tool_input": {"command": line},
        "tool_use_id": "t",
    }  # fmt: skip
    environ = {"AI_AGENT": f"claude-code_{version.replace('.', '-')}_harness"} if version else {}
    return run(Layout(workspace).home, payload=json.dumps(payload).encode(), mode=mode, environ=environ)


@pytest.mark.parametrize("version", ["2.1.295", "2.1.330", "3.0.0", ""])
def test_a_call_is_allowed_and_refused_in_claude_codes_words(workspace: Path, version: str) -> None:
    started = json.dumps({"session_id": f"s{version}", "cwd": str(workspace)}).encode()
    assert run(Layout(workspace).home, event="SessionStart", payload=started).code == 0
    allowed = asked(workspace, "echo hi", version)
    assert (allowed.code, allowed.err) == (0, b"")
    assert json.loads(allowed.out)["hookSpecificOutput"]["permissionDecision"] == "allow"
    refused(asked(workspace, "rm x", version))


def test_a_harness_that_lets_tools_run_is_refused_by_the_daemon(workspace: Path) -> None:
    refused(asked(workspace, "echo", "2.1.294"))
    assert asked(workspace, "echo", "2.1.197", mode="observe")[:3] == (0, b"", b"")
    sessions = {event.correlation for event in history(workspace, "guest.call_asked")}
    assert "s2.1.294" not in sessions
    assert "s2.1.197" in sessions


def test_versions_compare_as_numbers() -> None:
    assert too_old("claude", "2.1.99")
    assert not too_old("claude", "2.10.0")
    assert not too_old("gemini", "0.1")
    assert not too_old("codex", "")
