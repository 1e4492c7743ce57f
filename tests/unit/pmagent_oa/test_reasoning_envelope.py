"""Envelopes: built of a workspace or of what a caller gives, within the program's table, frozen."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from pmagent.actors.kernel.surfaces import PATHS
from pmagent.contracts.kernel import Mode
from pmagent.contracts.reasoning import KernelStateRef
from pmagent.oa.forms import Task
from pmagent.oa.kernel_view import SURFACES
from pmagent.oa.reasoning import build_envelope, envelope_of
from pmagent.oa.reasoning_bridge import PROGRAM_IDS, PROGRAM_TOOLS, EnvelopeError, FrozenDict, freeze
from tests.conftest import Contents
from tests.support.cases import each

PROGRAM = "SafeOPSDecision"
STATE = "share/orchestrator_assistant/STATE.json"
INTERPRETER = "GuardFailureInterpreter"


def write(workspace: Path, path: str, content: Any) -> None:
    """Put content (bytes: the file's own) where a surface lies."""
    file = workspace / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


def given(green: Contents, **more: Any) -> dict[str, Any]:
    """Kernel data of the example's surfaces."""
    return {
        "bootstrap": green["pm_bootstrap_state"], "ssot_index": green["ssot_surface"],
        "reality_summary": green["reality_green_summary"], "oa_state": {}, **more,
    }


def held(workspace: Path, name: str) -> Any:
    """The content of the surface's file."""
    return json.loads((workspace / PATHS[name]).read_text())


def test_an_envelope_shows_the_workspace_as_it_is(workspace: Path) -> None:
    write(workspace, STATE, {"version": 1, "mode": "STRICT"})
    context = {"active_goal": "order", "constraints": ["no_git_push"]}
    write(workspace, PATHS["oa_context"], {"version": 1, "context": context})
    made = build_envelope(PROGRAM, "Tidy the notes", workspace=workspace)
    assert made.program_id == PROGRAM
    assert made.goal == "Tidy the notes"
    kernel = made.kernel_state_ref
    assert kernel.mode == "NORMAL"
    assert kernel.bootstrap == held(workspace, "pm_bootstrap_state")
    assert kernel.ssot_index == held(workspace, "ssot_surface")
    assert kernel.reality_summary == held(workspace, "reality_green_summary")
    assert kernel.oa_state == {"version": 1, "mode": "STRICT"}
    assert made.oa_context == context
    assert made.tools_allowed == list(PROGRAM_TOOLS[PROGRAM])


def test_ids_and_times_are_new_or_as_given(workspace: Path) -> None:
    one, other = (build_envelope(PROGRAM, "g", workspace=workspace) for _ in range(2))
    assert one.envelope_id != other.envelope_id
    assert UUID(one.envelope_id).version == 4
    assert abs(datetime.fromisoformat(one.timestamp) - datetime.now(UTC)) < timedelta(minutes=1)
    named = build_envelope(
        PROGRAM, "g", workspace=workspace, envelope_id=one.envelope_id, timestamp="2026-11-21T12:00:00+01:00"
    )
    assert (named.envelope_id, named.timestamp) == (one.envelope_id, "2026-11-21T12:00:00+01:00")


def test_a_real_workspace_makes_an_envelope(real_workspace: Path) -> None:
    made = build_envelope(PROGRAM, "g", workspace=real_workspace)
    for field, name in (("bootstrap", "PM_BOOTSTRAP_STATE"), ("reality_summary", "REALITY_GREEN_SUMMARY")):
        assert getattr(made.kernel_state_ref, field) == json.loads((real_workspace / f"share/{name}.json").read_text())
    expected: Mode = "NORMAL" if real_workspace.name == "coherent_green" else "DEGRADED"
    assert made.kernel_state_ref.mode == expected


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pm_bootstrap_state", None), ("ssot_surface", None), ("reality_green_summary", None),
        ("reality_green_summary", b"{"), ("pm_bootstrap_state", b"\xff"), ("ssot_surface", b"{}"),
    ],
)
def test_a_broken_kernel_makes_an_envelope_that_says_blocked(workspace: Path, name: str, content: bytes | None) -> None:
    if content is None:
        (workspace / PATHS[name]).unlink()
    else:
        write(workspace, PATHS[name], content)
    made = build_envelope(INTERPRETER, "why?", workspace=workspace)
    field = next(field for field, surface in SURFACES.items() if surface == name)
    assert made.kernel_state_ref.mode == "BLOCKED"
    assert getattr(made.kernel_state_ref, field) == {}


def test_a_place_without_any_surface_makes_an_envelope_that_says_blocked(tmp_path: Path) -> None:
    made = build_envelope(INTERPRETER, "why?", workspace=tmp_path)
    assert msgspec.to_builtins(made.kernel_state_ref) == {
        "mode": "BLOCKED", "bootstrap": {}, "ssot_index": {}, "reality_summary": {}, "oa_state": {},
    }
    assert made.oa_context == {}
    assert list(tmp_path.iterdir()) == [], "nothing was written"


@pytest.mark.parametrize("content", [b"{", b"[]"])
def test_a_state_that_is_broken_is_shown_as_none(workspace: Path, content: bytes) -> None:
    write(workspace, STATE, content)
    made = build_envelope(PROGRAM, "g", workspace=workspace)
    assert made.kernel_state_ref.oa_state == {}
    assert made.kernel_state_ref.mode == "NORMAL", "STATE.json is no surface of the kernel"


def test_a_context_that_is_missing_is_empty(workspace: Path) -> None:
    (workspace / PATHS["oa_context"]).unlink()
    assert build_envelope(PROGRAM, "g", workspace=workspace).oa_context == {}


@pytest.mark.parametrize("content", [b"{", b'{"context": []}'])
def test_a_context_that_is_broken_stops_all_but_the_interpreter(workspace: Path, content: bytes) -> None:
    write(workspace, PATHS["oa_context"], content)
    for program in PROGRAM_IDS:
        if program == INTERPRETER:
            assert build_envelope(program, "why?", workspace=workspace).oa_context == {}
        else:
            with pytest.raises(EnvelopeError, match=r"share/oa/CONTEXT\.json: .*constraints") as caught:
                build_envelope(program, "g", workspace=workspace)
            assert "oa_context" in caught.value.hint
    assert build_envelope(PROGRAM, "g", oa_context={"a": 1}, workspace=workspace).oa_context == {"a": 1}


def nested(depth: int) -> Any:
    """An object so deep."""
    value: Any = 1
    for _ in range(depth):
        value = {"d": value}
    return value


def test_a_surface_that_no_envelope_carries_is_shown_as_none_and_blocks(workspace: Path) -> None:
    """The kernel's reader takes deeper nesting than an envelope does; the interpreter must still be able to run."""
    write(workspace, PATHS["ssot_surface"], {**held(workspace, "ssot_surface"), "deep": nested(90)})
    write(workspace, STATE, {"deep": nested(90)})
    made = build_envelope(INTERPRETER, "why?", workspace=workspace)
    assert made.kernel_state_ref.mode == "BLOCKED"
    assert made.kernel_state_ref.ssot_index == made.kernel_state_ref.oa_state == {}
    assert made.kernel_state_ref.bootstrap == held(workspace, "pm_bootstrap_state")


@pytest.mark.parametrize("context", [{"notes": "n" * 300_000}, {"deep": nested(90)}], ids=["large", "deep"])
def test_a_context_no_envelope_carries_stops_all_but_the_interpreter(workspace: Path, context: dict[str, Any]) -> None:
    write(workspace, PATHS["oa_context"], {"context": {"constraints": ["no_git_push"], **context}})
    with pytest.raises(EnvelopeError, match=r"share/oa/CONTEXT\.json is .*constraints"):
        build_envelope(PROGRAM, "g", workspace=workspace)
    assert build_envelope(INTERPRETER, "why?", workspace=workspace).oa_context == {}


def test_nothing_is_read_when_all_is_given(tmp_path: Path, green: Contents) -> None:
    made = build_envelope(PROGRAM, "g", given(green), {}, workspace=tmp_path / "there is none")
    assert made.kernel_state_ref.mode == "NORMAL"


@pytest.mark.parametrize(
    ("change", "mode"),
    [
        ({}, "NORMAL"), ({"reality_summary": {}}, "BLOCKED"), ({"bootstrap": {}}, "BLOCKED"),
        ({"ssot_index": {"nothing": 1}}, "BLOCKED"),
        ({"reality_summary": {"reality_green": False, "checks": []}}, "DEGRADED"), ({"mode": "DEGRADED"}, "DEGRADED"),
        ({"mode": "NORMAL", "bootstrap": {}}, "NORMAL"),
    ],
)
def test_a_mode_left_out_is_judged_from_the_surfaces(green: Contents, change: dict[str, Any], mode: str) -> None:
    assert build_envelope(PROGRAM, "g", given(green, **change), {}).kernel_state_ref.mode == mode


def test_surfaces_that_are_left_out_are_missing() -> None:
    made = build_envelope(PROGRAM, "g", {}, {})
    assert made.kernel_state_ref.mode == "BLOCKED"
    assert made.kernel_state_ref.ssot_index == {}


def test_a_reference_that_was_made_before_can_be_given(green: Contents) -> None:
    first = build_envelope(PROGRAM, "g", given(green), {})
    again = build_envelope(INTERPRETER, "why?", first.kernel_state_ref, first.oa_context)
    assert again.kernel_state_ref == first.kernel_state_ref
    by_hand = KernelStateRef(mode="BLOCKED", bootstrap={}, ssot_index={}, reality_summary={}, oa_state={"a": [1]})
    assert build_envelope(INTERPRETER, "why?", by_hand, {}).kernel_state_ref == by_hand


def test_what_the_caller_does_later_does_not_show(green: Contents) -> None:
    kernel, context = given(green), {"constraints": ["no_git_push"]}
    tools = list(PROGRAM_TOOLS[PROGRAM])
    made = build_envelope(PROGRAM, "g", kernel, context, tools)
    before = msgspec.json.encode(made)
    kernel["bootstrap"]["branch"] = "another"
    kernel["reality_summary"]["checks"].clear()
    context["constraints"].clear()
    tools.clear()
    assert msgspec.json.encode(made) == before
    with pytest.raises(TypeError, match="is frozen"):
        made.kernel_state_ref.reality_summary["checks"].append({})


@each("data, said", [
    ({"reality": {}}, "kernel_data has no 'reality'"),
    ({"handoff": {}}, "kernel_data has no 'handoff'"),
    ({"mode": "GREEN"}, "mode"),
    ({"mode": None}, "mode"),
    ({"bootstrap": None}, "kernel_data.bootstrap is not a JSON object"),
    ({"bootstrap": {"a": {1}}}, r"kernel_data: bootstrap\.a is not JSON"),
    ({"ssot_index": {"a": float("nan")}}, "is not a number"),
    ([], "kernel_data is a list"),
    ("NORMAL", "kernel_data is a str"),
])
def test_kernel_data_that_is_none_is_refused(data: Any, said: str) -> None:
    with pytest.raises(EnvelopeError, match=said):
        build_envelope(PROGRAM, "g", data, {})


def test_a_misspelt_name_is_answered_with_the_right_one() -> None:
    with pytest.raises(EnvelopeError) as caught:
        build_envelope(PROGRAM, "g", {"reality_sumary": {}}, {})
    assert caught.value.hint == "did you mean reality_summary?"
    with pytest.raises(ValueError, match=f"there are: {', '.join(PROGRAM_IDS)}") as unknown:
        build_envelope("SafeOpsDecision", "g", {}, {})
    assert isinstance(unknown.value, EnvelopeError)
    assert unknown.value.hint == "did you mean SafeOPSDecision?"
    assert unknown.value.exit_code == 2


@each("program", [None, 7, "", "oa.kernel_status", ["SafeOPSDecision"]])
def test_what_names_no_program_is_refused(program: Any) -> None:
    with pytest.raises(EnvelopeError, match="there is no program"):
        build_envelope(program, "g", {}, {})


@each("program", PROGRAM_IDS)
def test_tools_are_of_the_programs_table(program: str) -> None:
    table = PROGRAM_TOOLS[program]
    assert build_envelope(program, "g", {}, {}).tools_allowed == list(table)
    assert build_envelope(program, "g", {}, {}, []).tools_allowed == []
    assert build_envelope(program, "g", {}, {}, iter(table[:1])).tools_allowed == [table[0]]
    foreign = next(tool for tools in PROGRAM_TOOLS.values() for tool in tools if tool not in table)
    wrong: list[Any] = [[foreign], ["oa.shell"], [*table, foreign], "oa.kernel", [None], [{}], [table[0].upper()]]
    for tools in wrong:
        with pytest.raises(EnvelopeError, match=f"{program} may not use") as caught:
            build_envelope(program, "g", {}, {}, tools)
        assert all(tool in caught.value.hint for tool in table)
    with pytest.raises(EnvelopeError, match="tools_allowed is no list"):
        build_envelope(program, "g", {}, {}, 7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"names {table[0]} twice"):
        build_envelope(program, "g", {}, {}, [table[0], table[0]])


@each("goal", ["", " \n", None, 7, "x" * 16_385, "\ud800"])
def test_a_goal_that_is_none_is_refused(goal: Any) -> None:
    with pytest.raises(EnvelopeError, match="goal"):
        build_envelope(PROGRAM, goal, {}, {})


def test_a_forms_context_is_laid_over_the_workspaces(workspace: Path) -> None:
    content = {"active_goal": "old", "constraints": ["no_git_push"], "notes": "kept"}
    write(workspace, PATHS["oa_context"], content)
    task = Task("SafeOPSDecision", "g", {"active_goal": "new", "constraints": ["no_db_writes"]})
    made = envelope_of(task, workspace=workspace)
    assert made.oa_context == {"active_goal": "new", "constraints": ["no_git_push", "no_db_writes"], "notes": "kept"}


def test_frozen_values_may_be_given_again(green: Contents) -> None:
    frozen = freeze(given(green))
    assert isinstance(frozen, FrozenDict)
    assert build_envelope(PROGRAM, "g", frozen, freeze({})).kernel_state_ref.mode == "NORMAL"


SECRET = "correct-horse-battery-staple"


def test_secrets_are_masked_in_the_envelope_of_a_form(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMP_KEY", SECRET)
    task = Task("SafeOPSDecision", f"Sign in with {SECRET}", {"constraints": [SECRET]})
    made = envelope_of(task, workspace=workspace)
    assert made.goal == "Sign in with ***REDACTED***"
    assert SECRET.encode() not in msgspec.json.encode(made)
    with pytest.raises(TypeError, match="is frozen"):
        made.oa_context["constraints"] = []


def test_a_form_that_is_none_without_its_secrets_is_refused(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMP_KEY", "copper")  # shorter than the mask that stands for it
    with pytest.raises(EnvelopeError, match=r"with its secrets masked, .*goal"):
        envelope_of(Task("SafeOPSDecision", "copper " * 2340, {}), workspace=workspace)
