"""The jobs at hand of one console: its catalogue, and the runs and audits that were looked at last."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any, Final

from starlette.requests import Request

from pmagent.console.pages.context import context_of
from pmagent.console.pages.jobs.run import Asked, RunPage, run_page
from pmagent.events.errors import NotFound
from pmagent.jobs.catalogue import Catalogue, Entry
from pmagent.jobs.history import ID_CHARS, NoSuchJob
from pmagent.jobs.kinds import AUDITS, RUNS, Kind
from pmagent.jobs.story import AuditStory, RunStory
from pmagent.jobs.story_cache import StoryCache
from pmagent.workspace.layout import Layout

PAGES_KEPT: Final = 8
RECENT_LOOK: Final = 10_000
"""So many events are looked through, once, for the newest runs."""
SHARED_SECONDS: Final = 1.0
"""So long the page of an open run is shared: it tells how long things have run by now."""
PREFIX_CHARS: Final = frozenset("0123456789abcdefABCDEF-")


class JobCache:
    """Made once, with the first page that asks for it. For any number of threads."""

    def __init__(self, layout: Layout) -> None:
        self._pages: OrderedDict[tuple[str, Asked], tuple[int, float, RunPage]] = OrderedDict()
        """Pages of runs by what was asked for, each with the position of the run's newest event and when it was drawn;
        the one that was asked for last comes last."""
        self._recent_look = RECENT_LOOK
        self.catalogue = Catalogue(layout)
        self.runs: StoryCache[RunStory] = StoryCache(layout, self.catalogue, RUNS, RunStory)
        self.audits: StoryCache[AuditStory] = StoryCache(layout, self.catalogue, AUDITS, AuditStory)
        self.story_caches: dict[Kind, StoryCache[Any]] = {RUNS: self.runs, AUDITS: self.audits}

    def recent(self, count: int) -> list[Entry]:
        """The newest runs, as far as they are near the log's end, or were looked for before: this waits for no long
        log. Raises CorruptLog; NotFound where there is no log."""
        look, self._recent_look = self._recent_look, 0
        return self.catalogue.listed(RUNS, count, look=look).entries

    def run_page(self, run_id: str, asked: Asked) -> RunPage:
        """The page of a run as the log has it now; many who follow a run share one. See ``jobs.run.run_page``.

        Raises NoSuchJob, CorruptLog; NotFound where there is no log.
        """
        key = (run_id, asked)
        with self.runs.story(run_id) as (story, log):  # nobody else has the pages meanwhile
            known, run = self._pages.pop(key, None), story.view
            if known is not None and not run.ended and time.monotonic() - known[1] > SHARED_SECONDS:
                known = None
            if known is None or known[0] != run.position or known[2].run.requested != run.requested:
                known = (run.position, time.monotonic(), run_page(story, log, asked))
            self._pages[key] = known
            while len(self._pages) > PAGES_KEPT:
                self._pages.popitem(last=False)
            return known[2]


def jobs_of(request: Request) -> JobCache:
    """Those of the application that serves ``request``."""
    state = request.app.state
    if not hasattr(state, "jobs"):
        state.jobs = JobCache(context_of(request).layout)
    jobs: JobCache = state.jobs
    return jobs


async def whole_id(request: Request, kind: Kind, given: str) -> str:
    """The id of the job of which ``given`` is the id, or its beginning. Raises NotFound, CorruptLog."""
    if not set(given) <= PREFIX_CHARS or len(given) > ID_CHARS:
        raise NotFound(f"{given!r} is no {kind.word}'s id, nor the beginning of one", f"{kind.command} lists them")
    try:
        return (await context_of(request).read(jobs_of(request).catalogue.prefixed, [kind], given)).job_id
    except NoSuchJob as error:
        raise NotFound(error.message, error.hint) from None
