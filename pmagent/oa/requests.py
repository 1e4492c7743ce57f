"""Asking the reasoner: the operation behind ``pmagent.oa.reasoning.run`` and the reasoning commands.

An envelope's id is its request's id, so an envelope that is sent again, after a lost connection or on purpose, gets the
result that it has.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec

from pmagent.actors.model.models import Models
from pmagent.actors.oa.reasoning.runs import sha256_of
from pmagent.contracts.reasoning import DIAGNOSTIC_PROGRAMS, ShapeError, check_envelope
from pmagent.contracts.reasoning_events import EDITION, ReasoningConcluded, ReasoningRefused, ReasoningRequested
from pmagent.events.errors import LogLocked, PmagentError
from pmagent.flat import flat_errors
from pmagent.oa.abandon import AbandoningExecutor
from pmagent.service.answer import Answer
from pmagent.service.client import PATIENCE_SECONDS, TRY_SECONDS, daemon_listens
from pmagent.service.host import Host, RequestReused, open_host
from pmagent.service.pausing import refuse_if_paused
from pmagent.workspace.layout import Layout
from pmagent.workspace.presence import require_workspace

TOOLS_SECONDS: Final = 90.0
"""So long the tools of a run may take altogether, besides the model's own limit."""

OBSERVED_SECONDS: Final = 35.0
WAY_SECONDS: Final = 15.0


class BadReasoning(PmagentError, exit_code=2):
    """The arguments are no request for reasoning; nothing was recorded."""


class ReasoningDenied(PmagentError, exit_code=1):
    """The reasoner does not take the request; it is in the log, with the reasons."""


class KernelUnread(PmagentError, exit_code=1):
    """The surfaces could not be read since the start, so the mode is not known; nothing was recorded."""


class ModelOutOfReach(PmagentError, exit_code=2):
    """The model is an object of this process, and the log is held by another."""


def reason_here(workspace: Path, arguments: dict[str, Any], models: Models) -> Answer:
    """Run a program in this process, with models of the caller's own; blocking. A command that holds the log is waited
    for, as commands wait for each other.

    Raises what ``reason`` raises; ModelOutOfReach when a daemon holds the log, or a command for too long; NotFound
    where no workspace is.
    """
    workspace = workspace.resolve()
    require_workspace(workspace)

    async def here() -> Answer:
        # A model without a way of its own to wait is called in the loop's threads. One that never returns must not keep
        # the answer, that it took too long, from being given.
        asyncio.get_running_loop().set_default_executor(AbandoningExecutor())
        async with open_host(workspace, "oa.reason", resources=(models,)) as host:
            refuse_if_paused(host)
            return await reason(host, arguments)

    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with flat_errors():
                return anyio.run(here)
        except LogLocked as error:
            if daemon_listens(Layout(workspace)) or time.monotonic() > deadline:
                raise ModelOutOfReach(
                    f"{error.message}; a model that is an object of this process cannot be reached from there",
                    "stop the daemon, or name a provider's model instead",
                ) from error
            time.sleep(TRY_SECONDS)


def request_id(envelope_id: str) -> str:
    """The id of the request, and the correlation of the run, that belong to an envelope."""
    return f"reasoning-{envelope_id}"


def as_request(arguments: dict[str, Any]) -> ReasoningRequested:
    """The request that ``arguments`` are. Raises BadReasoning."""
    fields = {name: value for name, value in arguments.items() if name != "request"}
    try:
        asked = msgspec.structs.replace(msgspec.convert(fields, ReasoningRequested), edition=EDITION)
        check_envelope(asked.envelope)
    except msgspec.ValidationError as error:
        raise BadReasoning(f"this is no reasoning that can be asked for: {error}", "correct it") from error
    except ShapeError as error:
        raise BadReasoning(f"this is no reasoning that can be asked for: {error}", _MEND) from error
    except RecursionError:
        raise BadReasoning("the envelope is nested too deep", _MEND) from None
    if not asked.model.isprintable():
        raise BadReasoning("the model's name is no printable text", "name one, e.g. --model anthropic:NAME")
    if asked.engine != "rules" and not asked.model.strip():
        raise BadReasoning(f"the engine {asked.engine} needs a model", "name one, e.g. --model anthropic:NAME")
    if asked.engine == "rules" and asked.model:
        raise BadReasoning("the engine rules uses no model", "leave the model out, or choose the engine langchain")
    return asked


def answer_seconds(arguments: dict[str, Any]) -> float:
    """So long ``reason`` may take to answer, and a while for the way. Raises BadReasoning."""
    asked = as_request(arguments)
    return OBSERVED_SECONDS + _run_seconds(asked) + WAY_SECONDS


async def _known_mode(host: Host, asked: ReasoningRequested) -> None:
    """Wait until the surfaces have been read since the start: before that nobody knows the mode. Only a program that
    runs in every mode goes on without. Raises KernelUnread."""
    with anyio.move_on_after(OBSERVED_SECONDS) as patience:
        await host.ready()
    if patience.cancelled_caught and asked.envelope.program_id not in DIAGNOSTIC_PROGRAMS:
        raise KernelUnread(
            f"the surfaces have not been read in {OBSERVED_SECONDS:g} s, so nobody knows the kernel's mode",
            "pmagent log tail --type kernel.observed shows the last reading; pmagent oa interpret works all the same",
        )


def _run_seconds(asked: ReasoningRequested) -> float:
    return TOOLS_SECONDS + (asked.limits.seconds if asked.engine != "rules" else 0.0)


_MEND: Final = "pmagent.oa.reasoning.build_envelope makes a good one"


async def reason(host: Host, arguments: dict[str, Any]) -> Answer:
    """Run a program: ``{result, engine, tries, position, correlation}``, the result as the bridge's contract has it.

    Raises BadReasoning, Paused, ModelUnavailable, KernelUnread (nothing is recorded then), ReasoningDenied,
    RequestReused, Refused, TimedOut.
    """
    asked = as_request(arguments)
    request = request_id(asked.envelope.envelope_id)
    if asked.engine != "rules":
        if host.runtime.engine.sequencer.seen(request) is None:  # else it has its result, or gets it
            refuse_if_paused(host)  # who waits for it would be told nothing until it is too late
        host.resources[Models].check(asked.engine, asked.model)
    await _known_mode(host, asked)
    try:
        draft = await anyio.to_thread.run_sync(host.drafted, asked, request)
    except msgspec.ValidationError as error:  # a mask may be longer than the secret in whose place it stands
        what = f"with its secrets masked, this is no reasoning that can be asked for: {error}"
        raise BadReasoning(what, "ask with fewer secrets, or in fewer words") from error
    event = await host.ask_draft(draft, {"reasoning.concluded", "reasoning.refused"}, _run_seconds(asked))
    if isinstance(event.data, ReasoningRefused):
        raise ReasoningDenied("; ".join(event.data.reasons), event.data.mend)
    concluded: ReasoningConcluded = event.data
    if concluded.envelope_sha256 != sha256_of(draft.data.envelope):
        raise RequestReused(
            f"the envelope id {asked.envelope.envelope_id} belongs to another envelope (position {concluded.request})",
            "build a new envelope",
        )
    document = {
        "result": msgspec.to_builtins(concluded.result), "engine": concluded.engine, "tries": concluded.tries,
        "position": event.position, "correlation": request,
    }
    return Answer(document=document)
