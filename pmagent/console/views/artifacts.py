"""What the attempts of a run left, as files: only what this run's events name, checked against its digest."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from events.errors import NotFound
from pmagent.console.desk import desk_of
from pmagent.console.downloads import blob
from pmagent.console.jobs.asking import job_page, story_of
from pmagent.jobs.history import Jobs
from pmagent.jobs.kinds import RUNS
from pmagent.jobs.story import RunStory


async def download(request: Request, run_id: str) -> Response:
    """``GET /runs/{run_id}/artifacts/{sha256}/{name}``. Raises NotFound, CorruptLog."""
    sha256, name = request.path_params["sha256"], request.path_params["name"]

    def named(story: RunStory, _: Jobs) -> bool:
        kept = story.kept.get(sha256)
        return kept is not None and name in kept.names

    if not await story_of(request, RUNS, run_id, named):
        raise NotFound(f"no event of run {run_id} names such a file", "the pages of its tasks list what they left")
    return await blob(desk_of(request), name, sha256)


routes: list[BaseRoute] = [Route("/runs/{run_id}/artifacts/{sha256}/{name}", job_page(RUNS, download))]
