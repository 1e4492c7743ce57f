"""A provider's real client, against a server of ours: statuses, garbage, silence, tool calls, refusals."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from pmagent.actors.model.models import Models
from pmagent.contracts.model import (
    ModelAnswer,
    ModelFailed,
    ModelLimits,
    ModelReplied,
    ModelTool,
    ModelToolCall,
    ModelUsage,
)
from tests.support.cases import each, on_loop
from tests.support.models import live_gateway
from tests.support.provider import Answer, Provider, completion, error, provider

SHAPE = ModelAnswer(
    name="Verdict", description="The verdict.",
    schema={
        "type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False,
    },
)
LOOK = ModelTool(name="oa.guard.run", description="Runs a guard.", parameters={"type": "object", "properties": {}})


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No proxy between us and our server."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def asked(base: pytest.MonkeyPatch, *answers: Answer, **question: Any) -> tuple[Any, list[Any], Provider]:
    """One question to the provider's client: its end, how calls failed, and what the server saw."""
    with provider(*answers) as server:
        [end], failed = ends_at(server.url, base, **question)
    return end, failed, server


def ends_at(url: str, base: pytest.MonkeyPatch, **question: Any) -> tuple[list[Any], list[Any]]:
    """The end of one question to the provider at ``url``, and how calls failed."""
    base.setenv("OPENAI_API_BASE", url)
    models = Models({"OPENAI_API_KEY": "test-key"})
    ends: list[Any] = []
    failed: list[Any] = []

    @on_loop
    async def ask() -> None:
        async with live_gateway(models) as rig:
            ends.append(await rig.ask(model="openai:gpt-x", **question))
        failed.extend(rig.failed_calls)
        client: Any = models.chat("openai:gpt-x")
        await client.root_async_client.close()  # the loop ends, and with it its connections

    ask()
    return ends, failed


def test_a_completion_is_the_reply_and_the_key_is_the_environments(base: pytest.MonkeyPatch) -> None:
    reply, failed, server = asked(base, completion("hello"))
    assert (reply.content, reply.finish, reply.model) == ("hello", "stop", "gpt-x-2026")
    assert reply.usage == ModelUsage(input_tokens=21, output_tokens=7, counted=True)
    assert (failed, server.keys, server.paths) == ([], ["Bearer test-key"], ["/v1/chat/completions"])
    assert server.seen[0]["messages"] == [{"role": "user", "content": "what is it?"}]


def test_a_limit_of_rate_is_waited_out_and_the_client_itself_does_not_retry(base: pytest.MonkeyPatch) -> None:
    reply, failed, server = asked(base, error(429, retry_after="3"), completion("at last"))
    assert reply.content == "at last"
    assert [(one.code, one.transient, one.retry_after_s) for one in failed] == [("rate_limited", True, 3.0)]
    assert len(server.seen) == 2


@each("answer, code", [
    (error(500), "overloaded"),
    (error(503), "overloaded"),
    (error(529), "overloaded"),
    (Answer(body=b"<html>a proxy's page</html>", headers={"content-type": "application/json"}), "malformed"),
    (Answer(body={"surprise": True}), "malformed"),
])
def test_what_may_pass_is_tried_again(answer: Answer, code: str, base: pytest.MonkeyPatch) -> None:
    failure, failed, server = asked(base, answer, answer, limits=ModelLimits(attempts=2))
    assert isinstance(failure, ModelFailed)
    assert (failure.code, failure.attempts, len(server.seen)) == (code, 2, 2)
    assert [(one.code, one.transient) for one in failed] == [(code, True)] * 2


@each(
    "answer, code",
    [
        (error(400), "rejected"), (error(401), "rejected"), (error(403), "rejected"), (error(404), "rejected"),
        (error(422), "rejected"), (error(413), "too_long"), (error(429, "insufficient_quota"), "rejected"),
    ]
,
)
def test_what_does_not_pass_is_asked_once(answer: Answer, code: str, base: pytest.MonkeyPatch) -> None:
    failure, [failed], server = asked(base, answer)
    assert (failure.code, failure.attempts, len(server.seen)) == (code, 1, 1)
    assert (failed.code, failed.transient) == (code, False)
    assert ("OPENAI_API_KEY" in failure.text) == (answer.status == 401), "which variable holds the key"


def test_silence_ends_with_the_calls_seconds(base: pytest.MonkeyPatch) -> None:
    limits = ModelLimits(attempts=1, call_seconds=0.3)
    failure, [failed], _ = asked(base, Answer(hang=True), limits=limits)
    assert (failure.code, failed.error) == ("timed_out", "TimeoutError")


def test_a_provider_that_is_not_there_is_the_networks_failure(base: pytest.MonkeyPatch) -> None:
    with socket.socket() as held:  # its port is nobody else's, and nobody listens there
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        [end], _ = ends_at(url, base, limits=ModelLimits(attempts=1))
    assert end.code == "network"
    assert end.text.startswith("the provider could not be reached (")


def test_tools_and_answer_are_offered_and_a_call_of_one_is_read(base: pytest.MonkeyPatch) -> None:
    wish = {"id": "c1", "type": "function", "function": {"name": "oa_guard_run", "arguments": '{"name": "oa_state"}'}}
    reply, _, server = asked(base, completion(None, finish="tool_calls", tool_calls=[wish]), tools=[LOOK], answer=SHAPE)
    assert isinstance(reply, ModelReplied)
    assert reply.tool_calls == [ModelToolCall(id="c1", name="oa.guard.run", args={"name": "oa_state"})]
    assert (reply.content, reply.finish) == ("", "tool_calls")
    assert [tool["function"]["name"] for tool in server.seen[0]["tools"]] == ["oa_guard_run", "Verdict"]


def test_arguments_that_are_no_json_are_kept_as_text(base: pytest.MonkeyPatch) -> None:
    wish = {"id": "c1", "type": "function", "function": {"name": "oa_guard_run", "arguments": '{"name": '}}
    reply, _, _ = asked(base, completion(None, finish="tool_calls", tool_calls=[wish]), tools=[LOOK])
    assert (reply.tool_calls, reply.content) == ([], 'oa_guard_run: {"name": ')


def test_a_shape_is_asked_for_as_the_provider_takes_it(base: pytest.MonkeyPatch) -> None:
    reply, _, server = asked(base, completion('{"ok": true}'), answer=SHAPE)
    assert json.loads(reply.content) == {"ok": True}
    wanted = server.seen[0]["response_format"]["json_schema"]
    assert wanted["name"] == "Verdict"
    assert wanted["schema"]["properties"] == SHAPE.schema["properties"]


def test_an_answer_that_misses_the_shape_is_handed_on_as_it_is(base: pytest.MonkeyPatch) -> None:
    reply, failed, _ = asked(base, completion("I think it is fine."), answer=SHAPE)
    assert (reply.content, failed) == ("I think it is fine.", [])


def test_a_refusal_is_told(base: pytest.MonkeyPatch) -> None:
    reply, _, _ = asked(base, completion(None, refusal="I will not"), answer=SHAPE)
    assert (reply.content, reply.finish) == ("I will not", "refusal")


def test_an_answer_that_was_cut_off_is_too_long(base: pytest.MonkeyPatch) -> None:
    failure, [failed], _ = asked(base, completion('{"ok": tr', finish="length"), answer=SHAPE)
    assert (failure.code, failed.transient) == ("too_long", False)
