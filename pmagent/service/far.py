"""Operations that are asked for on another machine, through the database of the log (docs/design.md §11.6): asking,
and what the holder carries out.

The database says whose role has connected, and which operator that is: a request is that operator's, and approves
nothing for others. Only operations that say so (``Operation.far``) are carried out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

import msgspec

from pmagent.actors.core.area import load
from pmagent.clean import json_bytes
from pmagent.edges import OPERATIONS
from pmagent.events.errors import PmagentError
from pmagent.events.evidence import requests_of
from pmagent.events.redact import Redactor, secrets_in
from pmagent.events.storage import Asked
from pmagent.service.answer import Answer
from pmagent.service.client import REPLY_SECONDS, DaemonUnreachable, new_request
from pmagent.service.wire import UNDECODABLE, BadMessage, RemoteError, Reply, stops
from pmagent.workspace.layout import Layout

FAR_BYTES_MAX: Final = 24 << 20
"""A request through the database of the log has so many bytes at most, and so has its answer."""

TAKEN_SECONDS: Final = REPLY_SECONDS
"""So long a request through the database may wait for somebody who takes it."""

LOOK_SECONDS: Final = 30.0
"""So often who waits for an answer looks whether anybody holds the log."""

SECRETS: Final = ("secret", "by_secret")
"""Arguments that must not lie in a table."""

_OF_JOBS: Final = ("orchestra.run", "orchestra.cancel", "orchestra.applied", "audit.run", "audit.cancel")
"""Operations that commands ask for as nobody in particular: over the database they are somebody's."""

_THERE: Final = "ask on the holder's machine; pmagent status says which it is"


class NotFromHere(DaemonUnreachable):
    """The log is held on another machine, and this cannot be asked through its database."""


class NotTaken(DaemonUnreachable):
    """The holder has not taken the request, and nobody will: nothing was done."""


class FarUnknown(DaemonUnreachable, exit_code=6):
    """The holder may have carried the request out."""


class NotTheirs(PmagentError, exit_code=7):
    """A request over the database is in somebody else's name."""


def require_possible(holder: str, name: str, arguments: Mapping[str, Any]) -> None:
    """Raises NotFromHere for what this machine must not ask ``holder``, on another one, and does not answer itself."""
    known = OPERATIONS.get(name)
    if known is None or not (known.far or known.here):
        there = known.there if known is not None else ""
        raise NotFromHere(f"the log is held by {holder}, and {name} cannot be asked from here", there or _THERE)
    for one in () if known.carried else known.own:
        if arguments.get(one):
            raise NotFromHere(f"the log is held by {holder}: {name} with {one} cannot be asked from here", known.there)
    if arguments.get("secret"):
        raise NotFromHere("a secret must not lie in the database of the log", _THERE)


def ask_holder(layout: Layout, holder: str, name: str, arguments: dict[str, Any], seconds: float) -> Answer:
    """Have the holder of the log, which is elsewhere, perform an operation; blocking. Raises NotFromHere, RemoteError,
    NotTaken, FarUnknown, BadMessage; Unreachable, DatabaseRefused; and what carrying its arguments raises."""
    require_possible(holder, name, arguments)
    known = OPERATIONS[name]
    if not known.far:
        raise NotFromHere(f"the log is held by {holder}, and no daemon stands by here", "pmagent up --standby")
    arguments = {key: value for key, value in arguments.items() if key != "by_secret"}  # it holds on this machine alone
    arguments = _masked(name, {"request": new_request(name), **arguments})
    if known.carried:
        arguments = load(known.carried)(arguments)
    content = json_bytes(arguments).decode()
    if len(content.encode()) > FAR_BYTES_MAX:
        raise BadMessage(f"the request is longer than {FAR_BYTES_MAX} bytes", "ask for less at once, or there")
    try:
        found = msgspec.json.decode(_reply(layout, holder, name, arguments["request"], content, seconds), type=Reply)
    except UNDECODABLE as error:
        raise BadMessage("the holder's answer is not understood", "is it of another version?") from error
    if found.failure is not None:
        raise RemoteError(found.failure)
    return Answer(document=found.document or {}, exit_code=found.exit_code, warnings=found.warnings)


def _reply(layout: Layout, holder: str, name: str, request: str, content: str, seconds: float) -> str:
    """The reply to the request. Raises NotTaken, FarUnknown; Unreachable, DatabaseRefused."""
    until = time.monotonic() + seconds
    with closing(requests_of(layout.workspace)) as requests:
        requests.ask(request, name, content, seconds)
        taken, reply = requests.reply(request, min(seconds, TAKEN_SECONDS))
        if reply is None and not taken and requests.withdraw(request):
            raise NotTaken(f"{holder} has not taken the request in time; nothing was done", "pmagent status")
        while reply is None and (left := until - time.monotonic()) > 0 and layout.store.holder().live:
            _, reply = requests.reply(request, min(left, LOOK_SECONDS))
    if reply is None:
        what = f"{holder} has not answered: outcome unknown (request {request})"
        raise FarUnknown(what, "pmagent log tail shows whether it was carried out")
    return reply


def _masked(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as they may lie in a table: without secrets. Who wants to stop something is not kept from it by one
    in their words; all else is refused, as it would be another request. Raises NotFromHere."""
    known = secrets_in(os.environ)
    if known:
        from pmagent.service.secrets import known_secrets  # which takes the engine to import

        known = known_secrets(os.environ)
    masked: dict[str, Any] = Redactor(known).value(arguments)
    if masked != arguments and not stops(name, arguments):
        raise NotFromHere("the request holds what looks like a secret, which must not lie in the database", _THERE)
    return masked


def permitted(asked: Asked) -> dict[str, Any]:
    """The arguments of a request that may be carried out. Raises NotFromHere, NotTheirs, BadMessage."""
    known = OPERATIONS.get(asked.operation)
    if known is None or not known.far:
        there = known.there if known is not None else ""
        raise NotFromHere(f"{asked.operation[:64]} cannot be asked through the database", there or _THERE)
    try:
        arguments = msgspec.json.decode(asked.arguments, type=dict[str, Any])
    except UNDECODABLE:
        raise BadMessage("this is not a request", "one JSON object of arguments") from None
    if arguments.get("request") != asked.id or any(arguments.get(one) for one in SECRETS):
        raise BadMessage("the request has another id, or holds a secret", "pmagent of this release asks well")
    if asked.operation in _OF_JOBS:
        arguments.setdefault("operator", asked.operator)
    for one in known.own:
        if arguments.get(one):
            raise NotFromHere(f"{asked.operation} with {one} cannot be asked through the database", known.there)
    for field in ("operator", "operator_id", "holder"):  # a permit is its asker's own
        if arguments.get(field, asked.operator) != asked.operator:
            raise NotTheirs(
                f"role {asked.role} asks as {asked.operator}, and this request is in another name",
                f"--operator {asked.operator}, or the setting pla.operator; sign in as {asked.operator}",
            )
    return arguments
