"""Importing transcripts, and judging what the log holds by another policy."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import pmagent
from tests.support.logged import history, proven_history

FOLDER = Path(__file__).parents[1] / "golden" / "guests" / "transcripts"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path / "w")], check=True)
    assert pmagent(tmp_path / "w", "init", "--minimal").code == 0
    return tmp_path / "w"


def taken(workspace: Path, harness: str, path: Path) -> dict[str, int]:
    """An import's findings."""
    done = pmagent(workspace, "import", harness, str(path), "--format", "json", environ={"HOME": str(workspace)})
    assert done.code == 0, done
    document: dict[str, int] = done.document
    return document


def test_an_import_takes_each_call_once_and_judges_none(workspace: Path, tmp_path: Path) -> None:
    assert taken(workspace, "claude", FOLDER / "claude")["calls"] == 4
    assert taken(workspace, "codex", FOLDER / "codex")["calls"] == 4
    events = proven_history(workspace, "guest.")
    assert {getattr(event.data, "source", "") for event in events} == {"import"}
    assert {event.kind for event in events} == {"fact"}
    first = next(event.data for event in events if event.type == "guest.call_asked")
    assert (first.seen, first.mode, first.facts.branch) == ("2026-11-26T21:22:15.788Z", "observe", "")
    assert taken(workspace, "claude", FOLDER / "claude")["calls"] == 0
    assert taken(workspace, "codex", FOLDER / "codex")["sessions"] == 0
    assert len(history(workspace, "guest.")) == len(events)
    grown = tmp_path / "grown"
    shutil.copytree(FOLDER / "claude", grown)
    path = next(grown.glob("*.jsonl"))
    line = next(line for line in path.read_text().splitlines() if '"tool_use"' in line)
    path.write_text(path.read_text() + line.replace("toolu_0_0", "toolu_new") + "\n")
    assert taken(workspace, "claude", grown)["calls"] == 1
    shown = pmagent(workspace, "guests", "--format", "json").document["sessions"]
    assert {one["proof"] for one in shown} == {"not_proven"}


def test_secrets_of_a_transcript_are_masked(workspace: Path, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    shutil.copytree(FOLDER / "claude", tmp_path / "t")
    path = next((tmp_path / "t").glob("*.jsonl"))
    text = path.read_text().replace("echo hi", f"echo {secret}").replace("(Bash completed", f"{secret} (Bash completed")
    path.write_text(text)
    taken(workspace, "claude", tmp_path / "t")
    stored = b"".join(file.read_bytes() for file in (workspace / ".pmagent/data").rglob("*") if file.is_file())
    assert b"guest.call_asked" in stored
    assert secret.encode() not in stored


def test_what_if_says_what_each_rule_would_have_decided(workspace: Path, tmp_path: Path) -> None:
    taken(workspace, "claude", FOLDER / "claude")
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        'version: 1\ndeny: ["Bash(echo *)"]\nallow: [Agent]\n'
        'rules:\n  - {match: "Bash(exit *)", answer: allow, when: {branch: [main]}}\n'
    )
    done = pmagent(workspace, "what-if", "--policy", str(policy), "--format", "json")
    found = done.document
    assert done.code == 0  # nothing of this was allowed by a verdict
    assert found["answers"] == {"allow": 1, "ask": 0, "deny": 2}
    assert (found["calls"], found["imported"], found["not_evaluable"], found["changed"]) == (4, 4, 1, 0)
    assert {row["rule"]: row["deny"] for row in found["rules"] if row["deny"]} == {"project:2": 2}
    later = pmagent(workspace, "what-if", "--policy", str(policy), "--since", "1s", "--format", "json")
    assert later.document["calls"] == 0
    assert pmagent(workspace, "what-if", "--policy", "/nowhere").code == 2
    assert pmagent(workspace, "what-if", "--since", "99999999999d").code == 2
    policy.write_text("version: 2\n")
    assert pmagent(workspace, "what-if", "--policy", str(policy)).code == 2


def test_nothing_to_import_is_said(workspace: Path) -> None:
    assert pmagent(workspace, "import", "claude", "/nowhere").code == 2
    assert history(workspace, "guest.call") == []


def test_connecting_is_shown_asked_for_noted_and_undone(workspace: Path, tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PATH": ""}
    settings = workspace / ".claude/settings.local.json"
    refused = pmagent(workspace, "connect", "claude", environ=environ)
    assert refused.code == 2  # nobody can be asked here
    assert "+++ " in refused.errors
    assert not settings.exists()
    done = pmagent(workspace, "connect", "claude", "--enforce", "--yes", "--format", "json", environ=environ)
    assert (done.code, done.document["mode"], done.document["changed"]) == (0, "enforce", True)
    again = pmagent(workspace, "connect", "claude", "--enforce", "--yes", "--format", "json", environ=environ)
    assert again.document["changed"] is False
    half = pmagent(workspace, "connect", "codex", "--yes", "--format", "json", environ=environ)
    assert (half.code, len(half.document["left"])) == (8, 1)  # its user has to trust the hook
    assert pmagent(workspace, "disconnect", "claude", "--yes", environ=environ).code == 0
    assert not settings.parent.exists()
    assert pmagent(workspace, "disconnect", "claude", "--yes", environ=environ).code == 1
    noted = [event.data.text.partition(":")[0] for event in history(workspace, "guest.noted")]
    assert noted == ["connects claude (project, enforce)", "connects codex (project, observe)",
                     "disconnects claude (project)"]  # fmt: skip
    assert pmagent(workspace, "connect", "codex", "--plugin", str(tmp_path / "p"), environ=environ).code == 2
    assert pmagent(workspace, "connect", "claude", "--plugin", str(tmp_path / "p"), environ=environ).code == 0
    assert (tmp_path / "p/.claude-plugin/plugin.json").exists()
