"""The page Log: what ``pmagent log tail`` shows, with the same filters, page by page and live."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Final

import msgspec
from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from pmagent.console.pages.addresses import BadAddress, address, number
from pmagent.console.pages.context import context_of, form_of, visitor_of
from pmagent.console.pages.reading.explorer import Overview, overview
from pmagent.console.pages.reading.lines import rows
from pmagent.console.pages.reading.log_address import COUNT_MAX, PATH, SEVERAL, LogPageQuery, read
from pmagent.console.pages.reading.saved import (
    ADDRESS_CHARS_MAX,
    NAME_CHARS_MAX,
    Saved,
    remove,
    save,
    saved,
)
from pmagent.console.pages.reading.searching import picking, until
from pmagent.events.errors import NotFound, PmagentError
from pmagent.events.event import StoredEvent
from pmagent.events.store import LogStore
from pmagent.log.find import NotYetFound, position_of
from pmagent.log.ranges import Found, Range, first_of, last_of, range_of
from pmagent.log.summaries import known

LOOK_SECONDS: Final = 2.0
"""So long is looked for a page's events; then the page says how far it came, and where it goes on."""
STEPS_MAX: Final = 18
"""So many requests look for one id: a browser follows twenty redirects."""
ROWS_MAX: Final = 500
"""So many rows stand in a page that is followed."""


class Row(msgspec.Struct, frozen=True):
    """An event as it stands on the page; the event itself is let go, for it may be large."""

    position: int
    html: Markup


class LogPage(msgspec.Struct, frozen=True):
    """The result for an address in a log that ended at ``end``."""

    found: Found[Row]
    span: Range
    end: int


async def show(request: Request) -> Response:
    """``GET /log``. An error in the address is shown at its field, with status 400."""
    context = context_of(request)
    asked, wrong = read(request.query_params)
    looked, trouble = None, None
    if not wrong:
        try:
            position = getattr(request.state, "position", 0) or context.position()
            looked = await context.read(look, context.layout.store, asked, position)
        except NotFound:
            looked = None
        except PmagentError as error:
            trouble = error
    found: Found[Row] = looked.found if looked is not None else Found([], 1, 0)
    ordered = reversed(found.events) if asked.newest == "first" else found.events
    seen, uncounted = None, None
    if looked is not None:
        try:
            seen = await context.read(_overview, context.layout.store, asked, looked)
        except PmagentError as error:
            uncounted = error
    newer, older, onward = _ways(asked, looked) if looked is not None else ("", "", "")
    last = found.last if newer else None
    return await context.page(
        request, "log.html", title="Log", section="log", status=400 if wrong else 200,
        command=[] if wrong or trouble else asked.command(looked.span if looked else None, last),
        asked=asked, wrong=wrong, rows=Markup("").join(row.html for row in ordered), found=found,
        broken=trouble or found.trouble or uncounted,
        newer=newer, older=older, onward=onward, tail=_tail(asked, looked), rows_max=max(ROWS_MAX, asked.count),
        fields=_fields(request, asked, wrong), end=looked.end if looked is not None else 0, known=known(),
        seen=seen, saved=saved(context.paths.saved_filters), here_query=asked.address().partition("?")[2],
        name_max=NAME_CHARS_MAX,
        count_max=COUNT_MAX, empty_log=looked is None and not wrong and trouble is None,
    )


def _overview(store: LogStore, asked: LogPageQuery, looked: LogPage) -> Overview:
    return overview(store, asked, looked.span, min(looked.end, asked.before - 1) if asked.before else looked.end)


def look(store: LogStore, asked: LogPageQuery, position: int) -> LogPage:
    """The page's events among those up to ``position``; blocking, for a bounded time. Raises NotFound, CorruptLog."""
    with closing(store.reader()) as storage, picking(asked.query) as pick:
        span = range_of(storage, asked.since, asked.until, asked.after or 0, datetime.now(UTC))
        stops = [stop for stop in (span.stop, asked.before - 1 if asked.before else None) if stop is not None]
        known = msgspec.structs.replace(span, stop=min([*stops, position]))
        forward = asked.after is not None
        shown = slice(asked.count) if forward else slice(-asked.count, None)

        def made(run: Sequence[StoredEvent]) -> list[Row]:
            return [Row(event.position, rows([event])) for event in pick(run)[shown]]

        looking = first_of if forward else last_of
        found = looking(storage, known, made, asked.count, until(LOOK_SECONDS))
        return LogPage(found, msgspec.structs.replace(span, stop=min(stops) if stops else None), position)


def _ways(asked: LogPageQuery, looked: LogPage) -> tuple[str, str, str]:
    """Where newer and older events are shown, and where looking goes on that had to stop; "" for nowhere."""
    found, full = looked.found, len(looked.found.events) >= asked.count
    newer = older = onward = ""
    if asked.after is not None:
        if found.cut:
            onward = asked.moved(after=found.last).address()
        elif full and found.last < _end(looked):
            newer = asked.moved(after=found.last).address()
        if looked.span.start == asked.after + 1 > 1:
            older = asked.moved(before=looked.span.start).address()
        return newer, older, onward
    if asked.before and found.last < looked.end:
        newer = asked.moved(after=found.last).address()
    if found.cut:
        onward = asked.moved(before=found.first).address()
    elif full and found.first > looked.span.start:
        older = asked.moved(before=found.first).address()
    return newer, older, onward


def _end(looked: LogPage) -> int:
    return looked.end if looked.span.stop is None else min(looked.end, looked.span.stop)


def _tail(asked: LogPageQuery, looked: LogPage | None) -> str:
    """The address of the stream that goes on where the page ends; "" where the page does not end with the log."""
    if looked is None or asked.before or looked.span.stop is not None or looked.span.until:
        return ""
    if looked.found.trouble is not None or looked.found.last < looked.end:
        return ""
    count = LogPageQuery().count
    bare = msgspec.structs.replace(asked, after=None, since=None, until=None, count=count, newest="first")
    return bare.address("/live/log")


def _fields(request: Request, asked: LogPageQuery, wrong: dict[str, str]) -> dict[str, list[str]]:
    """The form's values: as they were given, also with an error; an empty one more where there may be several."""
    given = request.query_params
    fields = {name: [*dict.fromkeys(value for value in given.getlist(name) if value), ""] for name in SEVERAL}
    fields |= {name: [given.get(name, "")] for name in ("grep", "since", "until")}
    fields["n"] = [given.get("n", "") if "n" in wrong else str(asked.count)]
    return fields


async def keep(request: Request) -> Response:
    """``POST /saved-filters``: ``name``, ``query``; ``remove``: forget the one of this name. Raises BadAddress,
    NotSaved."""
    context, form = context_of(request), form_of(request)
    name, query = form.get("name", "").strip(), form.get("query", "")
    if form.get("remove") == "yes":
        remove(context.paths.saved_filters, name)
        return RedirectResponse(PATH, status_code=303)
    asked, wrong = read(QueryParams(query))
    if wrong or not 0 < len(name) <= NAME_CHARS_MAX or len(query) > ADDRESS_CHARS_MAX:
        what = f"a filter is saved under a name of 1 to {NAME_CHARS_MAX} characters"
        raise BadAddress(what, "go back; nothing was saved")
    bare = asked.address().partition("?")[2]
    save(context.paths.saved_filters, Saved(name, bare, visitor_of(request).operator))
    return RedirectResponse(asked.address(), status_code=303)


async def find(request: Request) -> Response:
    """``GET /log/find?id=&from=&step=``: to the event that a position or an id names. Where a page's time is over, the
    next request looks further. Raises BadAddress, NotFound, CorruptLog."""
    named = request.query_params.get("id", "").strip()
    if not named:
        return RedirectResponse(PATH, status_code=303)
    context, begin, step = context_of(request), number(request, "from", 1, 1), number(request, "step")
    try:
        position = await context.read(_found, context.layout.store, named, begin)
    except NotYetFound as error:
        if step >= STEPS_MAX:
            raise NotFound(error.message, "pmagent log show looks as long as it takes") from error
        further = address(f"{PATH}/find", id=named, step=step + 1, **{"from": error.position})
        return RedirectResponse(further, status_code=303)
    return RedirectResponse(f"{PATH}/{position}", status_code=303)


def _found(store: LogStore, named: str, begin: int) -> int:
    with closing(store.reader()) as storage:
        return position_of(storage, named, until(LOOK_SECONDS), begin)


routes: list[BaseRoute] = [
    Route("/log", show), Route("/log/find", find), Route("/saved-filters", keep, methods=["POST"]),
]  # fmt: skip
