"""The performer of a run's tool calls: the registry's tools on the workspace, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pmagent.actors.kernel.surfaces import BOOTSTRAP, PATHS, REALITY
from pmagent.contracts.payload import decode, encode, type_of
from pmagent.contracts.reasoning import PROGRAM_TOOLS, TOOL_IDS
from pmagent.contracts.reasoning_events import OaToolFailed, OaToolRequested, OaToolReturned
from pmagent.events.disk import RealDisk
from pmagent.events.event import Event
from pmagent.events.reader import events
from pmagent.events.segments import SegmentReader
from pmagent.oa import effects, reading, reasoning, tools
from pmagent.oa.effects import PERFORMERS
from pmagent.workspace.layout import Layout
from tests.support.live import NoIo

OUTSIDE = [(program, tool) for program, table in PROGRAM_TOOLS.items() for tool in TOOL_IDS if tool not in table]


class At(NoIo):
    """A workspace, and nothing else of the world."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace


async def call(workspace: Path, tool: str, program: str, args: dict[str, Any] | None = None) -> Any:
    """The outcome of a call, requested at position 7."""
    asked = OaToolRequested(run=3, program_id=program, tool_id=tool, args=args or {})  # type: ignore[arg-type]
    name, raw = type_of(asked), encode(asked)
    event = Event(7, "2026-11-21T12:00:00.000000Z", "7", "decision", "reasoner", name, "run", 3, decode(name, raw), raw)
    outcome: Any = await PERFORMERS[OaToolRequested](event, At(workspace))
    assert outcome.request == 7
    assert outcome.tool_id == tool
    return outcome


@pytest.mark.parametrize(("program", "tool"), [(p, t) for p, table in PROGRAM_TOOLS.items() for t in table])
async def test_a_tool_says_through_the_performer_what_it_says_itself(workspace: Path, program: str, tool: str) -> None:
    args = {"name": "handoff_kernel", "mode": "HINT"} if tool == "oa.guard.run" else {}
    outcome = await call(workspace, tool, program, args)
    assert isinstance(outcome, OaToolReturned)
    direct = tools.call(tool, workspace=workspace, **args)
    timeless = {"timestamp": None} if tool == "oa.guard.run" else {}
    assert {**outcome.result, **timeless} == {**direct, **timeless}


@pytest.mark.parametrize(("program", "tool"), OUTSIDE)
async def test_a_tool_outside_the_programs_table_is_not_called(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, program: str, tool: str
) -> None:
    called: list[str] = []
    monkeypatch.setattr(reading, "call", lambda tool_id, **_: called.append(tool_id))
    outcome = await call(workspace, tool, program)
    assert isinstance(outcome, OaToolFailed)
    assert outcome.error == f"{program} may not use {tool}"
    assert called == []


async def test_another_workspace_cannot_be_chosen(workspace: Path, tmp_path: Path) -> None:
    args = {"name": "oa_state", "workspace": str(tmp_path)}
    outcome = await call(workspace, "oa.guard.run", "GuardFailureInterpreter", args)
    assert isinstance(outcome, OaToolFailed)
    assert "workspace" in outcome.error


@pytest.mark.parametrize(
    "args", [{}, {"name": "no_such_guard"}, {"name": "oa_state", "mode": "LOUD"}, {"name": "oa_state", "x": 1}]
)
async def test_arguments_that_the_tool_does_not_take_are_its_failure_in_its_own_words(
    workspace: Path, args: dict[str, Any]
) -> None:
    with pytest.raises(tools.OAToolError) as raised:
        tools.call("oa.guard.run", workspace=workspace, **args)
    outcome = await call(workspace, "oa.guard.run", "GuardFailureInterpreter", args)
    assert isinstance(outcome, OaToolFailed)
    assert (outcome.error, outcome.hint) == (raised.value.message, raised.value.hint)


async def test_a_surface_that_is_missing_or_broken_is_a_failure_that_says_which_and_what_next(workspace: Path) -> None:
    (workspace / PATHS[BOOTSTRAP]).unlink()
    (workspace / PATHS[REALITY]).write_bytes(b"{")
    missing = await call(workspace, "oa.bootstrap_state", "OPSBlockGenerator")
    broken = await call(workspace, "oa.reality_summary", "SafeOPSDecision")
    assert isinstance(missing, OaToolFailed)
    assert isinstance(broken, OaToolFailed)
    assert PATHS[BOOTSTRAP] in missing.error
    assert PATHS[REALITY] in broken.error
    assert missing.hint
    assert broken.hint
    status = await call(workspace, "oa.kernel_status", "SafeOPSDecision")
    assert status.result["mode"] == "BLOCKED", "that is an answer"


@pytest.mark.parametrize("more", [0, 1])
async def test_a_too_large_answer_is_a_failure(workspace: Path, monkeypatch: pytest.MonkeyPatch, more: int) -> None:
    monkeypatch.setattr(effects, "RESULT_BYTES_MAX", 1000)
    text = "x" * (1000 - len(b'{"t":""}') + more)
    monkeypatch.setattr(reading, "call", lambda *_, **__: {"t": text})
    outcome = await call(workspace, "oa.kernel_status", "SafeOPSDecision")
    if more:
        assert isinstance(outcome, OaToolFailed)
        assert "1000 bytes" in outcome.error
    else:
        assert isinstance(outcome, OaToolReturned)


def test_a_live_run_calls_its_tools_and_a_tool_that_cannot_answer_is_recorded_with_its_reason(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = reading.call

    def partly(tool_id: str, **arguments: Any) -> dict[str, Any]:
        if tool_id == "oa.reality_summary":
            raise tools.OAToolError("it was deleted just now", "write it again")
        return whole(tool_id, **arguments)

    monkeypatch.setattr(reading, "call", partly)
    envelope = reasoning.build_envelope("SafeOPSDecision", "Add a page to the manual", workspace=workspace)
    result = reasoning.run(envelope, workspace=workspace)
    calls = [(one.tool_id, one.ok) for one in result.tool_calls]
    assert calls == [("oa.kernel_status", True), ("oa.reality_summary", False)]
    assert result.decision["allowed_action"] == "ABORT", "what is not known counts against"
    log = SegmentReader(RealDisk(), str(Layout(workspace).log))
    recorded: dict[str, list[Any]] = {}
    for stored in events(log):
        recorded.setdefault(stored.type, []).append(decode(stored.type, stored.data))
    log.close()
    assert [one.tool_id for one in recorded["oa.tool_requested"]] == list(PROGRAM_TOOLS["SafeOPSDecision"])
    assert [one.tool_id for one in recorded["oa.tool_returned"]] == ["oa.kernel_status"]
    failed = [(one.tool_id, one.error, one.hint) for one in recorded["oa.tool_failed"]]
    assert failed == [("oa.reality_summary", "it was deleted just now", "write it again")]
    assert [one.result for one in recorded["reasoning.concluded"]] == [result]
