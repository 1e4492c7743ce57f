"""The jobs at hand of one console: its catalogue, and the runs and audits that were looked at last."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request

from events.errors import NotFound
from pmagent.audit.story import Story as AuditStory
from pmagent.console.desk import desk_of
from pmagent.jobs.catalogue import Catalogue
from pmagent.jobs.history import ID_CHARS, NoSuchJob
from pmagent.jobs.kinds import AUDITS, RUNS, Kind
from pmagent.jobs.shelf import Shelf
from pmagent.layout import Layout
from pmagent.orchestra.story import Story as RunStory

PREFIX_CHARS: Final = frozenset("0123456789abcdefABCDEF-")


class JobsAtHand:
    """Made once, with the first page that asks for it."""

    def __init__(self, layout: Layout) -> None:
        self.catalogue = Catalogue(layout)
        self.runs: Shelf[RunStory] = Shelf(layout, self.catalogue, RUNS, RunStory)
        self.audits: Shelf[AuditStory] = Shelf(layout, self.catalogue, AUDITS, AuditStory)


def jobs_of(request: Request) -> JobsAtHand:
    """Those of the application that serves ``request``."""
    state = request.app.state
    if not hasattr(state, "jobs"):
        state.jobs = JobsAtHand(desk_of(request).layout)
    jobs: JobsAtHand = state.jobs
    return jobs


async def whole_id(request: Request, kind: Kind, given: str) -> str:
    """The id of the job of which ``given`` is the id, or its beginning. Raises NotFound, CorruptLog."""
    if not set(given) <= PREFIX_CHARS or len(given) > ID_CHARS:
        raise NotFound(f"{given!r} is no {kind.word}'s id, nor the beginning of one", f"{kind.command} lists them")
    try:
        return await desk_of(request).read(jobs_of(request).catalogue.prefixed, kind, given.lower())
    except NoSuchJob as error:
        raise NotFound(error.message, error.hint) from None
