"""Running envelopes through the Python API: one result, in the log, frozen; settings, models of the caller's own."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from pmagent.events.errors import NotFound, PmagentError
from pmagent.events.line import decode_line
from pmagent.events.lock import WriterLock
from pmagent.oa import requests
from pmagent.oa.reasoning import InEventLoop, build_envelope, run
from pmagent.oa.reasoning_bridge import PROGRAM_IDS, EnvelopeError, ReasoningEnvelope, checked_envelope
from pmagent.oa.requests import BadReasoning, KernelUnread, ModelOutOfReach
from pmagent.service import operations
from pmagent.service.answer import Answer, BadOperation
from pmagent.service.host import Host
from pmagent.workspace.layout import Layout, reachable
from pmagent.workspace.trust import accept
from tests.support.cases import each
from tests.support.commands import pmagent
from tests.support.reasoning import proceeding

PROGRAM = "SafeOPSDecision"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment says nothing about reasoning, and has no keys."""
    for name in ("PMAGENT_WORKSPACE", "PMAGENT_REASONING_ENGINE", "PMAGENT_REASONING_MODEL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def events(workspace: Path, kind: str) -> list[Any]:
    """The payloads of this type in the workspace's log, as plain JSON."""
    found = []
    for file in sorted(Layout(workspace).log.glob("*.jsonl")):
        for line in file.read_bytes().splitlines(keepends=True):
            event = decode_line(line)
            if event.type == kind:
                found.append(msgspec.json.decode(event.data))
    return found


def envelope(workspace: Path, program: str = PROGRAM, goal: str = "Add a page to the manual") -> ReasoningEnvelope:
    return build_envelope(program, goal, workspace=workspace)


@pytest.mark.parametrize("program", PROGRAM_IDS)
def test_a_result_is_a_decision_in_the_log(workspace: Path, program: str) -> None:
    asked = envelope(workspace, program)
    result = run(asked, workspace=workspace)
    assert (result.envelope_id, result.program_id) == (asked.envelope_id, program)
    assert [one["result"] for one in events(workspace, "reasoning.concluded")] == [msgspec.to_builtins(result)]
    assert events(workspace, "reasoning.requested")[0]["envelope"] == msgspec.to_builtins(asked)
    with pytest.raises(TypeError, match="is frozen"):
        result.decision["allowed_action"] = "PROCEED"
    with pytest.raises(TypeError, match="is frozen"):
        result.tool_calls.clear()


def test_the_workspace_may_be_named_by_the_environment(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMAGENT_WORKSPACE", str(workspace))
    assert run(build_envelope(PROGRAM, "Add a page")).program_id == PROGRAM


def test_an_envelope_that_is_run_again_has_the_result_that_it_has(workspace: Path) -> None:
    asked = envelope(workspace)
    first = run(asked, workspace=workspace)
    assert run(msgspec.to_builtins(asked), workspace=workspace) == first
    assert len(events(workspace, "reasoning.concluded")) == 1


def test_a_goal_too_long_with_its_masks_is_refused_unrecorded(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMP_TOKEN", "qzxwvk")
    with pytest.raises(BadReasoning, match="secrets masked") as caught:
        run(envelope(workspace, goal="qzxwvk " * 2_000), workspace=workspace)
    assert "qzxwvk" not in str(caught.value)
    assert events(workspace, "reasoning.requested") == []


def test_a_models_name_is_bounded(workspace: Path) -> None:
    with pytest.raises(BadReasoning, match="model"):
        run(envelope(workspace), workspace=workspace, engine="langchain", model="openai:" + "m" * 200)
    assert events(workspace, "reasoning.requested") == []


def test_the_id_of_another_envelope_is_refused(workspace: Path) -> None:
    asked = envelope(workspace)
    run(asked, workspace=workspace)
    other = checked_envelope({**msgspec.to_builtins(asked), "goal": "Something else"})
    with pytest.raises(PmagentError, match=asked.envelope_id) as caught:
        run(other, workspace=workspace)
    assert caught.value.exit_code == 2
    assert len(events(workspace, "reasoning.concluded")) == 1


@each("given", [None, "SafeOPSDecision", {"program_id": PROGRAM}, {}])
def test_what_is_no_envelope_is_refused_before_anything_is_recorded(workspace: Path, given: Any) -> None:
    with pytest.raises(EnvelopeError, match="this is no envelope"):
        run(given, workspace=workspace)
    assert not (workspace / ".pmagent").exists()


def test_a_place_that_is_no_workspace_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="is no workspace"):
        run(envelope(tmp_path, "GuardFailureInterpreter"), workspace=tmp_path)
    assert list(tmp_path.iterdir()) == []


@each("options, said", [
    ({"engine": "langchain", "model": "anthropic:claude-sonnet-4-5"}, "ANTHROPIC_API_KEY"),
    ({"engine": "dspy", "model": "anthropic:claude-sonnet-4-5"}, "ANTHROPIC_API_KEY"),
    ({"engine": "langchain", "model": "anthropik:x"}, "anthropik"),
    ({"engine": "langchain"}, "needs a model"),
    ({"engine": "langchain", "model": "openai:\udcff"}, "no printable text"),
    ({"engine": "langchain", "model": "openai:x\x1b[2J"}, "no printable text"),
    ({"engine": "gpt"}, "engine"),
    ({"model": "anthropic:x"}, "uses no model"),
    ({"limits": {"attempts": 0}}, "attempts"),
    ({"limits": {"steps": 1}}, "steps"),
    ({"fallback": "perhaps"}, "fallback"),
])
def test_an_engine_without_answer_is_named_and_not_asked(workspace: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(PmagentError, match=said) as caught:
        run(envelope(workspace), workspace=workspace, **options)
    assert caught.value.exit_code == 2
    assert events(workspace, "reasoning.requested") == []


def test_settings_hold_where_nothing_is_given(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / ".pmagent").mkdir()
    (workspace / ".pmagent" / "config.toml").write_text("[reasoning]\nseconds = 7.0\ncalls = 3\n")
    accept(workspace)
    run(envelope(workspace), workspace=workspace, limits={"calls": 2})
    limits = events(workspace, "reasoning.requested")[0]["limits"]
    assert (limits["seconds"], limits["calls"]) == (7.0, 2)
    monkeypatch.setenv("PMAGENT_REASONING_ENGINE", "langchain")
    monkeypatch.setenv("PMAGENT_REASONING_MODEL", "anthropic:claude-sonnet-4-5")
    with pytest.raises(PmagentError, match="ANTHROPIC_API_KEY"):
        run(envelope(workspace), workspace=workspace)
    assert run(envelope(workspace), workspace=workspace, engine="rules").program_id == PROGRAM


def test_a_model_of_the_callers_own_answers(workspace: Path) -> None:
    model = FakeListChatModel(responses=[proceeding(rationale="the model says so")])
    result = run(envelope(workspace), workspace=workspace, model=model)
    assert result.rationale == "the model says so"
    assert [one.details for one in result.diagnostics if one.category == "engine"] == [{"engine": "langchain"}]
    asked = events(workspace, "reasoning.requested")[0]
    assert (asked["engine"], asked["model"]) == ("langchain", "given:FakeListChatModel")


def test_a_model_that_answers_nothing_that_fits_fails_or_is_replaced_by_the_rules(workspace: Path) -> None:
    def model() -> FakeListChatModel:
        return FakeListChatModel(responses=["no JSON"])

    failed = run(envelope(workspace), workspace=workspace, model=model())
    assert (failed.status, failed.decision["allowed_action"]) == ("FAILED", "ABORT")
    assert len(events(workspace, "model.replied")) == 3
    fallen = run(envelope(workspace), workspace=workspace, model=model(), fallback=True)
    assert fallen.status == "DEGRADED"
    assert fallen.decision["allowed_action"] in ("PROCEED", "WARN")


def test_a_model_of_the_callers_own_cannot_run_beside_a_daemon(workspace: Path) -> None:
    asked = envelope(workspace)
    run(asked, workspace=workspace)
    lock = WriterLock(Layout(workspace).evidence.locks[-1], "a daemon of the tests")
    try:
        with (
            listening(Layout(workspace).socket),
            pytest.raises(ModelOutOfReach, match="a daemon of the tests") as caught,
        ):
            run(envelope(workspace), workspace=workspace, model=FakeListChatModel(responses=["x"]))
    finally:
        lock.release()
    assert caught.value.exit_code == 2
    assert len(events(workspace, "reasoning.requested")) == 1


@contextmanager
def listening(path: Path) -> Iterator[None]:
    """Something that accepts connections at ``path``, as a daemon does."""
    with socket.socket(socket.AF_UNIX) as server, reachable(path) as address:
        server.bind(address)
        server.listen()
        yield


def test_a_callers_own_model_waits_for_the_holder_of_the_log(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(envelope(workspace), workspace=workspace)
    lock = WriterLock(Layout(workspace).evidence.locks[-1], "a command of the tests")
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        lock.release()

    monkeypatch.setattr("pmagent.oa.requests.time.sleep", sleep)
    model = FakeListChatModel(responses=[proceeding(rationale="the model says so")])
    assert run(envelope(workspace), workspace=workspace, model=model).rationale == "the model says so"
    assert waited


def test_a_command_that_holds_the_log_for_too_long_is_named(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(envelope(workspace), workspace=workspace)
    monkeypatch.setattr("pmagent.oa.requests.PATIENCE_SECONDS", 0.0)
    lock = WriterLock(Layout(workspace).evidence.locks[-1], "a command of the tests")
    try:
        with pytest.raises(ModelOutOfReach, match="a command of the tests"):
            run(envelope(workspace), workspace=workspace, model=FakeListChatModel(responses=["x"]))
    finally:
        lock.release()


def test_a_model_that_never_returns_does_not_keep_the_answer_from_being_given(workspace: Path) -> None:
    released = threading.Event()
    returned: list[bool] = []

    class Silent(FakeListChatModel):
        def _call(self, *_: Any, **__: Any) -> str:
            returned.append(released.wait(120))
            return ""

    try:
        model, limits = Silent(responses=["x"]), {"seconds": 0.2, "call_seconds": 0.1}
        result = run(envelope(workspace), workspace=workspace, model=model, limits=limits)
        assert returned == []
    finally:
        released.set()
    assert (result.status, result.decision["allowed_action"]) == ("FAILED", "ABORT")


@pytest.mark.parametrize(("options", "least"), [({}, 120), ({"engine": "langchain", "model": "m:n"}, 420)])
def test_a_daemon_is_waited_for_as_long_as_the_run_may_take(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], least: float
) -> None:
    waited: list[float] = []

    async def answer(_layout: Any, name: str, _arguments: dict[str, Any], seconds: float, *_: Any) -> Answer:
        waited.append(seconds)
        raise BadOperation(name)

    monkeypatch.setattr(operations, "call_daemon", answer)
    asked = envelope(workspace)
    run(asked, workspace=workspace)
    lock = WriterLock(Layout(workspace).evidence.locks[-1], "a daemon of the tests")
    try:
        with pytest.raises(BadOperation):
            run(asked, workspace=workspace, limits={"seconds": 300}, **options)
    finally:
        lock.release()
    assert least < waited[0] < least + 60


def test_in_an_event_loop_it_is_called_in_a_thread(workspace: Path) -> None:
    asked = envelope(workspace)

    async def program() -> str:
        result = await anyio.to_thread.run_sync(lambda: run(asked, workspace=workspace))
        return result.envelope_id

    assert anyio.run(program) == asked.envelope_id


@pytest.mark.parametrize("model", [None, FakeListChatModel(responses=["x"])], ids=["no model", "a model"])
def test_in_an_event_loop_itself_it_says_where_to_call_it(workspace: Path, model: FakeListChatModel | None) -> None:
    async def program() -> None:
        run(envelope(workspace), workspace=workspace, model=model)

    with pytest.raises(InEventLoop, match="event loop") as caught:
        anyio.run(program)
    assert "to_thread" in caught.value.hint
    assert events(workspace, "reasoning.requested") == []


def test_a_run_replays_equal(workspace: Path) -> None:
    for program in PROGRAM_IDS:
        run(envelope(workspace, program), workspace=workspace)
    run(envelope(workspace), workspace=workspace, model=FakeListChatModel(responses=[proceeding()]))
    assert pmagent(workspace, "replay").code == 0


def test_a_blocked_kernel_lets_only_the_interpreter_answer(workspace: Path) -> None:
    (workspace / "share" / "REALITY_GREEN_SUMMARY.json").unlink()
    for program in PROGRAM_IDS:
        result = run(envelope(workspace, program), workspace=workspace)
        assert (result.status == "BLOCKED") is (program != "GuardFailureInterpreter"), program
        if result.status == "BLOCKED":
            assert any(one.severity == "block" for one in result.diagnostics)


def test_a_red_kernel_lets_only_the_interpreter_answer(workspace: Path) -> None:
    path = workspace / "share" / "REALITY_GREEN_SUMMARY.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "reality_green": False}))
    for program in PROGRAM_IDS:
        result = run(envelope(workspace, program), workspace=workspace)
        assert (result.status == "BLOCKED") is (program != "GuardFailureInterpreter"), program


def test_before_the_surfaces_have_been_read_only_the_interpreter_runs(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: Host) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr(requests, "OBSERVED_SECONDS", 0)
    monkeypatch.setattr(Host, "ready", never)
    for program in PROGRAM_IDS:
        envelope = build_envelope(program, "phase 1 to phase 2", workspace=workspace)
        if program == "GuardFailureInterpreter":
            assert run(envelope, workspace=workspace).status in ("OK", "DEGRADED")
        else:
            with pytest.raises(KernelUnread):
                run(envelope, workspace=workspace)
    lines = (Layout(workspace).log / "00000000000000000001.jsonl").read_bytes()
    assert lines.count(b'"type":"reasoning.requested"') == 1
