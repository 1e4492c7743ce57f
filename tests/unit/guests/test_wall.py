"""The wall's relay: what it adds to a hook's line, and what it keeps back; and the folders of guests."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pmagent.guests.wall import Relay, _made
from pmagent.workspace.layout import Layout

SECRET = 'sk-"quoted"-0123456789'


def relay(tmp_path: Path) -> Relay:
    return Relay(Layout(tmp_path), "w-1", str(tmp_path / "gate"), ("/artifacts", "/host/own"), [SECRET, "short"])


def passed(made: Relay, event: str, **payload: Any) -> dict[str, Any]:
    line = {"v": 1, "event": event, "payload": {"session_id": "s", **payload}}
    told: dict[str, Any] = json.loads(made.line(json.dumps(line).encode() + b"\n"))
    return told


def test_a_line_gets_the_walls_id_and_its_transcripts_path_out_here(tmp_path: Path) -> None:
    told = passed(relay(tmp_path), "PreToolUse", transcript_path="/artifacts/.claude/t.jsonl", cwd="/artifacts2/x")
    assert told["wall"] == "w-1"
    assert told["payload"]["transcript_path"] == "/host/own/.claude/t.jsonl"
    assert told["payload"]["cwd"] == "/artifacts2/x"


def test_a_transcript_elsewhere_than_where_it_may_lie_is_not_named(tmp_path: Path) -> None:
    """The daemon reads what is named: it must not be led to other people's transcripts, nor by a link."""
    own, home = tmp_path / "own", tmp_path / "home"
    own.mkdir()
    home.mkdir()
    (own / "link").symlink_to(tmp_path)
    moved = ("/artifacts", str(own))
    made = Relay(Layout(tmp_path), "w-1", str(tmp_path / "gate"), moved, [], [str(home)])
    for path, told in {
        "/artifacts/t.jsonl": f"{own}/t.jsonl", f"{home}/t.jsonl": f"{home}/t.jsonl", f"{tmp_path}/t.jsonl": "",
        "/artifacts/link/t.jsonl": "", "/artifacts/../t.jsonl": "", "/proc/kmsg": "", f"{home}/../t.jsonl": "",
    }.items():  # fmt: skip
        assert passed(made, "SessionEnd", transcript_path=path)["payload"]["transcript_path"] == told, path


def test_a_guest_cannot_name_a_wall_of_its_own(tmp_path: Path) -> None:
    line = json.dumps({"v": 1, "event": "PreToolUse", "wall": "another", "payload": {}}).encode()
    assert json.loads(relay(tmp_path).line(line))["wall"] == "w-1"


def test_secrets_go_no_further(tmp_path: Path) -> None:
    told = passed(relay(tmp_path), "PreToolUse", tool_input={"command": f"curl -H '{SECRET}'"}, other="short")
    assert SECRET not in json.dumps(told)
    assert told["payload"]["tool_input"]["command"] == "curl -H '***'"
    assert told["payload"]["other"] == "short"  # too short to be one: it would take the words of others away


def test_a_session_whose_end_no_hook_told_is_ended_with_its_transcript(tmp_path: Path) -> None:
    made = relay(tmp_path)
    passed(made, "SessionStart", transcript_path="/artifacts/t.jsonl")
    passed(made, "PreToolUse", transcript_path="/artifacts/t.jsonl", tool_name="Bash", tool_input={})
    (ended,) = made.open.values()
    told = json.loads(ended)
    assert (told["event"], told["wall"]) == ("SessionEnd", "w-1")
    assert told["payload"]["transcript_path"] == "/host/own/t.jsonl"
    passed(made, "SessionEnd")
    assert made.open == {}


def test_the_folder_of_a_guest_that_was_killed_goes_and_that_of_one_that_lives_stays(tmp_path: Path) -> None:
    first = _made(f"{tmp_path}/guests/one")
    os.close(_made(f"{tmp_path}/guests/killed"))
    second = _made(f"{tmp_path}/guests/two")
    assert sorted(os.listdir(tmp_path / "guests")) == ["one", "two"]
    os.close(first)
    os.close(second)
