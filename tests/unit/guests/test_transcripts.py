"""Transcripts that Claude Code 2.1.330, Codex 0.169.0 and Gemini CLI 0.61.0 wrote, read as their hooks would hear."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from pmagent.guests import transcripts
from pmagent.guests.dialects import Asked, Ended, Finished, Started, Unheard
from pmagent.guests.processes import started_headless
from pmagent.guests.transcripts import calls, entries, only_call_of_its_turn, sessions
from tests.support.cases import each

FOLDER = Path(__file__).parents[2] / "golden" / "guests" / "transcripts"
CLAUDE, CODEX = FOLDER / "claude", FOLDER / "codex"
SESSIONS = {"claude": "12e67f6d-617b-49b4-a6cc-5df0ea3ba505", "codex": "01a219bc-f205-7061-bd97-4be2aa91b8e7"}


def file_of(harness: str) -> Path:
    """The one session of a harness."""
    found, = sessions(harness, FOLDER / harness)
    return found


@each("harness", ["claude", "codex"])
def test_a_session_is_heard_with_its_subagents(harness: str) -> None:
    heard = [entry.heard for entry in entries(harness, file_of(harness))]
    assert isinstance(heard[0], Started)
    assert heard[0].version == {"claude": "2.1.330", "codex": "0.169.0"}[harness]
    assert isinstance(heard[-1], Ended)
    assert {getattr(one, "session", "") for one in heard} == {SESSIONS[harness]}
    asked = [one for one in heard if isinstance(one, Asked)]
    finished = {(one.agent, one.call): one for one in heard if isinstance(one, Finished)}
    assert {(one.agent, one.call) for one in asked} == set(finished)
    assert [one.tool_input["command"] for one in asked if one.agent] == ["echo sub > y.txt"]
    assert [one.tool for one in asked if one.agent] == ["Bash"]
    assert len(asked) == 4
    if harness == "claude":
        assert [finished["", one.call].ok for one in asked if not one.agent] == [True, False, True]


def test_a_message_of_gemini_that_grows_tells_of_each_call_once() -> None:
    heard = [entry.heard for entry in entries("gemini", file_of("gemini"))]
    assert isinstance(heard[0], Started)
    assert (heard[0].cwd, heard[0].session[:8]) == ("/w", "63936b1f")
    asked = [one for one in heard if isinstance(one, Asked)]
    assert [(one.tool, one.cwd) for one in asked] == [("run_shell_command", "/w")] * 2 + [("write_file", "/w")]
    assert [one.call for one in asked] == [one.call for one in heard if isinstance(one, Finished)]
    assert isinstance(heard[-1], Ended)


@each("written,agents", [("2026-11-27", 1), ("2026-11-26", 0)])
def test_a_subagent_of_codex_that_began_behind_midnight_is_found(tmp_path: Path, written: str, agents: int) -> None:
    """It lies in the next day's folder; days behind the session's last line are not looked at."""
    own, sub = sorted(CODEX.glob("*.jsonl"))
    session = tmp_path / "2026/11/26" / own.name
    later = tmp_path / "2026/11/27" / sub.name.replace("2026-11-26T21", "2026-11-27T00")
    for path, source in ((session, own), (later, sub)):
        path.parent.mkdir(parents=True)
        path.write_bytes(source.read_bytes())
    moment = datetime.fromisoformat(f"{written}T12:00:00").timestamp()
    os.utime(session, (moment, moment))
    assert len({one.agent for one in calls("codex", session) if one.agent}) == agents


@each("harness", ["claude", "codex", "gemini"])
def test_times_are_told(harness: str) -> None:
    assert all(entry.time.endswith("Z") for entry in entries(harness, file_of(harness)))


def test_a_line_that_is_not_understood_is_told_unless_it_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    content = file_of("claude").read_bytes()
    for end, broken in ((b"", 0), (b"\n", 1)):
        path.write_bytes(content[: content.rindex(b'"tool_use"') + 20] + end)
        heard = [entry.heard for entry in entries("claude", path)]
        assert [isinstance(one, Unheard) for one in heard].count(True) == broken
        assert len(calls("claude", path)) == 2


def test_no_device_and_no_endless_file_is_read(tmp_path: Path) -> None:
    """A guest names the path."""
    pipe, huge = tmp_path / "pipe", tmp_path / "huge"
    os.mkfifo(pipe)
    with huge.open("wb") as file:
        file.truncate(transcripts.FILE_BYTES_MAX + 1)
    for path in (pipe, Path("/dev/zero"), Path("/proc/self/environ")):
        assert calls("claude", path) == []
    with pytest.raises(OSError, match="too large"):
        calls("claude", huge)


def test_a_mention_of_a_file_is_a_call_that_no_hook_hears(tmp_path: Path) -> None:
    line = {
        "type": "attachment", "sessionId": "s", "version": "1", "cwd": "/w", "uuid": "u", "timestamp": "t",
        "attachment": {"type": "file", "filename": "/w/a.txt"},
    }  # fmt: skip
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(line) + "\n")
    mention, = calls("claude", path)
    assert (mention.tool, mention.tool_input) == (transcripts.MENTION, {"file_path": "/w/a.txt"})


def test_typing_into_a_program_is_a_call(tmp_path: Path) -> None:
    """Codex tells no hook of it; its transcript shows it."""
    call = {"type": "function_call", "name": "write_stdin", "call_id": "c", "arguments": '{"chars": "ls"}'}
    rows = [
        {"timestamp": "t", "type": "session_meta", "payload": {"session_id": "s", "id": "s", "cwd": "/w"}},
        {"timestamp": "t", "type": "response_item", "payload": call},
    ]
    path = tmp_path / "rollout-s.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    typed, = calls("codex", path)
    assert (typed.tool, typed.tool_input["chars"], typed.cwd) == ("write_stdin", "ls", "/w")


def test_only_known_harnesses_keep_transcripts(tmp_path: Path) -> None:
    assert transcripts.home("codex", {"CODEX_HOME": str(tmp_path)}) == tmp_path / "sessions"
    assert transcripts.home("claude", {"HOME": "/h"}) == Path("/h/.claude/projects")
    assert transcripts.home("gemini", {"HOME": "/h"}) == Path("/h/.gemini/tmp")
    with pytest.raises(KeyError):
        transcripts.home("cursor", {})


def turn(*calls: str, message: str = "m1", stop: str | None = "tool_use", entry: str = "sdk-cli") -> str:
    """The lines of a message of the model's, one for each of its calls, as Claude Code writes them."""
    parts = [{"type": "tool_use", "id": call, "name": "Bash", "input": {}} for call in calls]
    said = [{"id": message, "stop_reason": stop, "content": [part]} for part in parts]
    lines = [{"type": "assistant", "entrypoint": entry, "message": one} for one in said]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


@each("text, alone", [
    (turn("a"), True), (turn("b", message="m0") + turn("a"), True), ("", False), (turn("b"), False),
    (turn("a", "b"), False), (turn("b", "a"), False), (turn("a", stop=None), False), (turn("a", entry="cli"), False),
    (turn("a") + '{"type":"assistant","message":{"content":[{"type":"tool_use"', True),
])  # fmt: skip
def test_whether_a_call_is_alone_in_its_turn(tmp_path: Path, text: str, alone: bool) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    assert only_call_of_its_turn(path, "a") == alone
    assert not only_call_of_its_turn(tmp_path / "none.jsonl", "a")


@each("words, headless", [
    (("-p", "text"), True), (("--print",), True), (("--model", "x", "-p"), True), (("text",), False),
    (("--", "-p"), False),
])  # fmt: skip
def test_whether_a_program_answers_one_prompt_is_what_its_command_line_says(
    words: tuple[str, ...], headless: bool
) -> None:
    """Its environment says nothing: it is handed on to others."""
    code = "import subprocess; subprocess.run(['sh', '-c', 'echo $$; exec cat'])"
    environ = {"PATH": os.environ["PATH"], "CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
    ) as harness:
        assert harness.stdout is not None
        assert started_headless(int(harness.stdout.readline())) == headless
        harness.communicate()
    assert not started_headless(0)
