"""Operations that are asked for on another machine, through the database of the log (docs/design.md §11.6).

The database says whose role has connected, and which operator that is: a request is that operator's, and approves
nothing for others. Only operations that say so (``Operation.far``) are carried out.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import msgspec

from pmagent.clean import json_bytes
from pmagent.edges import OPERATIONS
from pmagent.events.errors import PmagentError
from pmagent.events.evidence import requests_of
from pmagent.events.storage import Asked, Inbox
from pmagent.service.answer import Answer
from pmagent.service.wire import UNDECODABLE, BadMessage, RemoteError, Reply, Request

if TYPE_CHECKING:
    from pmagent.service.host import Host

LOOK_SECONDS: Final = 1.0
"""The holder looks for requests so often, also where no notification came."""

REQUEST_BYTES_MAX: Final = 4 << 20

ANSWER_TRIES: Final = 60
"""So often an answer is sent; then the asker is left with an unknown outcome."""

_SECRETS: Final = ("secret", "by_secret")
"""Arguments that must not lie in a table."""


_OF_JOBS: Final = ("orchestra.run", "orchestra.cancel", "audit.cancel")
"""Operations that commands ask for as nobody in particular: over the database they are somebody's."""


class NotFromHere(PmagentError, exit_code=5):
    """The log is held on another machine, and this cannot be asked through its database."""


class NotTheirs(PmagentError, exit_code=7):
    """A request over the database is in somebody else's name."""


class NotTaken(PmagentError, exit_code=5):
    """The holder has not taken the request, and nobody will: nothing was done."""


class FarUnknown(PmagentError, exit_code=6):
    """The holder may have carried the request out."""


def ask_holder(workspace: Path, holder: str, name: str, arguments: dict[str, Any], seconds: float) -> Answer:
    """Have the holder of the log, which is elsewhere, perform an operation; blocking. Raises NotFromHere, RemoteError,
    NotTaken, FarUnknown, BadMessage; Unreachable, DatabaseRefused."""
    known = OPERATIONS.get(name)
    if known is None or not known.far or any(arguments.get(one) for one in _SECRETS):
        raise NotFromHere(f"the log is held by {holder}, and {name} cannot be asked from here", "ask on that machine")
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


async def serve_far(host: Host) -> None:
    """Carry out what is asked for on other machines, while this one holds the log."""
    if (lease := host.storage.lease) is None:
        return
    with closing(lease.inbox()) as taking, closing(lease.inbox()) as answering:
        server = _Server(host, answering)
        async with anyio.create_task_group() as tasks:
            while True:
                try:
                    asked = await anyio.to_thread.run_sync(taking.take, LOOK_SECONDS)
                except PmagentError:  # the database is away; if that lasts, the log tells
                    await anyio.sleep(LOOK_SECONDS)
                    continue
                for one in asked:
                    tasks.start_soon(server.serve, one)


class _Server:
    def __init__(self, host: Host, answering: Inbox) -> None:
        self._host = host
        self._answering = answering
        self._turn = anyio.Lock()
        self._at_work: set[str] = set()

    async def serve(self, asked: Asked) -> None:
        if asked.id in self._at_work:  # the epoch was raised meanwhile
            return
        self._at_work.add(asked.id)
        try:
            reply = await self._reply(asked)
            for _ in range(ANSWER_TRIES):
                try:
                    async with self._turn:
                        await anyio.to_thread.run_sync(self._answering.answer, asked.id, reply)
                    return
                except PmagentError:
                    await anyio.sleep(LOOK_SECONDS)
        finally:
            self._at_work.discard(asked.id)

    async def _reply(self, asked: Asked) -> str:
        from pmagent.service.daemon import failure_of, reply_to

        try:
            reply = await reply_to(self._host, Request(asked.operation, permitted(asked)))
        except PmagentError as error:
            reply = failure_of(error)
        return json_bytes(reply).decode()


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
