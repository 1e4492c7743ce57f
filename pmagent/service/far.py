"""Operations that are asked for on another machine, through the database of the log (docs/design.md §11.6).

The database says whose role has connected, and which operator that is: a request is that operator's, and approves
nothing for others. Only operations that say so (``Operation.far``) are carried out.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, Final

import msgspec

from pmagent.clean import json_bytes
from pmagent.edges import OPERATIONS
from pmagent.events.errors import PmagentError
from pmagent.events.evidence import requests_of
from pmagent.events.storage import Asked
from pmagent.service.answer import Answer
from pmagent.service.client import DaemonUnreachable, new_request
from pmagent.service.wire import UNDECODABLE, BadMessage, RemoteError, Reply

REQUEST_BYTES_MAX: Final = 4 << 20

_SECRETS: Final = ("secret", "by_secret")
"""Arguments that must not lie in a table."""


_OF_JOBS: Final = ("orchestra.run", "orchestra.cancel", "audit.cancel")
"""Operations that commands ask for as nobody in particular: over the database they are somebody's."""


class NotFromHere(DaemonUnreachable):
    """The log is held on another machine, and this cannot be asked through its database."""


class NotTheirs(PmagentError, exit_code=7):
    """A request over the database is in somebody else's name."""


class NotTaken(DaemonUnreachable):
    """The holder has not taken the request, and nobody will: nothing was done."""


class FarUnknown(DaemonUnreachable, exit_code=6):
    """The holder may have carried the request out."""


def ask_holder(workspace: Path, holder: str, name: str, arguments: dict[str, Any], seconds: float) -> Answer:
    """Have the holder of the log, which is elsewhere, perform an operation; blocking. Raises NotFromHere, RemoteError,
    NotTaken, FarUnknown, BadMessage; Unreachable, DatabaseRefused."""
    known = OPERATIONS.get(name)
    if known is None or not known.far or any(arguments.get(one) for one in _SECRETS):
        raise NotFromHere(f"the log is held by {holder}, and {name} cannot be asked from here", "ask on that machine")
    arguments = {"request": new_request(name), **arguments}
    content = json_bytes(arguments).decode()
    if len(content) > REQUEST_BYTES_MAX:
        raise BadMessage(f"the request is longer than {REQUEST_BYTES_MAX} bytes", "ask for less at once")
    request = str(arguments["request"])
    with closing(requests_of(workspace)) as requests:
        requests.ask(request, name, content, seconds)
        taken, reply = requests.reply(request, seconds)
        if reply is None and not taken and requests.withdraw(request):
            raise NotTaken(f"{holder} has not taken the request in {seconds:g} s; nothing was done", "pmagent status")
    if reply is None:
        what = f"{holder} has not answered in {seconds:g} s: outcome unknown (request {request})"
        raise FarUnknown(what, "pmagent log tail shows whether it was carried out")
    try:
        found = msgspec.json.decode(reply, type=Reply)
    except UNDECODABLE as error:
        raise BadMessage("the holder's answer is not understood", "is it of another version?") from error
    if found.failure is not None:
        raise RemoteError(found.failure)
    return Answer(document=found.document or {}, exit_code=found.exit_code, warnings=found.warnings)


def permitted(asked: Asked) -> dict[str, Any]:
    """The arguments of a request that may be carried out. Raises NotFromHere, NotTheirs, BadMessage."""
    known = OPERATIONS.get(asked.operation)
    if known is None or not known.far:
        raise NotFromHere(f"{asked.operation[:64]} cannot be asked through the database", "ask on the holder's machine")
    try:
        arguments = msgspec.json.decode(asked.arguments, type=dict[str, Any])
    except UNDECODABLE:
        raise BadMessage("this is not a request", "one JSON object of arguments") from None
    if arguments.get("request") != asked.id or any(arguments.get(one) for one in _SECRETS):
        raise BadMessage("the request has another id, or holds a secret", "pmagent of this release asks well")
    if asked.operation in _OF_JOBS:
        arguments.setdefault("operator", asked.operator)
    for field in ("operator", "operator_id"):
        if arguments.get(field, asked.operator) != asked.operator:
            raise NotTheirs(
                f"role {asked.role} asks as {asked.operator}, and this request is in another name",
                f"--operator {asked.operator}, or the setting pla.operator",
            )
    return arguments
