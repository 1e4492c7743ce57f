"""Calls of LangChain chat models, live: replies in the gateway's words, failures named, nothing else leaves."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from anyio import to_thread
from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from pmagent.actors.model.chat import tool_names
from pmagent.contracts.clock import TimerRequested
from pmagent.contracts.effect import EffectCancelled
from pmagent.contracts.model import (
    REPLY_CHARS_MAX,
    ModelAnswer,
    ModelCallRequested,
    ModelFailed,
    ModelLimits,
    ModelMessage,
    ModelReplied,
    ModelTool,
    ModelToolCall,
    ModelUsage,
    ModelWithdrawn,
)
from tests.support.cases import each, on_loop
from tests.support.gateway import question
from tests.support.live import SECRET
from tests.support.models import Scripted, WithTools, live_gateway, scripted

SHAPE = ModelAnswer(
    name="Verdict", description="The verdict.", schema={"type": "object", "properties": {"ok": {"type": "boolean"}}}
)
LOOK = ModelTool(name="oa.guard.run", description="Runs a guard.", parameters={"type": "object", "properties": {}})


async def test_a_models_text_is_the_reply() -> None:
    said = AIMessage(
        '{"ok": true}', usage_metadata={"input_tokens": 11, "output_tokens": 4, "total_tokens": 15},
        response_metadata={"model_name": "one-2", "finish_reason": "stop"},
    )
    async with live_gateway({"toy:one": scripted(said)}) as rig:
        reply = await rig.ask()
    assert (reply.content, reply.tool_calls, reply.fields) == ('{"ok": true}', [], {})
    assert reply.usage == ModelUsage(input_tokens=11, output_tokens=4, counted=True)
    assert (reply.model, reply.finish) == ("one-2", "stop")


async def test_langchains_own_fakes_are_asked_in_words_alone_because_they_take_no_shapes() -> None:
    listed = FakeListChatModel(responses=["first", "second"])
    generic = GenericFakeChatModel(messages=iter([AIMessage("third")]))
    async with live_gateway({"toy:one": listed, "toy:two": generic}) as rig:
        replies = [await rig.ask(answer=SHAPE), await rig.ask(tools=[LOOK], answer=SHAPE),
                   await rig.ask(model="toy:two", answer=SHAPE)]
    assert [reply.content for reply in replies] == ["first", "second", "third"]


async def test_usage_that_nobody_counts_is_estimated_from_lengths_and_says_so() -> None:
    async with live_gateway({"toy:one": scripted(AIMessage("x" * 400))}) as rig:
        reply = await rig.ask(messages=[ModelMessage(role="user", content="y" * 4000)])
    assert reply.usage.counted is False
    assert reply.usage.output_tokens == 100
    assert 1000 <= reply.usage.input_tokens < 1050


async def test_a_conversation_reaches_the_model_as_it_is() -> None:
    model = scripted(AIMessage("done"))
    call = ModelToolCall(id="c1", name="oa.guard.run", args={"name": "oa_state"})
    conversation = [
        ModelMessage(role="system", content="rules"), ModelMessage(role="user", content="go"),
        ModelMessage(role="assistant", content="", tool_calls=[call]),
        ModelMessage(role="tool", content="green", tool_call_id="c1"),
    ]
    async with live_gateway({"toy:one": model}) as rig:
        await rig.ask(messages=conversation, tools=[LOOK])
    [[system, user, assistant, tool]] = model.seen
    assert (system, user) == (SystemMessage("rules"), HumanMessage("go"))
    assert isinstance(assistant, AIMessage)
    assert [(one["name"], one["args"], one["id"]) for one in assistant.tool_calls] == [
        ("oa_guard_run", {"name": "oa_state"}, "c1")
    ]
    assert isinstance(tool, ToolMessage)
    assert (tool.content, tool.tool_call_id) == ("green", "c1")


async def test_tools_are_offered_beside_the_answer_under_names_that_providers_take() -> None:
    wish = AIMessage("", tool_calls=[{"id": "c1", "name": "oa_guard_run", "args": {"n": 1}}])
    verdict = AIMessage("", tool_calls=[{"id": None, "name": "Verdict", "args": {"ok": True}}])
    model = scripted(wish, verdict, tools=True)
    assert isinstance(model, WithTools)
    async with live_gateway({"toy:one": model}) as rig:
        first, second = await rig.ask(tools=[LOOK], answer=SHAPE), await rig.ask(tools=[LOOK], answer=SHAPE)
    assert [tool["function"]["name"] for tool in model.offered[0]] == ["oa_guard_run", "Verdict"]
    assert model.offered[0][1]["function"]["parameters"] == SHAPE.schema
    assert first.tool_calls == [ModelToolCall(id="c1", name="oa.guard.run", args={"n": 1})]
    assert second.tool_calls == [ModelToolCall(id="call-1", name="Verdict", args={"ok": True})]


async def test_an_answer_of_another_shape_is_the_askers_to_judge() -> None:
    wrong = AIMessage("", tool_calls=[{"id": "c1", "name": "Verdict", "args": {"maybe": 1}}])
    async with live_gateway({"toy:one": scripted(wrong, AIMessage("no JSON"), tools=True)}) as rig:
        first, second = await rig.ask(answer=SHAPE), await rig.ask(answer=SHAPE)
    assert first.tool_calls[0].args == {"maybe": 1}
    assert second.content == "no JSON"


async def test_a_tool_call_that_cannot_be_read_stays_readable() -> None:
    broken = AIMessage(
        "let me see", invalid_tool_calls=[{"id": "c", "name": "oa_guard_run", "args": '{"n": ', "error": "x"}]
    )
    async with live_gateway({"toy:one": scripted(broken)}) as rig:
        reply = await rig.ask()
    assert reply.content == 'let me see\noa_guard_run: {"n": '


@each("content, text", [
    (["one ", {"type": "text", "text": "two"}], "one two"),
    ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "two"}], "two"),
    ([{"type": "tool_use", "id": "1", "name": "n", "input": {}}], ""),
    ([], ""),
])
def test_only_text_blocks_are_text(content: list[Any], text: str) -> None:
    @on_loop
    async def ask() -> None:
        async with live_gateway({"toy:one": scripted(AIMessage(content))}) as rig:
            assert (await rig.ask()).content == text

    ask()


async def test_a_refusal_is_a_reply_that_says_so() -> None:
    said = AIMessage("", additional_kwargs={"refusal": "I will not"}, response_metadata={"finish_reason": "stop"})
    async with live_gateway({"toy:one": scripted(said)}) as rig:
        reply = await rig.ask()
    assert (reply.content, reply.finish) == ("I will not", "refusal")


async def test_a_failure_that_passes_is_tried_again() -> None:
    model = scripted(TimeoutError(), ConnectionResetError(), AIMessage("third time"))
    async with live_gateway({"toy:one": model}) as rig:
        reply = await rig.ask()
    assert reply.content == "third time"
    assert [(one.code, one.error, one.transient) for one in rig.failed_calls] == [
        ("timed_out", "TimeoutError", True), ("network", "ConnectionResetError", True)
    ]


async def test_garbage_is_malformed_and_an_unknown_exception_is_told_as_it_is() -> None:
    async with live_gateway({"toy:one": scripted(KeyError("choices"), ZeroDivisionError())}) as rig:
        failed = await rig.ask(limits=ModelLimits(attempts=2))
    first, second = rig.failed_calls
    assert (first.code, first.error) == ("malformed", "KeyError")
    assert second.error == "ZeroDivisionError"
    assert (failed.code, failed.attempts) == ("failed", 2)


async def test_a_question_that_cannot_be_put_to_the_model_is_no_malformed_reply() -> None:
    class Picky(WithTools):
        """Takes no tools of any kind."""

        def bind_tools(self, tools: Any, **_more: Any) -> Any:
            """See the class."""
            raise ValueError(tools)

    async with live_gateway({"toy:one": Picky(script=[])}) as rig:
        failed = await rig.ask(tools=[LOOK], limits=ModelLimits(attempts=1))
    [end] = rig.failed_calls
    assert (failed.code, end.error, end.place) == ("failed", "ValueError", "actors.model.chat:_bound")


async def test_a_model_that_hangs_is_stopped_after_the_calls_seconds() -> None:
    """The seconds have passed as soon as it hangs, however long the machine took to get there."""
    model, scopes, limits = scripted(), list[anyio.CancelScope](), list[float]()

    @contextmanager
    def fail_after(seconds: float) -> Iterator[None]:
        limits.append(seconds)
        with anyio.fail_after(math.inf) as scope:
            scopes.append(scope)
            yield

    def passed() -> None:
        scopes[-1].deadline = -math.inf

    model.on_hang = passed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pmagent.actors.model.effects.anyio", SimpleNamespace(fail_after=fail_after, to_thread=to_thread))
        async with live_gateway({"toy:one": model}) as rig:
            failed = await rig.ask(limits=ModelLimits(attempts=1, call_seconds=0.05))
    assert (failed.code, failed.text) == ("timed_out", "the provider did not answer in time (TimeoutError)")
    assert (limits, model.hung) == ([0.05], [True])


async def test_withdrawing_stops_a_model_that_hangs() -> None:
    model = scripted()
    async with live_gateway({"toy:one": model}) as rig:
        asked = await rig.runtime.append(question(), "ask", "asker", "run")
        assert asked is not None
        await rig.until(lambda: [event for event in rig.history if isinstance(event.data, ModelCallRequested)])
        await rig.runtime.append(ModelWithdrawn(ask=asked.position), "no", "asker", "run")
        await rig.until(lambda: len([event for event in rig.history if isinstance(event.data, EffectCancelled)]) == 2)
    assert [end.code for end in rig.ends_of(asked.position)] == ["withdrawn"]
    ended = {event.causation for event in rig.history if event.kind == "fact"}
    requested = [event for event in rig.history if isinstance(event.data, ModelCallRequested | TimerRequested)]
    assert ended >= {event.position for event in requested}


async def test_a_reply_that_is_too_long_is_a_failure_that_does_not_pass() -> None:
    async with live_gateway({"toy:one": scripted(AIMessage("x" * REPLY_CHARS_MAX))}) as rig:
        failed = await rig.ask()
    assert (failed.code, failed.attempts) == ("too_long", 1)


async def test_a_large_reply_comes_whole() -> None:
    """It does not fit into a line, so it lies in a blob."""
    async with live_gateway({"toy:one": scripted(AIMessage("x" * 1_500_000))}) as rig:
        reply = await rig.ask()
    assert len(reply.content) == 1_500_000


async def test_what_is_no_json_is_malformed() -> None:
    odd = AIMessage("", tool_calls=[{"id": "c1", "name": "n", "args": {"odd": object()}}])
    lone = AIMessage("\ud800")
    async with live_gateway({"toy:one": scripted(odd, lone)}) as rig:
        failed = await rig.ask(limits=ModelLimits(attempts=2))
    assert [one.code for one in rig.failed_calls] == ["malformed", "malformed"]
    assert (failed.code, failed.attempts) == ("malformed", 2)


async def test_a_secret_that_a_model_says_is_masked_before_it_is_recorded() -> None:
    call = {"id": "c1", "name": "n", "args": {"password": f"it is {SECRET}"}}
    async with live_gateway({"toy:one": scripted(AIMessage(f"the key is {SECRET}.", tool_calls=[call]))}) as rig:
        reply = await rig.ask()
    assert SECRET not in reply.content
    assert reply.content.startswith("the key is ")
    assert SECRET not in json.dumps(reply.tool_calls[0].args)
    assert not [event for event in rig.history if SECRET.encode() in event.raw]


async def test_no_prompt_is_traced_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    from langsmith import utils

    for name in ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(name, "true")
    forget: Any = utils.get_env_var  # which remembers what it read
    forget.cache_clear()
    assert utils.tracing_is_enabled(), "outside the gateway it would be traced"
    plain, shaped = scripted(AIMessage("{}")), scripted(AIMessage("{}"), tools=True)
    try:
        async with live_gateway({"toy:one": plain, "toy:two": shaped}) as rig:
            ends = [await rig.ask(), await rig.ask(model="toy:two", answer=SHAPE)]
    finally:
        monkeypatch.undo()
        forget.cache_clear()
    assert [type(end) for end in ends] == [ModelReplied, ModelReplied], rig.failed_calls
    assert (plain.handlers, shaped.handlers) == ([[]], [[]])


async def test_calls_of_different_runs_go_side_by_side() -> None:
    release = anyio.Event()
    here: list[int] = []

    class Slow(Scripted):
        """Waits until two are here."""

        async def _agenerate(self, messages: Any, *more: Any, run_manager: Any = None, **named: Any) -> Any:
            here.append(1)
            if len(here) == 2:
                release.set()
            await release.wait()
            return await super()._agenerate(messages, *more, run_manager=run_manager, **named)

    model = Slow(script=[AIMessage("a"), AIMessage("b")])
    async with live_gateway({"toy:one": model}) as rig:
        for name in ("one", "two"):
            await rig.runtime.append(question(), f"ask-{name}", "asker", name)
        await rig.until(lambda: sum(isinstance(event.data, ModelReplied) for event in rig.history) == 2)
    assert not [event for event in rig.history if isinstance(event.data, ModelFailed)]


def test_names_that_become_equal_stay_different() -> None:
    names = tool_names(["oa.guard.run", "oa_guard_run", "oa guard run", "x" * 80, "x" * 80, "", "ä"])
    assert names == {
        "oa.guard.run": "oa_guard_run", "oa_guard_run": "oa_guard_run_2", "oa guard run": "oa_guard_run_3",
        "x" * 80: "x" * 60, "": "_", "ä": "__2",
    }
