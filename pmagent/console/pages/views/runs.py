"""The pages Runs: all of them, one with its order and its times, and a task of one with what it wrote."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from pmagent.console.pages import downloads
from pmagent.console.pages.addresses import address, number, one_of
from pmagent.console.pages.context import context_of
from pmagent.console.pages.jobs import run as telling
from pmagent.console.pages.jobs.listing import job_routes, read_of, story_of
from pmagent.console.pages.jobs.task import task_page
from pmagent.contracts.orchestra_events import REASON_CHARS_MAX
from pmagent.events.errors import NotFound
from pmagent.jobs.history import Jobs
from pmagent.jobs.kinds import RUNS
from pmagent.jobs.story import RunStory
from pmagent.service.client import new_request

LIVE_RUN: Final = ("run.", "plan", "task", "effect.", "request.refused")
LIVE_RUNS: Final = ("run.", "plan.", "tasks.", "task.assigned", "task.finished", "request.refused")


async def one(request: Request, run_id: str) -> Response:
    """``GET /runs/{run_id}``."""
    state, start = one_of(request, "tasks", telling.STATES), number(request, "from")
    page = await read_of(request, lambda jobs: jobs.run_page(run_id, state, start))
    return await context_of(request).page(
        request, "run.html", title=f"Run {run_id[:8]}", section="runs",
        live=() if page.run.over else LIVE_RUN,
        command=("pmagent", "runs", run_id), page=page, run=page.run, rows_max=telling.ROWS_MAX, state=state,
        request_id=new_request(RUNS.cancel), reason_max=REASON_CHARS_MAX, address=address,
    )  # fmt: skip


async def task(request: Request, run_id: str) -> Response:
    """``GET /runs/{run_id}/tasks/{task_id}``."""
    task_id, attempt = request.path_params["task_id"], number(request, "attempt")
    page = await story_of(request, RUNS, run_id, lambda story, log: task_page(story, log, task_id, attempt))
    over = page.run.over or page.state in ("done", "failed")
    return await context_of(request).page(
        request, "task.html", title=f"Task {page.planned.name}", section="runs", live=() if over else LIVE_RUN,
        command=("pmagent", "runs", run_id, "--format", "json"), page=page, run=page.run,
    )


async def document(request: Request, run_id: str) -> Response:
    """``GET /runs/{run_id}/report.md``, ``plan.json``, ``metrics.json``: as the projection makes them of the log."""
    name = request.url.path.rpartition("/")[2]
    content = await story_of(request, RUNS, run_id, lambda story, log: telling.document(story, log, name))
    if content is None:
        raise NotFound(f"run {run_id} has no {name}", "its page says how it stands")
    return downloads.whole(name, content)


async def left(request: Request, run_id: str) -> Response:
    """``GET /runs/{run_id}/artifacts/{sha256}/{name}``: a file that an attempt left. An event of this run must name it;
    it is checked against its digest."""
    sha256, name = request.path_params["sha256"], request.path_params["name"]

    def named(story: RunStory, _: Jobs) -> bool:
        kept = story.kept.get(sha256)
        return kept is not None and name in kept.names

    if not await story_of(request, RUNS, run_id, named):
        raise NotFound(f"no event of run {run_id} names such a file", "the pages of its tasks list what they left")
    try:
        return await downloads.blob(context_of(request), name, sha256)
    except NotFound:
        pruned = await story_of(request, RUNS, run_id, lambda story, _: story.pruned)
        if pruned:
            raise NotFound(f"the run was pruned on {pruned[:10]}, and this file with it", "") from None
        raise


_PAGES: Final = {
    "": one,
    "/tasks/{task_id}": task,
    "/artifacts/{sha256}/{name}": left,
    **{f"/{name}": document for name in telling.DOCUMENTS},
}
routes: list[BaseRoute] = job_routes(RUNS, LIVE_RUNS, _PAGES)
