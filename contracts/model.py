"""Model calls: every one goes through the gateway, within limits, and is recorded (docs/design.md §4.5).

An actor decides ``model.asked``. The gateway asks the OA for a permit, requests calls (``model.call_requested``), tries
again after failures that pass, and keeps each run (correlation) within its limits. The end is ``model.replied``, the
outcome of the call that succeeded, or ``model.failed``; both name the position of ``model.asked`` as ``ask``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from pmagent.contracts.payload import Effect, OutwardRequest, Payload, Scope, blob, event_type

PROMPT_BYTES_MAX = 512 * 1024
"""Largest request to a model, as JSON: a decision has to fit into a line of the log."""
REPLY_CHARS_MAX = 2_000_000
"""A longer reply is a failure (``too_long``)."""
IMAGES_MAX = 8
"""So many images are shown with one message."""
IMAGE_BYTES_MAX = 5 * 2**20
"""A larger image is a failure (``too_long``); providers take about this much."""


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the parts of requests and replies."""


class ModelTool(Part, frozen=True, kw_only=True):
    """A tool that the model may ask for; ``parameters`` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


class ModelToolCall(Part, frozen=True, kw_only=True):
    """A model's request for a tool: its name and arguments."""

    id: str
    name: str
    args: dict[str, Any]


class ModelImage(Part, frozen=True, kw_only=True):
    """An image that is shown to a model: the blob named ``sha256``."""

    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$"), blob()]
    media_type: Annotated[str, Meta(pattern="^image/[a-z.+-]{1,40}$")] = "image/png"


class ModelMessage(Part, frozen=True, kw_only=True):
    """A message of the conversation. ``tool_calls`` are an assistant's; ``tool_call_id`` says what a tool's message
    answers. ``images`` are a user's, shown behind ``content``; where there are none, the field is absent."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: list[ModelToolCall] = []
    tool_call_id: str = ""
    images: Annotated[list[ModelImage], Meta(min_length=1, max_length=IMAGES_MAX)] | UnsetType = UNSET


class ModelAnswer(Part, frozen=True, kw_only=True):
    """The shape that the answer must have: a name, what it means, and its JSON Schema."""

    name: str
    description: str
    schema: dict[str, Any]


class ModelLimits(Part, frozen=True, kw_only=True):
    """Limits. Of one question: ``attempts`` calls of ``call_seconds`` each. Of the run that it belongs to: ``calls``,
    ``concurrency`` calls at once, ``seconds`` since its first question, ``tokens`` (in and out), ``cost_usd`` (None: no
    limit; with a limit, a model without a price is refused). The usage of a call is known after it, so the last may go
    beyond ``tokens`` and ``cost_usd``. ``patience_minutes``: a provider that limits the rate, fails or cannot be
    reached is waited for so long, however many attempts that takes; absent or 0: ``attempts`` alone count."""

    attempts: Annotated[int, Meta(ge=1, le=10)] = 3
    call_seconds: Annotated[float, Meta(gt=0, le=600)] = 60.0
    calls: Annotated[int, Meta(ge=1, le=1000)] = 16
    concurrency: Annotated[int, Meta(ge=1, le=16)] = 2
    seconds: Annotated[float, Meta(gt=0, le=86_400)] = 300.0
    tokens: Annotated[int, Meta(ge=1, le=100_000_000)] = 200_000
    cost_usd: Annotated[float, Meta(ge=0, le=1_000_000)] | None = None
    patience_minutes: Annotated[float, Meta(ge=0, le=1_440)] | UnsetType = UNSET


class ModelPrice(Part, frozen=True, kw_only=True):
    """US dollars for a million tokens."""

    input_usd: Annotated[float, Meta(ge=0, le=1_000_000)]
    output_usd: Annotated[float, Meta(ge=0, le=1_000_000)]


class ModelUsage(Part, frozen=True, kw_only=True):
    """Tokens of one call as the provider counts them (``counted``), else estimated from lengths."""

    input_tokens: Annotated[int, Meta(ge=0)]
    output_tokens: Annotated[int, Meta(ge=0)]
    counted: bool


@event_type("model.asked", request=True)
class ModelAsked(Payload, frozen=True, kw_only=True):
    """A question. ``engine``: langchain sends ``messages`` to a chat model; dspy runs the signature ``program`` on
    ``inputs``. ``answer`` is the shape asked for; ``tools`` may be asked for instead. ``action`` is the action class of
    the permit that each call needs."""

    engine: Literal["langchain", "dspy"]
    model: str
    action: str
    messages: list[ModelMessage] = []
    tools: list[ModelTool] = []
    answer: ModelAnswer | None = None
    program: str = ""
    inputs: dict[str, Any] = {}
    limits: ModelLimits = ModelLimits()
    price: ModelPrice | None = None


@event_type(
    "model.call_requested",
    effect=Effect(
        repeatable=False, limit_s=630.0, concurrency=8, bulky=True, outcomes=("model.replied", "model.call_failed")
    ),
)
class ModelCallRequested(OutwardRequest, frozen=True, kw_only=True):
    """Attempt number ``attempt`` (from 1) to answer the question at position ``ask``, of at most ``seconds``."""

    ask: int
    attempt: int
    model: str
    action: str
    seconds: float

    def scope(self) -> Scope:
        """See OutwardRequest."""
        return Scope(self.action, f"model:{self.model}")


@event_type("model.replied")
class ModelReplied(Payload, frozen=True, kw_only=True):
    """The call at position ``request`` answered the question at ``ask``: text, tool calls, or both. ``model`` is what
    the provider calls itself, ``finish`` why it stopped; ``latency_ms`` of this call; ``fields`` are a DSPy
    prediction's.

    The answer stands in ``content`` as JSON, in the ``args`` of the tool call that bears the answer's name, or in
    ``fields``; whether it fits is the asker's to judge. A call that is being stopped may reply all the same: behind the
    question's ``model.failed`` it is only what the call has cost.
    """

    request: int
    ask: int
    content: str
    tool_calls: list[ModelToolCall]
    usage: ModelUsage
    latency_ms: Annotated[int, Meta(ge=0)]
    model: str = ""
    finish: str = ""
    fields: dict[str, Any] = {}


ModelErrorCode = Literal[
    "unavailable",  # no such provider or model here, or its package is missing
    "no_key",  # the variable of its key is not set
    "rejected",  # the provider says no: bad request, wrong key, refused content
    "rate_limited",
    "overloaded",  # the provider fails for the moment
    "network",
    "timed_out",
    "too_long",  # the request or the reply
    "malformed",  # the reply cannot be read
]


@event_type("model.call_failed")
class ModelCallFailed(Payload, frozen=True, kw_only=True):
    """The call at position ``request`` gave no reply. ``transient``: another attempt may; ``retry_after_s`` is the
    provider's wish. ``error`` is the type of the exception, never its text; for a key that was refused, also
    the name of its variable."""

    request: int
    ask: int
    code: ModelErrorCode
    error: str
    transient: bool
    retry_after_s: Annotated[float, Meta(ge=0)] | None = None
    latency_ms: Annotated[int, Meta(ge=0)] = 0


@event_type("model.failed")
class ModelFailed(Payload, frozen=True, kw_only=True):
    """The question at position ``ask`` gets no reply. ``text`` says why, for people.

    ``code``: a ModelErrorCode of the last attempt; interrupted (by a crash, a stop, or the gateway's halt), cancelled
    (its permit was taken back), failed (the client raised something unknown); not_permitted; calls, time, tokens, cost,
    no_price (a limit of the run); too_long, invalid (the question itself), busy (too many are open); withdrawn.
    """

    ask: int
    code: str
    text: str
    attempts: int


@event_type("model.withdrawn")
class ModelWithdrawn(Payload, frozen=True, kw_only=True):
    """The caller at position ``ask`` no longer wants the reply: a call that runs is stopped, none is begun.
    Anybody else's word does not count."""

    ask: int
