"""The pages of runs and of audits alike: the list, the way to end a job, and how a page finds its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from pmagent.clean import shorten
from pmagent.console.pages.addresses import BadAddress, address, choices, number, one_of, options
from pmagent.console.pages.context import context_of, form_of, visitor_of
from pmagent.console.pages.jobs.cache import JobCache, jobs_of, whole_id
from pmagent.contracts.orchestra_events import REASON_CHARS_MAX
from pmagent.events.errors import NotFound, PmagentError
from pmagent.jobs.catalogue import Entry, Listing
from pmagent.jobs.history import Jobs, NoSuchJob
from pmagent.jobs.kinds import Kind
from pmagent.when import took

LISTED: Final = 50
OPEN_LOOKED_AT: Final = 5
"""Of so many open jobs a list says how far they are, the newest."""
TEXT_CHARS_MAX: Final = 200
TRACE: Final = "x-orchestra-trace-id"
"""On the pages of a job this header is its correlation (docs/design.md §14.1)."""

T = TypeVar("T")
Page = Callable[[Request, str], Awaitable[Response]]
"""Answers a request for the job with this whole id."""


class NotEnded(PmagentError, exit_code=1):
    """A job could not be cancelled: it is not as the page showed it."""


class ListQuery(msgspec.Struct, frozen=True):
    """A query of a list of jobs: in this state, about this text, older than the one at position ``after``."""

    state: str = ""
    text: str = ""
    after: int = 0


def query_of(request: Request, kind: Kind) -> ListQuery:
    """The query in a list's address. Raises BadAddress."""
    text = request.query_params.get("text", "")
    if len(text) > TEXT_CHARS_MAX:
        raise BadAddress(f"text: at most {TEXT_CHARS_MAX} characters are looked for, not {len(text)}", "give fewer")
    return ListQuery(one_of(request, "state", kind.states), text, number(request, "after"))


class Row(msgspec.Struct, frozen=True):
    """A job in the list. ``word``: how it stands; ``cell``: what the list's own column says."""

    entry: Entry
    word: str
    title: str
    took: str
    cell: str
    reason: str


async def list_page(request: Request, kind: Kind, live: tuple[str, ...]) -> Response:
    """The list of jobs that the address asks for; empty where there is no log."""
    context, section = context_of(request), f"{kind.word}s"
    asked = query_of(request, kind)

    def read(jobs: JobCache) -> tuple[Listing, list[Row]]:
        try:
            found = jobs.catalogue.listed(kind, LISTED, before=asked.after, state=asked.state, text=asked.text)
        except NotFound:
            found = Listing([], more=False, looked=1, forgotten=False)
        return found, _rows(jobs, kind, found.entries)

    listing, rows = await context.read(read, jobs_of(request))
    newest, older = pages(f"/{section}", asked, listing)
    return await context.page(
        request, "jobs.html", title=section.capitalize(), section=section, live=live,
        command=[*kind.command.split(), "-n", str(LISTED),
                 *options(state=asked.state, text=asked.text, before=asked.after)],
        asked=asked, states=[("", "any"), *choices(kind.states)], kind=kind, rows=rows, listing=listing,
        newest=newest, older=older, full=LISTED,
    )  # fmt: skip


def _rows(jobs: JobCache, kind: Kind, entries: Sequence[Entry]) -> list[Row]:
    """The list's rows; of open jobs, as far as there are few, how far they are. Raises CorruptLog."""
    rows, looked = [], 0
    for entry in entries:
        word, cell, ending = entry.state, "", entry.ending
        if ending is not None:
            cell = ending.gist
        elif looked < OPEN_LOOKED_AT:
            looked += 1
            with jobs.story_caches[kind].story(entry.job_id) as (story, _):
                if story.view.requested == entry.position:  # else its id has been used again
                    word, cell = story.view.word, story.view.so_far
        spent = took(entry.time, ending.time) if ending is not None else ""
        title = f"(pruned) {entry.title}" if entry.pruned else entry.title
        rows.append(Row(entry, word, shorten(title, 160), spent, cell, shorten("; ".join(entry.reasons), 200)))
    return rows


def pages(path: str, asked: ListQuery, listing: Listing) -> tuple[str, str]:
    """Where the newest are, and those older than this page's; "" where these are they."""
    last = listing.entries[-1].position if listing.entries else listing.looked
    newest = address(path, state=asked.state, text=asked.text) if asked.after else ""
    older = address(path, state=asked.state, text=asked.text, after=last) if listing.more else ""
    return newest, older


async def cancelled(request: Request, kind: Kind) -> Response:
    """``POST``: ask the daemon to end a job; ``reason``, and the request's id, by which asking twice is asking once.
    Raises NotEnded, BadAddress, NotFound, DaemonUnreachable, RemoteError."""
    job_id = await whole_id(request, kind, request.path_params[kind.id_field])
    form = form_of(request)
    reason, asked = form.get("reason", "").strip(), form.get("request", "")
    if not reason or len(reason) > REASON_CHARS_MAX:
        raise BadAddress(
            f"why the {kind.word} is to end has to be said, in at most {REASON_CHARS_MAX} characters",
            "go back, and give a reason; nothing was cancelled",
        )
    if asked and not asked.startswith(f"{kind.cancel}-"):
        raise BadAddress("the form's request id is none of ours", "open the page again; nothing was cancelled")
    arguments: dict[str, Any] = {kind.id_field: job_id, "reason": reason}
    answer = await context_of(request).ask(kind.cancel, visitor_of(request), request=asked, **arguments)
    if not answer.document["accepted"]:
        text = answer.document["text"] or "it was refused"
        raise NotEnded(f"The {kind.word} was not cancelled: {text}", f"/{kind.word}s/{job_id} shows how it stands")
    return RedirectResponse(f"/{kind.word}s/{job_id}", 303)


async def both_of(request: Request, kind: Kind) -> list[str]:
    """The whole ids of the two jobs that an address compares: ``a`` and ``b``, or the kind's word twice. Raises
    BadAddress, NotFound, CorruptLog."""
    given = request.query_params
    named = "a" in given or "b" in given
    both = [one for one in ([given.get("a", ""), given.get("b", "")] if named else given.getlist(kind.word)) if one]
    if len(both) != 2:
        raise BadAddress(f"two {kind.word}s are compared, not {len(both)}", "mark two in the list")
    return [await whole_id(request, kind, one) for one in both]


async def read_of(request: Request, read: Callable[[JobCache], T]) -> T:
    """The result of ``read`` for the jobs at hand. Raises NotFound, CorruptLog, OSError."""
    try:
        return await context_of(request).read(read, jobs_of(request))
    except NoSuchJob as error:
        raise NotFound(error.message, error.hint) from None


async def story_of(request: Request, kind: Kind, job_id: str, read: Callable[[Any, Jobs], T]) -> T:
    """The result of ``read`` for a job's story and the log. Raises NotFound, CorruptLog, OSError."""

    def reading(jobs: JobCache) -> T:
        with jobs.story_caches[kind].story(job_id) as (story, log):
            return read(story, log)

    return await read_of(request, reading)


def job_routes(kind: Kind, live: tuple[str, ...], pages: Mapping[str, Page]) -> list[BaseRoute]:
    """The list of jobs, which events whose types begin with ``live`` change; the way to end one; and the pages of one,
    by what stands behind its id in the address."""
    root = f"/{kind.word}s"
    one = f"{root}/{{{kind.id_field}}}"
    return [
        Route(root, partial(list_page, kind=kind, live=live)),
        *(Route(one + path, job_page(kind, page)) for path, page in pages.items()),
        Route(f"{one}/cancel", partial(cancelled, kind=kind), methods=["POST"]),
    ]


def job_page(kind: Kind, page: Page) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of a page of one job. The beginning of an id leads on to the whole one; the rest of the address goes
    along."""

    async def endpoint(request: Request) -> Response:
        given = request.path_params[kind.id_field]
        job_id = await whole_id(request, kind, given)
        if job_id != given:
            root = f"/{kind.word}s/"
            path = request.url.path.replace(root + given, root + job_id, 1)
            return RedirectResponse(path + (f"?{request.url.query}" if request.url.query else ""), 303)
        answer = await page(request, job_id)
        answer.headers[TRACE] = job_id
        return answer

    return endpoint
