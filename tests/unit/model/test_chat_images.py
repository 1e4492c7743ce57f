"""Images in questions: taken from the blob store, shown as LangChain has it, counted, and refused where too large."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from pmagent.actors.model.state import IMAGE_TOKENS
from pmagent.contracts.effect import EffectFailed
from pmagent.contracts.model import IMAGE_BYTES_MAX, ModelFailed, ModelImage, ModelLimits, ModelMessage, ModelReplied
from pmagent.contracts.payload import encode
from tests.support.cases import on_loop
from tests.support.gateway import question
from tests.support.models import live_gateway, scripted
from tests.support.provider import completion, error, provider

PNG = b"\x89PNG\r\n\x1a\n of sorts"


def shows(*images: bytes, media_type: str = "image/png") -> list[ModelMessage]:
    """A question about these images."""
    named = [ModelImage(sha256=hashlib.sha256(image).hexdigest(), media_type=media_type) for image in images]
    return [ModelMessage(role="user", content="what is it?", images=named)]


async def test_an_image_is_read_from_its_blob_and_shown_behind_the_text() -> None:
    model = scripted(AIMessage("a tree"))
    async with live_gateway({"toy:one": model}, images=[PNG, b"other"]) as rig:
        reply = await rig.ask(messages=shows(PNG, b"other", media_type="image/webp"))
    assert reply.content == "a tree"
    [[message]] = model.seen
    assert message == HumanMessage([
        {"type": "text", "text": "what is it?"},
        {"type": "image", "base64": base64.b64encode(PNG).decode(), "mime_type": "image/webp"},
        {"type": "image", "base64": base64.b64encode(b"other").decode(), "mime_type": "image/webp"},
    ])


async def test_images_are_counted_where_the_provider_counts_nothing() -> None:
    async with live_gateway({"toy:one": scripted(AIMessage("a"), AIMessage("b"))}, images=[PNG, b"2"]) as rig:
        without = await rig.ask()
        reply = await rig.ask(messages=shows(PNG, b"2"))
    assert reply.usage.counted is False
    assert 0 < reply.usage.input_tokens - 2 * IMAGE_TOKENS - without.usage.input_tokens < 100


async def test_what_a_failed_call_may_have_cost_counts_its_images() -> None:
    limits = ModelLimits(attempts=1, tokens=IMAGE_TOKENS)
    async with live_gateway({"toy:one": scripted(TimeoutError(), AIMessage("b"))}, images=[PNG]) as rig:
        first = await rig.ask(messages=shows(PNG), limits=limits)
        second = await rig.ask(limits=limits)
    assert [first.code, second.code] == ["timed_out", "tokens"]


async def test_an_image_that_is_not_there_ends_the_call_and_never_reaches_the_model() -> None:
    model = scripted(AIMessage("a tree"))
    async with live_gateway({"toy:one": model}) as rig:
        failure = await rig.ask(messages=shows(PNG), limits=ModelLimits(attempts=1))
    assert isinstance(failure, ModelFailed)
    assert (failure.code, model.seen) == ("failed", [])
    assert [type(one) for one in rig.failed_calls] == [EffectFailed]


async def test_an_image_larger_than_providers_take_is_not_sent() -> None:
    model, large = scripted(AIMessage("a tree")), bytes(IMAGE_BYTES_MAX + 1)
    async with live_gateway({"toy:one": model}, images=[large]) as rig:
        failure = await rig.ask(messages=shows(large))
    [failed] = rig.failed_calls
    assert (failed.code, failed.error, failed.transient) == ("too_long", "ImageTooLarge", False)
    assert (failure.code, failure.attempts, model.seen) == ("too_long", 1, [])


async def test_a_client_that_cannot_show_images_rejects_the_question_once() -> None:
    async with live_gateway({"toy:one": scripted(NotImplementedError("images"), AIMessage("x"))}, images=[PNG]) as rig:
        failure = await rig.ask(messages=shows(PNG))
    assert (failure.code, failure.attempts) == ("rejected", 1)


def test_a_message_without_images_is_written_as_it_always_was() -> None:
    assert b"images" not in encode(question())
    assert b'"images":[{' in encode(question(messages=shows(PNG)))


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No proxy between us and our server."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def shown_to(answer: Any, direct: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The end of a question with an image to a provider's real client, and what its server was sent."""
    from pmagent.actors.model.models import Models

    ends: list[Any] = []
    with provider(answer) as server:
        direct.setenv("OPENAI_API_BASE", server.url)
        models = Models({"OPENAI_API_KEY": "test-key"})

        @on_loop
        async def ask() -> None:
            async with live_gateway(models, images=[PNG]) as rig:
                ends.append(await rig.ask(model="openai:gpt-x", messages=shows(PNG)))
            client: Any = models.chat("openai:gpt-x")
            await client.root_async_client.close()

        ask()
    return ends[0], server.seen


def test_a_real_client_sends_the_image_as_its_provider_takes_it(direct: pytest.MonkeyPatch) -> None:
    reply, [seen] = shown_to(completion("a tree"), direct)
    assert isinstance(reply, ModelReplied)
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert seen["messages"] == [{
        "role": "user",
        "content": [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": url}}],
    }]


def test_a_model_that_takes_no_images_is_the_providers_to_reject(direct: pytest.MonkeyPatch) -> None:
    failure, seen = shown_to(error(400, "image_not_supported"), direct)
    assert (failure.code, failure.attempts, len(seen)) == ("rejected", 1, 1)
