"""A holder of a log in PostgreSQL, to be stopped and killed: it acts on the world by lines of a file."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal

import anyio

from pmagent.actors.core.actor import Performers
from pmagent.core import Effect, Event, Io, Payload, event_type, live
from pmagent.events.postgres.address import parse_address
from pmagent.events.postgres.session import Session
from pmagent.events.postgres.storage import PostgresStorage
from pmagent.events.postgres.store import PostgresLog
from pmagent.service.lease import Fence

Kind = Literal["once", "attended", "again"]


@event_type("holding.asked")
class Asked(Payload, frozen=True, kw_only=True):
    """Somebody asks for an act."""

    kind: Kind


@event_type("holding.once", effect=Effect(repeatable=False, outcomes=("holding.done",)))
class Once(Payload, frozen=True, kw_only=True):
    """An act that must not be repeated."""


@event_type("holding.attended", effect=Effect(repeatable=False, attended=True, outcomes=("holding.done",)))
class Attended(Payload, frozen=True, kw_only=True):
    """One that must be attended."""


@event_type("holding.again", effect=Effect(repeatable=True, outcomes=("holding.done",)))
class Again(Payload, frozen=True, kw_only=True):
    """One that may be repeated."""


@event_type("holding.done")
class Done(Payload, frozen=True, kw_only=True):
    """It is done."""

    request: int


class Boss:
    """Asks for each act."""

    name, hears, initial = "boss", frozenset((Asked,)), int

    def evolve(self, asked: int, _: Event) -> int:
        """Count."""
        return asked + 1

    def decide(self, _: int, event: Event) -> list[Payload]:
        """One act for each fact."""
        return [{"once": Once, "attended": Attended, "again": Again}[event.data.kind]()]


def note(acts: Path, what: str) -> None:
    """Act: a line in the file, with the time."""
    with acts.open("a") as file:
        file.write(f"{what} {time.clock_gettime_ns(time.CLOCK_BOOTTIME)}\n")


async def act(event: Event, _: Io, *, acts: Path) -> Done:
    """Act once."""
    note(acts, f"{os.getpid()} {event.position}")
    return Done(request=event.position)


async def act_on(event: Event, _: Io, *, acts: Path) -> Done:
    """Act until it is ended: by a process of its own, which ends with this one."""
    script = f"while :; do echo {os.getpid()} {event.position} >> '{acts}'; done"
    async with await anyio.open_process(["setpriv", "--pdeathsig", "KILL", "--", "sh", "-c", script]) as process:
        await process.wait()
    return Done(request=event.position)


def performers(acts: Path, how: Callable[..., object] = act) -> Performers:
    """For all kinds of acts."""
    return dict.fromkeys((Once, Attended, Again), partial(how, acts=acts))  # type: ignore[arg-type]


Where = Literal["before", "after", "sending", "waiting", "answered"]


def stop_at(where: Where, number: int) -> None:
    """Stop this process beside the ``number``-th time that it finds its lease live (before, after), or that it appends:
    before that is sent, while it waits for the answer, or behind it."""
    if where in ("before", "after"):
        _stop_at_check(where, number)
    else:
        _stop_at_append(where, number)


def _stop_at_append(where: Where, number: int) -> None:
    append, wait, seen, now = PostgresStorage._append, Session._wait, count(1), [False]

    def stop(here: Where) -> None:
        if now[0] and where == here:
            now[0] = False
            os.kill(os.getpid(), signal.SIGSTOP)

    def appended(self: PostgresStorage, *given: Any) -> None:
        now[0] = next(seen) == number
        stop("sending")
        append(self, *given)
        stop("answered")

    def waited(self: Session, *given: Any) -> None:
        stop("waiting")
        wait(self, *given)

    PostgresStorage._append = appended  # type: ignore[assignment, method-assign]
    Session._wait = waited  # type: ignore[assignment, method-assign]


def _stop_at_check(where: Where, number: int) -> None:
    ask, seen = Fence.live, count(1)

    def asked(self: Fence) -> bool:
        is_it = self._lease.live() and next(seen) == number
        if is_it and where == "before":
            os.kill(os.getpid(), signal.SIGSTOP)
        found = ask(self)
        if is_it and where == "after":
            os.kill(os.getpid(), signal.SIGSTOP)
        return found

    Fence.live = asked  # type: ignore[method-assign]


def hold(place: str, acts: Path, kind: Kind, out: int, *, on: bool = False) -> None:
    """Ask for one act after the other, until killed; each that is durable is told."""
    anyio.run(partial(_hold, place, acts, kind, out, on=on))


async def _hold(place: str, acts: Path, kind: Kind, out: int, *, on: bool) -> None:
    store = PostgresLog(parse_address(place), acts.parent / f"blobs-{os.getpid()}", replicated=False)
    async with live(store, [Boss()], performers(acts, act_on if on else act)) as runtime:
        for number in range(1_000_000):
            event = await runtime.append(Asked(kind=kind), f"{os.getpid()}-{number}", "tests")
            assert event is not None
            os.write(out, f"{event.position}\n".encode())
            await anyio.sleep(0.02 if not on else 1.0)
