"""Each harness's message to a hook, as recorded or as its documents have it, and what the hook may answer."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pmagent.guests import dialects
from pmagent.guests.dialects import DIALECTS, SILENT, Printed, Unheard
from pmagent.guests.harnesses import EVENTS, GATES
from tests.support.cases import each

GOLDEN = sorted((Path(__file__).parents[2] / "golden" / "guests").glob("*.jsonl"))


@each("file", GOLDEN)
def test_payloads_are_heard_as_they_were(file: Path) -> None:
    """Those of Claude Code's and Codex's calls and sessions were recorded from the programs themselves."""
    harness = file.name.partition("-")[0]
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for row in rows:
        assert msgspec.to_builtins(dialects.read(harness, row["event"], row["payload"])) == row["heard"], row["event"]
    assert {row["event"] for row in rows} == set(EVENTS[harness])


def test_every_dialect_has_a_golden_file() -> None:
    assert {file.name.partition("-")[0] for file in GOLDEN} == set(DIALECTS) == set(EVENTS)


REFUSED = {
    "claude": (2, "", "no\n"), "codex": (2, "", "no\n"), "gemini": (2, "", "no\n"), "copilot": (2, "", "no\n"),
    "opencode": (2, "", "no\n"),
    "cursor": (0, '{"permission":"deny","user_message":"no","agent_message":"no"}\n', ""),
}  # fmt: skip
ALLOWED = {
    "claude": '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow",'
              '"permissionDecisionReason":"no"}}\n',
    "cursor": '{"permission":"allow"}\n',
}  # fmt: skip


@each("harness", DIALECTS)
def test_answers_byte_for_byte(harness: str) -> None:
    """``ask`` refuses, too: who sits at the harness's terminal is no operator."""
    event = next(event for event in EVENTS[harness] if event in GATES)
    for said in ("deny", "ask"):
        assert dialects.answer(harness, event, said, "no") == Printed(*REFUSED[harness])
    assert dialects.answer(harness, event, "allow", "no") == Printed(0, ALLOWED.get(harness, ""), "")
    assert dialects.answer(harness, event, "none", "no") == SILENT


def test_a_change_of_settings_is_refused_without_a_word_on_stdout() -> None:
    assert dialects.answer("claude", "ConfigChange", "deny", "no") == Printed(2, "", "no\n")
    assert dialects.answer("claude", "ConfigChange", "allow", "") == SILENT


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=5,
)  # fmt: skip
_NAMES = ("session_id", "sessionID", "conversation_id", "tool_name", "tool_input", "tool_use_id", "args")
_events = st.sampled_from(sorted({event for events in EVENTS.values() for event in events} | {"Other"}))


@given(st.sampled_from([*DIALECTS, "other"]), _events, st.dictionaries(st.sampled_from(_NAMES), _json))
def test_whatever_comes_is_understood_or_unheard(harness: str, event: str, payload: dict[str, object]) -> None:
    """A call has a session, a tool and an input that is an object; everything else is no call."""
    heard = dialects.read(harness, event, payload)
    if isinstance(heard, dialects.Asked):
        assert heard.tool
        assert isinstance(heard.session, str)
        assert isinstance(heard.tool_input, dict)
    if event not in EVENTS.get(harness, ()) and event not in EVENTS["claude"]:
        assert isinstance(heard, Unheard)


@given(st.sampled_from([*DIALECTS, "other"]), st.text(max_size=20))
def test_a_refusal_always_says_something(harness: str, reason: str) -> None:
    """Codex takes exit code 2 with an empty stderr for a broken hook, and lets the tool run."""
    printed = dialects.answer(harness, "PreToolUse", "deny", reason)
    assert harness == "cursor" or (printed.exit == 2 and printed.stderr.strip() and not printed.stdout)
