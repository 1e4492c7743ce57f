"""Requests to the reasoner, and the events of a run: envelope -> tools and models -> result
(docs/design.md §13)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from pmagent.contracts.model import ModelLimits, ModelPrice
from pmagent.contracts.payload import Effect, Payload, event_type
from pmagent.contracts.reasoning import Identifier, ProgramId, ReasoningEnvelope, ReasoningResult, Sha256, ToolId

EngineName = Literal["rules", "langchain", "dspy"]

MODEL_CHARS_MAX = 200
"""Longest name of a model."""

EDITION = 1
"""The edition of the rules that new requests ask for; recorded ones keep theirs."""

TRIES = 3
"""So often a model is asked for output that fits (docs/design.md §13.3)."""


@event_type("reasoning.requested", request=True)
class ReasoningRequested(Payload, frozen=True, kw_only=True):
    """Run the envelope's program. ``engine`` answers; ``model`` names the model of an engine that needs one, e.g.
    ``anthropic:claude-sonnet-4-5``; ``fallback``: the ``rules`` answer, as DEGRADED, when the engine cannot.
    ``edition`` of the rules: from 1 on they doubt a goal that they do not understand."""

    envelope: ReasoningEnvelope
    engine: EngineName = "rules"
    model: Annotated[str, Meta(max_length=MODEL_CHARS_MAX)] = ""
    fallback: bool = False
    limits: ModelLimits = ModelLimits()
    price: ModelPrice | None = None
    edition: Annotated[int, Meta(ge=0)] = 0


@event_type("reasoning.concluded")
class ReasoningConcluded(Payload, frozen=True, kw_only=True):
    """The one result of the envelope requested at position ``request``. ``envelope_sha256`` is of the envelope as
    canonical JSON; ``engine`` answered ("" when no engine was asked); ``tries`` is how often a model was asked."""

    request: int
    envelope_sha256: Sha256
    engine: str
    tries: int
    result: ReasoningResult


@event_type("reasoning.refused")
class ReasoningRefused(Payload, frozen=True, kw_only=True):
    """The request at position ``request`` gets no result of its own: its envelope was requested before (``earlier``),
    or it breaks the envelope's contract. ``reasons`` say which, ``mend`` what to do."""

    request: int
    envelope_id: Identifier
    earlier: int
    reasons: list[str]
    mend: str


@event_type(
    "oa.tool_requested",
    effect=Effect(
        repeatable=True, limit_s=60.0, concurrency=4, bulky=True, outcomes=("oa.tool_returned", "oa.tool_failed")
    ),
)
class OaToolRequested(Payload, frozen=True, kw_only=True):
    """Call a read-only tool of the registry for the run requested at position ``run``. ``asked_as`` names turn
    and number of the model's wish, as 2.0 ("": the program itself wants it)."""

    run: int
    program_id: ProgramId
    tool_id: ToolId
    args: dict[str, Any] = {}
    asked_as: Annotated[str, Meta(max_length=200)] = ""


@event_type("oa.tool_returned")
class OaToolReturned(Payload, frozen=True, kw_only=True):
    """The tool called at position ``request`` answered ``result``."""

    request: int
    tool_id: ToolId
    result: dict[str, Any]


@event_type("oa.tool_failed")
class OaToolFailed(Payload, frozen=True, kw_only=True):
    """The tool called at position ``request`` could not answer; ``error`` and ``hint`` are the tool's own words."""

    request: int
    tool_id: ToolId
    error: str
    hint: str = ""


@event_type("oa.tool_refused")
class OaToolRefused(Payload, frozen=True, kw_only=True):
    """An engine asked, in the run requested at position ``run``, for a tool that it may not use, or with arguments that
    the tool does not take. Nothing was called."""

    run: int
    tool: Annotated[str, Meta(max_length=200)]
    reason: str
    asked_as: Annotated[str, Meta(max_length=200)] = ""


@event_type("oa.context_requested", request=True)
class OaContextRequested(Payload, frozen=True, kw_only=True):
    """Write ``context`` into share/oa/CONTEXT.json, if the file's bytes still have the SHA-256 ``base`` ("": there is
    no file)."""

    context: dict[str, Any]
    base: str


@event_type(
    "oa.context_write_requested",
    effect=Effect(
        repeatable=True, limit_s=30.0, concurrency=1, outcomes=("oa.context_written", "oa.context_unwritten")
    ),
)
class OaContextWriteRequested(Payload, frozen=True, kw_only=True):
    """The write, for the request at position ``request``: atomic, and nothing when the file has changed since."""

    request: int
    base: str


@event_type("oa.context_written")
class OaContextWritten(Payload, frozen=True, kw_only=True):
    """CONTEXT.json holds what was asked for by the write requested at position ``request``."""

    request: int
    path: str
    sha256: Sha256
    size: int


@event_type("oa.context_unwritten")
class OaContextUnwritten(Payload, frozen=True, kw_only=True):
    """CONTEXT.json is as it was: ``reason`` says why (it was changed by somebody else, or cannot be written)."""

    request: int
    reason: str
    mend: str


@event_type("oa.context_answered")
class OaContextAnswered(Payload, frozen=True, kw_only=True):
    """Answer to the request at position ``request``: whether CONTEXT.json holds the context now, and if not, why."""

    request: int
    success: bool
    sha256: str = ""
    error: str = ""
    mend: str = ""
