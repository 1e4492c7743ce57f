"""A question to a LangChain chat model, and its reply in the gateway's words.

The reply is always the raw message: the asker judges an answer that does not fit. The answer is in the text, as JSON,
or, with a model that answers by calling a tool, in the arguments of the call that has the answer's name. ``prepare`` is
the gateway's way to ask; ``ask_now`` is for programs without a gateway.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pmagent.actors.model.state import BYTES_PER_TOKEN, image_tokens
from pmagent.contracts.model import (
    IMAGE_BYTES_MAX,
    ModelAnswer,
    ModelAsked,
    ModelImage,
    ModelMessage,
    ModelTool,
    ModelToolCall,
    ModelUsage,
)

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A model's reply; see ModelReplied."""

    content: str = ""
    tool_calls: list[ModelToolCall] = []
    usage: ModelUsage
    model: str = ""
    finish: str = ""
    fields: dict[str, Any] = {}


class Malformed(ValueError):
    """The reply is none that can be read."""


class ImageTooLarge(Exception):
    """More than ``IMAGE_BYTES_MAX`` bytes: nothing is sent."""


Images = Mapping[str, bytes]
"""The content of images by SHA-256 (hex)."""

NO_IMAGES: Final[Images] = {}

_CLASSES: Final[Mapping[str, str]] = {"JudicialOpinion": "pmagent.contracts.audit"}
"""Answers that are pydantic models: name of the class -> its module. A chat model is bound to the class itself
(docs/design.md §15.8); the question's own schema says the same."""


def prepare(chat: BaseChatModel, asked: ModelAsked, images: Images = NO_IMAGES) -> Callable[[], Awaitable[Reply]]:
    """The call, ready to be made once, with the ``images`` that its messages name. Imports LangChain: call it in a
    thread."""
    from langsmith.run_helpers import tracing_context

    runnable, messages, names = _ready(chat, asked, images)

    async def call() -> Reply:
        with tracing_context(enabled=False):  # whatever the environment says: nothing leaves but the call itself
            produced: Any = await runnable.ainvoke(messages)
        return _read(produced, asked, names)

    return call


def ask_now(chat: BaseChatModel, asked: ModelAsked, images: Images = NO_IMAGES) -> Reply:
    """Make the call in this thread, and wait for the reply. Tracing is as the caller has it. Raises Malformed,
    ImageTooLarge, and whatever the client raises (``actors/model/failures.py`` knows what that means)."""
    runnable, messages, names = _ready(chat, asked, images)
    return _read(runnable.invoke(messages), asked, names)


def _ready(chat: BaseChatModel, asked: ModelAsked, images: Images) -> tuple[Any, list[BaseMessage], dict[str, str]]:
    """The runnable, its messages, and the tools' names as the provider is given them."""
    names = tool_names([*(tool.name for tool in asked.tools), *([asked.answer.name] if asked.answer else [])])
    return _bound(chat, asked, names), [_message(message, names, images) for message in asked.messages], names


def _read(produced: Any, asked: ModelAsked, names: dict[str, str]) -> Reply:
    raw = produced["raw"] if isinstance(produced, dict) else produced
    return reply_of(raw, asked, {given: own for own, given in names.items()})


def _bound(chat: BaseChatModel, asked: ModelAsked, names: dict[str, str]) -> Any:
    """The model with what may be asked for. One that takes neither shapes nor tools is asked in words alone."""
    answer = asked.answer
    try:
        if asked.tools:
            offered = [_function(tool, names) for tool in asked.tools]
            return chat.bind_tools([*offered, *([_function(_as_tool(answer), names)] if answer else [])])
        if answer is not None and answer.name in _CLASSES:
            cls = getattr(import_module(_CLASSES[answer.name]), answer.name)
            way = {"method": "function_calling"} if _validates_itself(chat) else {}
            return chat.with_structured_output(cls, include_raw=True, **way)
        if answer is not None:
            schema = {**answer.schema, "title": names[answer.name], "description": answer.description}
            return chat.with_structured_output(schema, include_raw=True)
    except NotImplementedError:
        return chat
    return chat


def _validates_itself(chat: BaseChatModel) -> bool:
    """Whether the client holds text against a class before anybody has seen the reply, and raises pydantic's error: so
    the clients built on OpenAI's do, unless the answer is a tool call."""
    return any(cls.__module__.startswith("langchain_openai.") for cls in type(chat).__mro__)


def _as_tool(answer: ModelAnswer) -> ModelTool:
    return ModelTool(name=answer.name, description=answer.description, parameters=answer.schema)


def _function(tool: ModelTool, names: dict[str, str]) -> dict[str, Any]:
    """A tool in the form that every LangChain model takes."""
    return {
        "type": "function",
        "function": {"name": names[tool.name], "description": tool.description, "parameters": tool.parameters},
    }


def tool_names(names: Sequence[str]) -> dict[str, str]:
    """Each name with what a provider is told instead: letters, digits, ``_`` and ``-``, at most 64, none twice."""
    given: dict[str, str] = {}
    for name in names:
        safe = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:60] or "_"
        unique, n = safe, 2
        while unique in given.values():
            unique, n = f"{safe}_{n}", n + 1
        given.setdefault(name, unique)
    return given


def _message(message: ModelMessage, names: dict[str, str], images: Images) -> BaseMessage:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    match message.role:
        case "system":
            return SystemMessage(message.content)
        case "user":
            if not message.images:
                return HumanMessage(message.content)
            shown = [_image(one, images[one.sha256]) for one in message.images]
            return HumanMessage([{"type": "text", "text": message.content}, *shown])
        case "tool":
            return ToolMessage(message.content, tool_call_id=message.tool_call_id)
    calls = [
        {"id": call.id, "name": names.get(call.name, call.name), "args": call.args, "type": "tool_call"}
        for call in message.tool_calls
    ]
    return AIMessage(message.content, tool_calls=calls)


def _image(named: ModelImage, content: bytes) -> dict[str, str]:
    """A content block in the form that every LangChain model takes. Raises ImageTooLarge."""
    if len(content) > IMAGE_BYTES_MAX:
        raise ImageTooLarge
    return {"type": "image", "base64": base64.b64encode(content).decode(), "mime_type": named.media_type}


def reply_of(message: Any, asked: ModelAsked, names: dict[str, str]) -> Reply:
    """``message`` (an AIMessage) in our words; ``names`` are the tools' own by those given to the provider. Raises
    Malformed."""
    text = _text(getattr(message, "content", None))
    extra = getattr(message, "additional_kwargs", None) or {}
    refusal = extra.get("refusal")
    finish = "refusal" if isinstance(refusal, str) and refusal and not text else ""
    broken = [
        f"{call.get('name')}: {call.get('args')}" for call in getattr(message, "invalid_tool_calls", None) or []
    ]
    content = "\n".join(part for part in (text or (refusal if finish else ""), *broken) if part)
    calls = [
        ModelToolCall(
            id=str(call.get("id") or f"call-{n}"), name=names.get(call["name"], call["name"]), args=dict(call["args"])
        )
        for n, call in enumerate(getattr(message, "tool_calls", None) or [], 1)
    ]
    metadata = getattr(message, "response_metadata", None) or {}
    return Reply(
        content=content, tool_calls=calls, usage=_usage(message, asked, content, calls),
        model=_word(metadata, "model_name", "model", "model_version"),
        finish=finish or _word(metadata, "finish_reason", "stop_reason", "done_reason"),
    )


def _text(content: object) -> str:
    """The text of a message; other blocks (thinking, tool calls) are not its text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise Malformed("a message without content")
    parts: list[str] = []
    for block in content:
        found = block.get("text") if isinstance(block, dict) and block.get("type", "text") == "text" else block
        if isinstance(found, str):
            parts.append(found)
    return "".join(parts)


def _usage(message: Any, asked: ModelAsked, content: str, calls: list[ModelToolCall]) -> ModelUsage:
    counted = getattr(message, "usage_metadata", None)
    if counted:
        return ModelUsage(
            input_tokens=max(int(counted["input_tokens"]), 0), output_tokens=max(int(counted["output_tokens"]), 0),
            counted=True,
        )
    return estimated(asked, len(content) + len(msgspec.json.encode(calls)) if calls else len(content))


def estimated(asked: ModelAsked, out: int) -> ModelUsage:
    """Usage guessed from the length of the question and that of the reply (characters)."""
    question = len(msgspec.json.encode((asked.messages, asked.inputs, asked.tools, asked.answer)))
    return ModelUsage(
        input_tokens=-(-question // BYTES_PER_TOKEN) + image_tokens(asked),
        output_tokens=-(-out // BYTES_PER_TOKEN), counted=False,
    )


def _word(metadata: Any, *keys: str) -> str:
    return next((value for key in keys if isinstance(value := metadata.get(key), str) and value), "")
