"""One search over all that the console shows: sections, runs, audits, sessions, agents, proposals, events.

The same page answers a browser without scripts and the palette of keys.js, which shows its ``#found``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pmagent.clean import shorten
from pmagent.console.pages.addresses import BadAddress
from pmagent.console.pages.approvals.presentation import title
from pmagent.console.pages.context import PageContext, context_of
from pmagent.console.pages.jobs.cache import PREFIX_CHARS, JobCache, jobs_of
from pmagent.console.pages.reading.searching import until
from pmagent.console.pages.reading.session_list import BEGAN, Kind
from pmagent.console.pages.views import agents
from pmagent.edges import SECTIONS
from pmagent.events.errors import NotFound, PmagentError
from pmagent.events.event import StoredEvent
from pmagent.events.store import LogStore
from pmagent.jobs.history import NoSuchJob
from pmagent.jobs.kinds import AUDITS, RUNS
from pmagent.log.query import text_of
from pmagent.log.ranges import Found, Range, last_of
from pmagent.log.summaries import payload, summary

TEXT_CHARS_MAX: Final = 200
EACH: Final = 6
"""So many of each kind are shown, the newest."""
LOOK_SECONDS: Final = 0.5
"""So long events are looked through; the Log page goes on from there."""
LOOK_EVENTS: Final = 50_000
"""So many events are looked through for jobs that nobody has looked at yet."""
PREFIX_LEAST: Final = 4
PROPOSALS: Final = 100


class Hit(msgspec.Struct, frozen=True):
    """Something that was found: its kind (an icon's name), where it stands, what it is, and what is known of it."""

    kind: str
    address: str
    title: str
    note: str = ""
    state: str = ""


async def show(request: Request) -> Response:
    """``GET /search?q=``. Raises BadAddress, CorruptLog."""
    context, asked = context_of(request), request.query_params.get("q", "").strip()
    if len(asked) > TEXT_CHARS_MAX:
        raise BadAddress(f"q: at most {TEXT_CHARS_MAX} characters are looked for, not {len(asked)}", "give fewer")
    hits: list[Hit] = []
    looked: Found[_At] | None = None
    if asked:
        wanted = asked.casefold()
        hits += _sections(wanted)
        hits += await context.read(_jobs, jobs_of(request), asked)
        hits += [hit for hit in await _told(context) if wanted in f"{hit.title} {hit.note} {hit.address}".casefold()]
        looked = await context.read(_events, context.layout.store, asked)
        hits += [one.hit for one in reversed(looked.events if looked is not None else [])]
    return await context.page(
        request, "search.html", title="Search", section="", command=["pmagent", "log", "tail", "--grep", asked]
        if asked else [], asked=asked, hits=hits, looked=looked, text_max=TEXT_CHARS_MAX,
    )  # fmt: skip


def _sections(wanted: str) -> Iterator[Hit]:
    for one in SECTIONS:
        if one.text.casefold().startswith(wanted):
            yield Hit(one.name, one.address, one.text, one.what)


def _jobs(jobs: JobCache, asked: str) -> list[Hit]:
    """Runs and audits, by the beginnings of their ids and by what they are about. Blocking; raises CorruptLog."""
    found: dict[str, Hit] = {}
    for kind in (RUNS, AUDITS):
        try:
            entries = jobs.catalogue.listed(kind, EACH, text=asked, look=LOOK_EVENTS).entries
            if len(asked) >= PREFIX_LEAST and set(asked) <= PREFIX_CHARS:
                entries = [jobs.catalogue.prefixed([kind], asked, LOOK_EVENTS), *entries]
        except NoSuchJob:
            pass
        except NotFound:
            return []
        for one in entries:
            address = f"/{kind.word}s/{one.job_id}"
            found[address] = Hit(f"{kind.word}s", address, shorten(one.title, 160), one.job_id[:8], one.state)
    return list(found.values())


async def _told(context: PageContext) -> list[Hit]:
    """Proposals and agents' sessions, as the daemon tells of them; none where it does not answer."""
    try:
        proposals: list[dict[str, Any]] = (await context.ask("pla.list", count=PROPOSALS)).document["proposals"]
        sessions: list[dict[str, Any]] = (await context.standing("guests.sessions")).document["sessions"]
    except PmagentError:
        return []
    hits = [
        Hit("approvals", f"/approvals/{one['proposal_id']}", title(one), one["proposal_id"],
            one["outcome"] if one["stands"] == "closed" else one["stands"])
        for one in proposals
    ]  # fmt: skip
    return hits + [
        Hit("agents", agents.address(one["session"]), one["harness"] or "an agent", f"{one['session']} {one['cwd']}")
        for one in sessions
    ]


def _events(store: LogStore, asked: str) -> Found[_At] | None:
    """The newest events in which the text stands, and sessions that began with one of them; None without a log.
    Blocking, for a bounded time; raises CorruptLog."""
    wanted = asked.casefold()

    def pick(run: Sequence[StoredEvent]) -> list[_At]:
        return [
            _At(event.position, _hit(event)) for event in run
            if wanted == str(event.position) or wanted in f"{event.id} {text_of(event)}".casefold()
        ][-2 * EACH :]  # fmt: skip

    try:
        with closing(store.reader()) as storage:
            end = storage.tail().position
            found = last_of(storage, Range(1, end, ""), pick, 2 * EACH, until(LOOK_SECONDS))
    except NotFound:
        return None
    if not (asked.isascii() and asked.isdigit() and 1 <= int(asked[:18]) <= end):
        return found
    position = int(asked[:18])
    others = [one for one in found.events if one.position != position]
    return msgspec.structs.replace(
        found, events=[*others, _At(position, Hit("event", f"/log/{position}", f"Event {position}"))]
    )


class _At(msgspec.Struct, frozen=True):
    position: int
    hit: Hit


def _hit(event: StoredEvent) -> Hit:
    """An event; a session where one begins with it."""
    kinds: tuple[Kind, ...] = ("pla", "oa")
    if any(event.type in BEGAN[kind] for kind in kinds) and (name := payload(event).get("session_id")):
        return Hit("sessions", f"/sessions/{quote(str(name), safe='')}", str(name), event.time)
    return Hit("event", f"/log/{event.position}", f"{event.type}: {shorten(summary(event), 160)}", str(event.position))


routes: list[BaseRoute] = [Route("/search", show, methods=["GET"])]
