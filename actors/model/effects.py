"""The gateway's contact with the world: performs calls of models (docs/design.md §4.5)."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping

import anyio
import anyio.to_thread

from pmagent.actors.core.actor import Io, Performers, Resources
from pmagent.actors.model import chat, program
from pmagent.actors.model.chat import ImageTooLarge, Reply
from pmagent.actors.model.failures import Failure, failure_of
from pmagent.actors.model.models import Models, ModelUnavailable
from pmagent.contracts.model import REPLY_CHARS_MAX, ModelAsked, ModelCallFailed, ModelCallRequested, ModelReplied
from pmagent.contracts.payload import encode
from pmagent.events.event import Event, parse_time


def resources(environment: Mapping[str, str]) -> Iterable[object]:
    """The models that ``environment`` has keys for."""
    return (Models(environment),)


def performers(resources: Resources) -> Performers:
    """Calls of the host's models."""
    return model_performers(resources[Models])


def model_performers(models: Models) -> Performers:
    """The performer of ``model.call_requested``, with these models."""

    async def call(event: Event, io: Io) -> ModelReplied | ModelCallFailed:
        """Ask the model once, for at most the seconds requested."""
        request: ModelCallRequested = event.data
        asked: ModelAsked = (await io.event(request.ask)).data
        began = time.monotonic()

        def elapsed() -> int:
            return int((time.monotonic() - began) * 1000)

        def failed(error: Exception, why: Failure) -> ModelCallFailed:
            variable = models.variable(asked.model) if why.key else ""
            refused = f": the key in {variable} was refused" if variable else ""
            return ModelCallFailed(
                request=event.position, ask=request.ask, code=why.code, error=f"{type(error).__name__}{refused}",
                transient=why.transient, retry_after_s=why.retry_after_s, latency_ms=elapsed(),
            )

        ready: Callable[[], Awaitable[Reply]] | None = None
        try:
            with anyio.fail_after(request.seconds):
                images = await _images(asked, io)
                # Making a client may import half a package. A thread that was given up ends by itself.
                ready = await anyio.to_thread.run_sync(_ready, models, asked, images, abandon_on_cancel=True)
                reply = await ready()
            return _checked(event.position, request, reply, elapsed())
        except ModelUnavailable as error:
            return failed(error, Failure(error.code))
        except (ReplyTooLong, ImageTooLarge) as error:
            return failed(error, Failure("too_long"))
        except Exception as error:
            called = ready is not None or isinstance(error, TimeoutError)
            known = failure_of(error, parse_time(io.now())) if called else None
            if known is None:
                raise  # it ends as effect.failed, which says where it was raised
            return failed(error, known)

    return {ModelCallRequested: call}


_OFFLINE = "LITELLM_LOCAL_MODEL_COST_MAP"
"""A library that DSPy imports fetches prices from the network, unless this is set. Nothing leaves but calls."""


class ReplyTooLong(Exception):
    """More than ``REPLY_CHARS_MAX`` characters."""


async def _images(asked: ModelAsked, io: Io) -> dict[str, bytes]:
    """The images that the question shows, from the blob store. Raises NotFound, CorruptLog."""
    named = [one.sha256 for message in asked.messages for one in message.images or ()]
    return {sha256: await io.blob(sha256) for sha256 in dict.fromkeys(named)}


def _ready(models: Models, asked: ModelAsked, images: chat.Images) -> Callable[[], Awaitable[Reply]]:
    if asked.engine == "langchain":
        return chat.prepare(models.chat(asked.model), asked, images)
    os.environ[_OFFLINE] = "True"
    run = program.prepare(models.lm(asked.model, asked.limits.call_seconds), asked)
    return lambda: anyio.to_thread.run_sync(run, abandon_on_cancel=True)


def _checked(position: int, request: ModelCallRequested, reply: Reply, latency_ms: int) -> ModelReplied:
    """The reply as a payload that can be recorded. Raises ReplyTooLong; what ``encode`` raises for values that are not
    JSON."""
    replied = ModelReplied(
        request=position, ask=request.ask, content=reply.content, tool_calls=reply.tool_calls, usage=reply.usage,
        latency_ms=latency_ms, model=reply.model, finish=reply.finish, fields=reply.fields,
    )
    if len(encode(replied)) > REPLY_CHARS_MAX:
        raise ReplyTooLong
    return replied
