"""Each harness's way of telling a hook what happens, and of being answered (docs/guests.md).

``read`` turns a hook's payload into one of the neutral shapes below; ``answer`` turns a verdict into what the hook
prints. Both are pure: payloads come in as they were sent, and nothing of the machine is looked at. A payload that does
not fit is ``Unheard``, which a gate refuses. A dialect is a module of this package with the same two functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final, Literal, get_args

import msgspec

from pmagent.contracts.guest_calls import Answer, Harness

DIALECTS: Final = tuple(name for name in get_args(Harness) if name != "script")
"""The harnesses whose hooks are understood."""


class _Shape(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base of the neutral shapes. ``session``: the harness's id of it."""


class Started(_Shape, frozen=True, kw_only=True):
    """A session begins, or goes on (``source``: ``startup``, ``resume``, … as the harness says it). ``version``: the
    harness's; "" where it does not tell."""

    session: str
    cwd: str = ""
    version: str = ""
    model: str = ""
    source: str = ""
    transcript: str = ""


class Ended(_Shape, frozen=True, kw_only=True):
    """A session ends. ``transcript``: the path of the file that the harness keeps of it; "" where there is none."""

    session: str
    reason: str = ""
    cwd: str = ""
    transcript: str = ""


class Asked(_Shape, frozen=True, kw_only=True):
    """A tool is about to be called. ``agent``: the subagent's id ("": the session's own agent); ``call``: the harness's
    id of the call ("" where it gives none); ``server``: the MCP server that offers the tool."""

    session: str
    tool: str
    tool_input: dict[str, Any]
    call: str = ""
    agent: str = ""
    agent_type: str = ""
    server: str = ""
    cwd: str = ""
    transcript: str = ""


class Finished(_Shape, frozen=True, kw_only=True):
    """A tool has come back. ``output``: what it returned, or its error, as the harness shows it. ``tool_input``: what
    it was called with, for a harness that gives calls no id. ``started``: the subagent that it started."""

    session: str
    tool: str
    ok: bool
    call: str = ""
    agent: str = ""
    output: Any = None
    duration_ms: int = 0
    tool_input: dict[str, Any] = {}
    cwd: str = ""
    started: str = ""


class Changed(_Shape, frozen=True, kw_only=True):
    """Settings that rule the hooks are about to change. ``what``: which, as the harness says it; ``path``: the file."""

    session: str
    what: str
    path: str = ""
    cwd: str = ""


class Spawned(_Shape, frozen=True, kw_only=True):
    """A subagent begins."""

    session: str
    agent: str
    agent_type: str = ""
    cwd: str = ""


class Stopped(_Shape, frozen=True, kw_only=True):
    """A subagent ends. ``transcript``: the file that the harness keeps of it."""

    session: str
    agent: str
    agent_type: str = ""
    cwd: str = ""
    transcript: str = ""


class Unheard(_Shape, frozen=True, kw_only=True):
    """A payload that is not understood, and ``why``; a gate refuses it."""

    why: str


Heard = Started | Ended | Asked | Finished | Changed | Spawned | Stopped | Unheard


class Printed(msgspec.Struct, frozen=True):
    """The hook's output, and its exit code."""

    exit: int = 0
    stdout: str = ""
    stderr: str = ""


SILENT: Final = Printed()
"""The answer to what nobody waits for, and to everything in the mode ``observe``: it holds nothing up."""


def read(harness: str, event: str, payload: Mapping[str, Any]) -> Heard:
    """The message that a hook of ``harness`` got at ``event``."""
    if harness not in DIALECTS:
        return Unheard(why=f"{harness} is no harness that pmagent knows")
    try:
        heard: Heard = _dialect(harness).read(event, payload)
    except msgspec.ValidationError as error:
        return Unheard(why=f"{harness}'s {event} is not of a known form: {error}")
    return heard


def answer(harness: str, event: str, answer: Answer | Literal["none", "defer"], reason: str) -> Printed:
    """The hook's output for a verdict on ``event``. ``none``: nothing is said, and the harness goes on as it would
    without a hook. ``defer``: the call waits until the session is resumed, in a harness that can; others refuse.
    ``ask`` refuses: the harness's own question would be answered by who sits at its terminal, and the operators answer
    otherwise; ``reason`` says how to go on. A harness that is not known is refused by exit code 2."""
    if answer == "none":
        return SILENT
    if harness not in DIALECTS:
        return refusal(reason)
    printed: Printed = _dialect(harness).answer(event, answer, reason)
    return printed


def refusal(reason: str) -> Printed:
    """Refuse by exit code 2, with a text on stderr and nothing on stdout: half a JSON object, or a line beside it,
    would let the tool run; this cannot be cut into a consent. It holds in Claude Code, Codex, Gemini CLI and Cursor."""
    return Printed(2, "", (reason.strip() or "refused by pmagent") + "\n")


@cache
def _dialect(harness: str) -> ModuleType:
    return import_module(f"pmagent.guests.dialects.{harness}")
