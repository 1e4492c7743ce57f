"""Configured checks and guards: the operation that runs them, and asking for it (docs/checks.md).

``.pmagent/config.toml``, as it is when the operation begins, names the programs: a request names only checks. So
nobody who can only talk to the daemon gets a program started that the workspace does not configure.
"""

from __future__ import annotations

import math
import os
from functools import partial
from typing import Annotated, Any, Final

import anyio
import anyio.to_thread
import msgspec
from msgspec import UNSET, UnsetType

from pmagent.contracts.checks import (
    AT_ONCE,
    CHECKS_MAX,
    CheckKind,
    CheckRequested,
    CheckResult,
    ConfiguredCheck,
    Name,
    Reads,
)
from pmagent.contracts.checks import Seconds as CheckSeconds
from pmagent.events.errors import PmagentError
from pmagent.service.answer import Answer, request_of, understood
from pmagent.service.host import Host
from pmagent.service.pausing import refuse_if_paused
from pmagent.workspace.ask_checks import not_asked, reads_of
from pmagent.workspace.settings import FILE
from pmagent.workspace.surfaces import refresh_surfaces
from pmagent.workspace.trust import resolved

OBSERVED_SECONDS: Final = 35.0
"""So long the first reading of the surfaces since a start is waited for; nothing is permitted before it."""
SANDBOX_SECONDS: Final = 10.0
"""A sandbox may take so long to begin and to end, besides its program's time."""
WAY_SECONDS: Final = 30.0


class BadCheckRequest(PmagentError, exit_code=2):
    """The request cannot be run: it is no request for checks, or they are not configured. Nothing was
    recorded."""


class ChecksRefused(PmagentError, exit_code=1):
    """The checker ran none of the checks; it is in the log, with the reason."""


class _Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: CheckKind
    names: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=CHECKS_MAX)]
    seconds: CheckSeconds
    reads: Reads | UnsetType = UNSET  # those of the settings


def answer_seconds(arguments: dict[str, Any]) -> float:
    """So long the operation may take to answer, and a while for the way. Raises BadCheckRequest."""
    return OBSERVED_SECONDS + _run_seconds(_asked(arguments)) + WAY_SECONDS


def _run_seconds(asked: _Asked) -> float:
    return math.ceil(len(asked.names) / AT_ONCE) * (asked.seconds + SANDBOX_SECONDS) + WAY_SECONDS


def _asked(arguments: dict[str, Any]) -> _Asked:
    what = "this is no request for checks"
    return understood(arguments, _Asked, BadCheckRequest, what, "it needs kind, names, seconds")


async def run(host: Host, arguments: dict[str, Any], request: str) -> Answer:
    """Run configured checks, or guards, by their names: ``{results, position}``, a result each, in the order asked for.

    Raises BadCheckRequest, ConfigError, NotAccepted, ChecksRefused, TimedOut, Refused.
    """
    asked = _asked(arguments)
    workspace = host.layout.workspace
    settings = await anyio.to_thread.run_sync(resolved, workspace, {})
    table = settings.checks if asked.kind == "check" else settings.guards
    if unknown := [name for name in asked.names if name not in table]:
        what = f"there is no {asked.kind} {unknown[0]!r} in {workspace / FILE}"
        raise BadCheckRequest(what, f"there are: {', '.join(table) or 'none'}")
    checks = [ConfiguredCheck(name=name, argv=list(table[name])) for name in asked.names]
    reads = reads_of(settings.settings.kernel) if asked.reads is UNSET else asked.reads
    payload = CheckRequested(kind=asked.kind, checks=checks, seconds=asked.seconds, reads=reads)
    with anyio.move_on_after(OBSERVED_SECONDS):  # without a reading nothing is permitted, and we may just have started
        await host.ready()
    try:
        draft = await anyio.to_thread.run_sync(host.drafted, payload, request)
    except msgspec.ValidationError as error:  # a mask may be longer than the secret in whose place it stands
        what = f"with its secrets masked, this is no request for checks: {error}"
        raise BadCheckRequest(what, f"keep secrets out of {FILE}") from error
    event = await host.ask_draft(draft, {"check.answered"}, _run_seconds(asked))
    if event.data.error:
        raise ChecksRefused(event.data.error, event.data.mend)
    # A name that looks like a secret stands masked in the log, and is still who it is.
    results = [
        msgspec.structs.replace(result, name=name) for name, result in zip(asked.names, event.data.results, strict=True)
    ]
    return Answer(document={"results": msgspec.to_builtins(results), "position": event.position})


async def checks(host: Host, arguments: dict[str, Any]) -> Answer:
    """Run configured checks or guards: ``{results, position}``; see ``run``. Raises Paused: who asks waits
    for the answer, and would be told nothing until effects are resumed."""
    refuse_if_paused(host)
    return await run(host, arguments, request_of(arguments, "kernel.checks"))


def refresh_seconds(_: dict[str, Any]) -> float:
    """Long: how many checks there are, and for how long each may run, stands in the settings of the holder."""
    return 3600.0


async def refresh(host: Host, arguments: dict[str, Any]) -> Answer:
    """Run all configured checks and write the surfaces, for somebody on another machine: ``{results, written}``. Raises
    ConfigError, NotAccepted, WorkspaceError."""
    workspace = host.layout.workspace
    found = await anyio.to_thread.run_sync(resolved, workspace, os.environ)
    results: list[CheckResult] = []
    if found.checks:
        kernel = found.settings.kernel
        asked = {"kind": "check", "names": list(found.checks), "seconds": kernel.check_seconds}
        try:
            answer = await checks(host, {**asked, "request": request_of(arguments, "kernel.refresh")})
            results = msgspec.convert(answer.document["results"], list[CheckResult])
        except PmagentError as error:
            results = not_asked(found, error)
    written = await anyio.to_thread.run_sync(partial(refresh_surfaces, workspace, results=results))
    return Answer(document={"results": msgspec.to_builtins(results), "written": written})
