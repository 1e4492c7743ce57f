"""Ask the reasoning programs: build an envelope, run it (docs/design.md §13.1).

    envelope = build_envelope("SafeOPSDecision", "Add a page to the manual")
    result = run(envelope)
    result.decision["allowed_action"]  # PROCEED, WARN or ABORT

Both block: in a running event loop, call them in a thread.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pmagent.contracts.reasoning import DIAGNOSTIC_PROGRAMS
from pmagent.events.errors import PmagentError
from pmagent.events.log import now
from pmagent.events.redact import Redactor
from pmagent.oa.forms import Task, merged
from pmagent.oa.kernel_view import View, given_kernel, read_view
from pmagent.oa.reading import workspace_path
from pmagent.oa.reasoning_bridge import (
    PROGRAM_IDS,
    PROGRAM_TOOLS,
    EnvelopeError,
    KernelStateRef,
    ReasoningEnvelope,
    ReasoningResult,
    checked_envelope,
    checked_result,
    new_envelope,
)
from pmagent.service.secrets import known_secrets
from pmagent.workspace.settings import resolve
from pmagent.workspace.settings_programs import ConfigError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from pmagent.workspace.settings import ReasoningSettings

Workspace = str | os.PathLike[str] | None

OPERATION: Final = "oa.reason"
_LIMITS: Final = ("attempts", "call_seconds", "calls", "concurrency", "seconds", "tokens", "cost_usd")


class InEventLoop(PmagentError, RuntimeError, exit_code=2):
    """``run`` blocks, and was called where an event loop runs; nothing was recorded."""


class Concluded(msgspec.Struct, frozen=True):
    """How a run ended: its result, the engine that answered ("" when none was asked), how often a model was, and where
    the log has it."""

    result: ReasoningResult
    engine: str
    tries: int
    position: int
    correlation: str


def build_envelope(
    program_id: str, goal: str, kernel_data: Mapping[str, Any] | KernelStateRef | None = None,
    oa_context: Mapping[str, Any] | None = None, tools_allowed: Iterable[str] | None = None, *,
    workspace: Workspace = None, envelope_id: str | None = None, timestamp: str | None = None,
) -> ReasoningEnvelope:
    """A program's envelope, copied and frozen: nothing that is done to the arguments later shows in it.

    ``kernel_data`` and ``oa_context`` left out are read from the workspace as it is now; ``{}`` stands for a surface
    that is missing or broken, and the mode says so. ``kernel_data`` may hold mode, bootstrap, ssot_index,
    reality_summary and oa_state; without a mode, it is judged from the surfaces given. ``tools_allowed`` left out are
    all tools of the program's table. ``envelope_id`` (a UUID) and ``timestamp`` (RFC 3339) left out are new.

    Raises EnvelopeError (a ValueError): no such program, a tool outside its table, what is not JSON, or a CONTEXT.json
    that cannot be read, for its constraints would be lost (a program that permits nothing does without).
    """
    table = _table(program_id)
    view = read_view(workspace) if kernel_data is None or oa_context is None else None
    kernel = given_kernel(kernel_data) if kernel_data is not None else _seen(view).kernel
    context = oa_context if oa_context is not None else _context(program_id, _seen(view))
    return new_envelope({
        "envelope_id": str(uuid.uuid4()) if envelope_id is None else envelope_id,
        "timestamp": now() if timestamp is None else timestamp, "program_id": program_id, "goal": goal,
        "kernel_state_ref": kernel, "oa_context": context,
        "tools_allowed": table if tools_allowed is None else _tools(program_id, tools_allowed),
    })


def envelope_of(task: Task, *, workspace: Workspace = None) -> ReasoningEnvelope:
    """The envelope of a form's task over the workspace as it is now; its context is laid over CONTEXT.json. Secrets are
    masked in it as in the log, for parts of it are printed. Raises EnvelopeError."""
    view = read_view(workspace)
    context = merged(_context(task.program_id, view), task.context)
    made = build_envelope(task.program_id, task.goal, view.kernel, context)
    masked = Redactor(known_secrets(os.environ)).value(made)
    try:
        return checked_envelope(masked)
    except EnvelopeError as error:
        mend = "ask with fewer secrets, or in fewer words; is the value of a variable like *_KEY an ordinary word?"
        raise EnvelopeError(f"with its secrets masked, {error.message}", mend) from error


def run(
    envelope: ReasoningEnvelope | Mapping[str, Any], *, workspace: Workspace = None, engine: str | None = None,
    model: str | BaseChatModel | None = None, fallback: bool | None = None, limits: Mapping[str, Any] | None = None,
) -> ReasoningResult:
    """Run the envelope's program; the result is a decision in the workspace's log. Blocks; through the daemon, or
    without one in this process.

    ``engine`` (rules, langchain, dspy), ``model`` and ``fallback`` left out are the workspace's settings; ``limits``
    are laid over its limits. ``model`` may be a chat model object of LangChain's: the run then happens in this process,
    and no daemon may hold the log. An envelope that is run again answers the result that it has.

    Raises EnvelopeError, InEventLoop, and what asking raises (PmagentError): a setting, key or package that is missing,
    a daemon that cannot be reached.
    """
    place = workspace_path(workspace)
    settings = resolve(str(place), os.environ).settings.reasoning
    ended = conclude(envelope, place, settings, engine=engine, model=model, fallback=fallback, limits=limits)
    return ended.result


def conclude(
    envelope: ReasoningEnvelope | Mapping[str, Any], workspace: Path, settings: ReasoningSettings, *,
    engine: str | None = None, model: str | BaseChatModel | None = None, fallback: bool | None = None,
    limits: Mapping[str, Any] | None = None,
) -> Concluded:
    """``run`` with settings that are known, telling how the run ended."""
    from pmagent.actors.model.models import Models
    from pmagent.oa.requests import reason_here
    from pmagent.service.operations import call

    _outside_event_loops()
    if engine is None and model is not None and not isinstance(model, str):
        engine = "langchain"
    arguments = _request(checked_envelope(envelope), settings, engine, fallback, limits)
    if model is None:
        model = settings.model if arguments["engine"] != "rules" else ""
    if isinstance(model, str):
        answer = call(workspace, OPERATION, {**arguments, "model": model})
    else:
        name = f"given:{type(model).__name__}"
        answer = reason_here(workspace, {**arguments, "model": name}, Models(os.environ, {name: model}))
    document = answer.document
    result = checked_result(document["result"])
    return Concluded(result, document["engine"], document["tries"], document["position"], document["correlation"])


def _outside_event_loops() -> None:
    """Raises InEventLoop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise InEventLoop("run blocks, and an event loop runs in this thread", "await asyncio.to_thread(run, envelope)")


def _request(
    envelope: ReasoningEnvelope, settings: ReasoningSettings, engine: str | None, fallback: bool | None,
    limits: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The arguments of the operation, without the model."""
    limited = {name: getattr(settings, name) for name in _LIMITS}
    priced = {"input_usd": settings.input_usd, "output_usd": settings.output_usd}
    absent = [f"reasoning.{name}" for name, price in priced.items() if price is None]
    if len(absent) == 1:
        raise ConfigError(f"{absent[0]} is not set, though the other price is", "set both prices, or none")
    return {
        "envelope": msgspec.to_builtins(envelope), "engine": settings.engine if engine is None else engine,
        "fallback": settings.fallback if fallback is None else fallback, "limits": {**limited, **(limits or {})},
        "price": None if absent else priced,
    }


def _table(program_id: str) -> tuple[str, ...]:
    """The tools of a program. Raises EnvelopeError."""
    table = PROGRAM_TOOLS.get(program_id) if program_id in PROGRAM_IDS else None
    if table is None:
        near = get_close_matches(str(program_id)[:80], PROGRAM_IDS, 1)
        hint = f"did you mean {near[0]}?" if near else ""
        raise EnvelopeError(f"there is no program {_shown(program_id)}; there are: {', '.join(PROGRAM_IDS)}", hint)
    return table


def _tools(program_id: str, wanted: Iterable[str]) -> list[str]:
    """The tools that a caller allows. Raises EnvelopeError."""
    table = PROGRAM_TOOLS[program_id]
    if isinstance(wanted, str):
        tools = [wanted]
    elif isinstance(wanted, Iterable):
        tools = list(wanted)
    else:
        raise EnvelopeError("tools_allowed is no list of tool ids", f"{program_id} may use: {', '.join(table)}")
    for number, tool in enumerate(tools):
        if tool not in table:
            raise EnvelopeError(f"{program_id} may not use {_shown(tool)}", f"it may use: {', '.join(table)}")
        if tool in tools[:number]:
            raise EnvelopeError(f"tools_allowed names {tool} twice", f"{program_id} may use: {', '.join(table)}")
    return tools


def _shown(value: object) -> str:
    """A value that is wrong, for a message."""
    return repr(value[:80]) if isinstance(value, str) else f"a {type(value).__name__}"


def _seen(view: View | None) -> View:
    assert view is not None, "read because something was left out"
    return view


def _context(program_id: str, view: View) -> dict[str, Any]:
    """The workspace's task context. Raises EnvelopeError."""
    if view.context_fault and program_id not in DIAGNOSTIC_PROGRAMS:
        raise EnvelopeError(
            f"{view.context_fault}: the constraints in it are not known", "repair or delete it, or give oa_context"
        )
    return view.context
