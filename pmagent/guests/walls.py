"""The log's record of a wall: that an agent was started behind it, and how that ended (docs/guests.md)."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

import anyio.to_thread
import msgspec

from pmagent.contracts.guest_calls import Harness
from pmagent.contracts.guests import (
    NAME_CHARS_MAX,
    GuestFact,
    GuestSessionEnded,
    GuestSessionStarted,
    GuestWallEnded,
    GuestWallStarted,
)
from pmagent.contracts.orchestra_events import CONTACTS_MAX
from pmagent.contracts.payload import Payload, typed
from pmagent.events.errors import PmagentError
from pmagent.events.reader import events_of_types
from pmagent.guests.presets import PRESETS, UNGATED
from pmagent.guests.wall import Ended, Walled
from pmagent.service.answer import Answer, request_of
from pmagent.service.host import Host, asker
from pmagent.service.operations import call
from pmagent.service.requests import FAR
from pmagent.workspace.layout import Layout

OPERATION: Final = "guests.wall"


class NoGate(PmagentError, exit_code=5):
    """No daemon runs, so nothing would judge the agent's calls; nothing was started."""


class BadWall(PmagentError, exit_code=2):
    """The request is none of a wall's; nothing was recorded."""


def begun(layout: Layout, wall: str, asked: Walled, operator: str) -> None:
    """Record that an agent is about to be started. Raises NoGate, NotFromHere, and what the daemon refuses."""
    holder = layout.store.holder()
    if not holder.live or holder.role != "daemon":
        raise NoGate("no daemon runs here, and without one every call would be refused", "pmagent up --detach")
    started = GuestWallStarted(
        wall=wall, harness=asked.harness, mode=asked.mode, operator_id=operator, program=asked.words[0],
        hosts=[*PRESETS[asked.harness].hosts, *asked.hosts], writes=[str(layout.workspace), *asked.write],
        reads=[*asked.read], login=asked.login,
    )  # fmt: skip
    call(layout.workspace, OPERATION, {"started": msgspec.to_builtins(started)})


def not_started(layout: Layout, wall: str, harness: Harness, why: str) -> None:
    """Record that it could not be started, after ``begun``."""
    over = GuestWallEnded(
        wall=wall, exit_code=None, signal=None, exceeded=f"not started: {why}"[:NAME_CHARS_MAX],
        contacts=[], contacts_dropped=0, planted=[],
    )  # fmt: skip
    call(layout.workspace, OPERATION, {"ended": msgspec.to_builtins(over), "harness": harness})


def ended(layout: Layout, wall: str, harness: Harness, end: Ended) -> None:
    """Record how it ended."""
    outcome = end.outcome
    kept = outcome.contacts[:CONTACTS_MAX]
    over = GuestWallEnded(
        wall=wall, exit_code=outcome.exit_code, signal=outcome.signal, exceeded=outcome.exceeded,
        contacts=list(kept),
        contacts_dropped=outcome.contacts_dropped + len(outcome.contacts) - len(kept),
        planted=list(outcome.planted), branch=end.taken.branch if end.taken is not None else "",
    )  # fmt: skip
    call(layout.workspace, OPERATION, {"ended": msgspec.to_builtins(over), "harness": harness})


async def note(host: Host, arguments: dict[str, Any]) -> Answer:
    """Record the fact that the arguments hold. Raises BadWall."""
    kinds: dict[str, type[Payload]] = {"started": GuestWallStarted, "ended": GuestWallEnded}
    name = next((one for one in kinds if one in arguments), "")
    if not name:
        raise BadWall("neither the start of a wall nor its end is given", "use pmagent guest run")
    try:
        fact = msgspec.convert(arguments[name], kinds[name])
    except msgspec.ValidationError as error:
        raise BadWall(f"this cannot be recorded of a wall: {error}", "use pmagent guest run") from None
    wall: str = getattr(fact, "wall")  # noqa: B009 - both kinds have one
    if asker.get() == FAR:
        starter = await anyio.to_thread.run_sync(_starter, host.layout, wall)
        if starter != arguments["operator"]:
            raise BadWall(f"{arguments['operator']} has started no wall {wall}", "who has started it says how it ended")
    request = request_of(arguments, OPERATION)
    event = await host.tell_draft(host.runtime.intake.fact(fact, request, "operator", wall))
    session = _session(fact) if arguments.get("harness", getattr(fact, "harness", "")) == UNGATED else None
    if session is not None:
        await host.tell_draft(host.runtime.intake.fact(session, f"{request}:session", "operator", session.session))
    return Answer(document={"position": event, "wall": wall})


def _starter(layout: Layout, wall: str) -> str:
    """The operator who has started the wall, as the log says; "": nobody. Blocking. Raises CorruptLog."""
    with closing(layout.store.reader()) as log:
        for stored in events_of_types(log, 1, ("guest.wall_started",), msgspec.json.encode(wall)):
            if stored.correlation == wall:
                return str(typed(stored, layout.store.blobs()).data.operator_id)
    return ""


def _session(fact: Payload) -> GuestFact | None:
    """The session of a program without hooks, which nothing else tells of."""
    match fact:
        case GuestWallStarted():
            cwd = fact.writes[0]
            return GuestSessionStarted(
                session=fact.wall, harness=UNGATED, mode=fact.mode, cwd=cwd, how="wall", wall=fact.wall
            )
        case GuestWallEnded():
            return GuestSessionEnded(session=fact.wall, reason="exit")
    return None
