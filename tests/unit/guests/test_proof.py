"""A session is held against its transcript: calls that the log does not know are unseen."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path

import msgspec

from pmagent.contracts.guest_calls import Call
from pmagent.contracts.guests import GuestCallAsked, GuestCallUnseen
from pmagent.events.event import Draft
from pmagent.guests.dialects import Asked
from pmagent.guests.proof import Proof, held, unseen
from pmagent.guests.transcripts import calls, sessions
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.logged import write_log

FOLDER = Path(__file__).parents[2] / "golden" / "guests" / "transcripts"


def proven(workspace: Path, harness: str, left_out: int, path: Path | None = None) -> Proof:
    """A recorded session against a log that holds all its calls but the last ones, and calls of another session."""
    file, = sessions(harness, FOLDER / harness)
    made = calls(harness, file)
    drafts = []
    for session in (made[0].session, "another"):
        for call in made[: len(made) - left_out] if session != "another" else made:
            facts = Call(
                harness="claude", session=session, tool=call.tool, kind="shell", agent=call.agent, cwd=call.cwd
            )
            name = "" if harness == "gemini" else call.call  # its hooks are told no ids
            asked = GuestCallAsked(session=session, call=name, facts=facts, digest=digest(call), mode="enforce")
            id, raw = f"{session}:{call.agent}:{call.call}", msgspec.json.encode(asked)
            drafts.append(Draft("guest.call_asked", None, raw, id, "hook", session, 0, "fact"))
    write_log(workspace, drafts)
    return held(Layout(workspace).store, harness, made[0].session, str(path or file), digest)


def digest(call: Asked) -> str:
    """Equal of calls with the same folder and input."""
    return sha256(msgspec.json.encode([call.cwd, call.tool, call.tool_input])).hexdigest()


@each("harness,left_out", [(harness, left_out) for harness in ("claude", "codex") for left_out in (0, 1, 4)])
def test_what_no_hook_told_of_is_unseen(tmp_path: Path, harness: str, left_out: int) -> None:
    """The subagents' calls count, under their own agent; those of another session do not."""
    found = proven(tmp_path, harness, left_out)
    assert (found.transcript, found.calls, len(found.unseen)) == ("read", 4, left_out)


@each("left_out", [0, 1, 3])
def test_a_call_without_an_id_counts_once(tmp_path: Path, left_out: int) -> None:
    found = proven(tmp_path, "gemini", left_out)
    assert (found.transcript, found.calls, len(found.unseen)) == ("read", 3, left_out)


def test_the_same_call_made_twice_has_to_be_asked_twice(tmp_path: Path) -> None:
    file, = sessions("gemini", FOLDER / "gemini")
    twice = tmp_path / "t.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    (again,) = (line for line in lines if "echo hi" in line and "toolCalls" in line)
    twice.write_text("".join([*lines, again.replace('"id":"run_shell_command__', '"id":"again__')]))
    found = proven(tmp_path, "gemini", 0, twice)
    assert [one.tool_input for one in found.unseen] == [{"command": "echo hi > ran.txt"}]


@each("harness", ["claude", "codex", "gemini"])
def test_calls_of_another_session_are_not_this_ones(tmp_path: Path, harness: str) -> None:
    """Whoever names another's transcript as its own would have that one's calls told in its report."""
    file, = sessions(harness, FOLDER / harness)
    assert proven(tmp_path, harness, 1).unseen
    found = held(Layout(tmp_path).store, harness, "mine", str(file), digest)
    assert (found.transcript, found.calls, found.unseen) == ("none", 0, [])


@each("harness", ["claude", "codex"])
def test_a_transcript_without_calls_that_were_asked_proves_nothing(tmp_path: Path, harness: str) -> None:
    file, = sessions(harness, FOLDER / harness)
    first, *others = file.read_bytes().splitlines(keepends=True)
    mark = b"tool_use" if harness == "claude" else b"_call"
    shortened = tmp_path / file.name
    shortened.write_bytes(first + b"".join(line for line in others if mark not in line))
    assert proven(tmp_path / "w", harness, 0, shortened).transcript == "unreadable"
    shortened.write_bytes(b"")
    assert proven(tmp_path / "e", harness, 0, shortened).transcript == "none"


def test_without_a_transcript_nothing_is_proven(tmp_path: Path) -> None:
    assert proven(tmp_path, "claude", 0, tmp_path / "none.jsonl").transcript == "none"
    store = Layout(tmp_path).store
    assert held(store, "cursor", "s", str(tmp_path), digest).transcript == "none"
    assert held(store, "claude", "s", "", digest).transcript == "none"


def test_only_the_last_line_may_be_broken(tmp_path: Path) -> None:
    file, = sessions("claude", FOLDER / "claude")
    broken = tmp_path / file.name
    shutil.copytree(file.with_suffix(""), broken.with_suffix(""))  # of its subagents
    broken.write_bytes(file.read_bytes() + b'{"type":"assistant","message":{"content":[{"type":"tool_use"')
    assert proven(tmp_path / "w", "claude", 0, broken).transcript == "read"
    broken.write_bytes(broken.read_bytes() + b"\n" + file.read_bytes())
    assert held(Layout(tmp_path / "w").store, "claude", "s", str(broken), digest).transcript == "unreadable"


def test_what_was_unseen_is_told_masked_and_in_short() -> None:
    file, = sessions("claude", FOLDER / "claude")
    call = msgspec.structs.replace(calls("claude", file)[0], tool_input={"command": "secret" + "x" * 9000})
    fact = unseen(call, {"session": call.session}, lambda text: text.replace("secret", "***"))
    assert isinstance(fact, GuestCallUnseen)
    assert fact.input.startswith('{"command":"***x')
    assert len(fact.input) <= 4000


def test_only_what_stands_behind_the_sessions_first_event_is_read(tmp_path: Path) -> None:
    found = proven(tmp_path, "claude", 0)
    file, = sessions("claude", FOLDER / "claude")
    session = calls("claude", file)[0].session
    later = held(Layout(tmp_path).store, "claude", session, str(file), digest, 4)
    assert (found.calls, len(found.unseen), len(later.unseen)) == (4, 0, 2)
