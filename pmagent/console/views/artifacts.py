"""What the attempts of a run left, as files: only what this run's events name, checked against its digest."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from events.errors import NotFound
from pmagent.console.desk import desk_of
from pmagent.console.downloads import blob
from pmagent.console.jobs.asking import TRACE, elsewhere, read_of
from pmagent.console.jobs.desk import JobsAtHand, whole_id
from pmagent.jobs.kinds import RUNS


async def download(request: Request) -> Response:
    """``GET /runs/{run_id}/artifacts/{sha256}/{name}``. Raises NotFound, CorruptLog."""
    given, sha256, name = (request.path_params[key] for key in ("run_id", "sha256", "name"))
    run_id = await whole_id(request, RUNS, given)
    if run_id != given:
        return elsewhere(request, request.url.path.replace(given, run_id, 1))

    def named(jobs: JobsAtHand) -> bool:
        with jobs.runs.story(run_id) as (story, _):
            kept = story.kept.get(sha256)
            return kept is not None and name in kept.names

    if not await read_of(request, named):
        raise NotFound(f"no event of run {run_id} names such a file", "the pages of its tasks list what they left")
    answer = await blob(desk_of(request), name, sha256)
    answer.headers[TRACE] = run_id
    return answer


routes: list[BaseRoute] = [Route("/runs/{run_id}/artifacts/{sha256}/{name}", download)]
