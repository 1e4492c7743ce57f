"""What the pages of runs and of audits have in common: how a list is asked for, and how a job is ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from contracts.orchestra_events import REASON_CHARS_MAX
from events.errors import NotFound, PmagentError
from pmagent.console.desk import desk_of, form_of, visitor_of
from pmagent.console.jobs.desk import JobsAtHand, jobs_of, whole_id
from pmagent.console.jobs.run import address
from pmagent.jobs.catalogue import Entry, Listing
from pmagent.jobs.history import NoSuchJob
from pmagent.jobs.kinds import Kind
from pmagent.when import seconds_between, spoken

LISTED: Final = 50
TEXT_CHARS_MAX: Final = 200
NUMBER_MAX: Final = 2**53
TRACE: Final = "x-orchestra-trace-id"
"""On the pages of a job this header is its correlation (docs/design.md §14.1)."""

T = TypeVar("T")


class BadQuestion(PmagentError):
    """What an address asks for is not understood."""

    exit_code = 2


class NotEnded(PmagentError):
    """A job could not be cancelled: it is not as the page showed it."""

    exit_code = 1


class Asked(msgspec.Struct, frozen=True):
    """What is asked of a list of jobs: in this state, about this text, older than the one at position ``after``."""

    state: str = ""
    text: str = ""
    after: int = 0


def asked_of(query: QueryParams, states: Sequence[str]) -> Asked:
    """What an address asks of a list. Raises BadQuestion."""
    state, text = query.get("state", ""), query.get("text", "")
    if state and state not in states:
        raise BadQuestion(f"state={state[:60]!r} is none of the states", f"state: {', '.join(states)}")
    if len(text) > TEXT_CHARS_MAX:
        raise BadQuestion(f"text: at most {TEXT_CHARS_MAX} characters are looked for, not {len(text)}", "give fewer")
    return Asked(state, text, number_of(query, "after"))


def twin(kind: Kind, asked: Asked) -> list[str]:
    """The command that lists the same."""
    argv = [*kind.command.split(), "-n", str(LISTED)]
    argv += ["--state", asked.state] if asked.state else []
    argv += [f"--text={asked.text}"] if asked.text else []
    return argv + (["--before", str(asked.after)] if asked.after else [])


def choices(states: Sequence[str]) -> list[tuple[str, str]]:
    """The states as a form offers them: value and words."""
    return [("", "any"), *((state, state.replace("_", " ")) for state in states)]


def number_of(query: QueryParams, name: str) -> int:
    """A whole number in an address; 0 where there is none. Raises BadQuestion."""
    given = query.get(name, "")
    if not given:
        return 0
    if not (given.isascii() and given.isdigit()) or int(given[:20]) > NUMBER_MAX:
        raise BadQuestion(f"{name}={given[:60]!r} is no whole number", f"e.g. {name}=100")
    return int(given)


async def listed(request: Request, kind: Kind, asked: Asked) -> Listing:
    """The jobs that are asked for; none where there is no log. Raises CorruptLog."""

    def read(jobs: JobsAtHand) -> Listing:
        return jobs.catalogue.listed(kind, LISTED, before=asked.after, state=asked.state, text=asked.text)

    try:
        return await desk_of(request).read(read, jobs_of(request))
    except NotFound:
        return Listing([], more=False, looked=1, forgotten=False)


def pages(path: str, asked: Asked, listing: Listing) -> tuple[str, str]:
    """Where the newest are, and those older than this page's; "" where these are they."""
    last = listing.entries[-1].position if listing.entries else listing.looked
    newest = address(path, state=asked.state, text=asked.text) if asked.after else ""
    older = address(path, state=asked.state, text=asked.text, after=last) if listing.more else ""
    return newest, older


def took(entry: Entry) -> str:
    """From a job's request to its end; "" while it is open."""
    return spoken(max(seconds_between(entry.time, entry.ending.time), 0.0)) if entry.ending is not None else ""


async def cancelled(request: Request, kind: Kind, field: str) -> Response:
    """Ask the daemon to end a job. Raises NotEnded, BadQuestion, NotFound, DaemonUnreachable, RemoteError."""
    job_id = await whole_id(request, kind, request.path_params[field])
    form = form_of(request)
    reason, asked = form.get("reason", "").strip(), form.get("request", "")
    if not reason or len(reason) > REASON_CHARS_MAX:
        raise BadQuestion(
            f"why the {kind.word} is to end has to be said, in at most {REASON_CHARS_MAX} characters",
            "go back, and give a reason; nothing was cancelled",
        )
    if asked and not asked.startswith(f"{kind.cancel}-"):
        raise BadQuestion("the form's request id is none of ours", "open the page again; nothing was cancelled")
    arguments: dict[str, Any] = {field: job_id, "reason": reason}
    answer = await desk_of(request).ask(kind.cancel, visitor_of(request), request=asked, **arguments)
    if not answer.document["accepted"]:
        text = answer.document["text"] or "it was refused"
        raise NotEnded(f"The {kind.word} was not cancelled: {text}", f"/{kind.word}s/{job_id} shows how it stands")
    return RedirectResponse(f"/{kind.word}s/{job_id}", 303)


async def read_of(request: Request, read: Callable[[JobsAtHand], T]) -> T:
    """What ``read`` makes of the jobs at hand. Raises NotFound, CorruptLog, OSError."""
    try:
        return await desk_of(request).read(read, jobs_of(request))
    except NoSuchJob as error:
        raise NotFound(error.message, error.hint) from None


def elsewhere(request: Request, path: str) -> Response:
    """What is meant stands at ``path``; what was asked of it goes along."""
    return RedirectResponse(path + (f"?{request.url.query}" if request.url.query else ""), 303)
