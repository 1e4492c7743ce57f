"""The pages Runs: all of them, one with its order and its times, and a task of one with what it wrote."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from contracts.orchestra_events import REASON_CHARS_MAX
from events.errors import NotFound
from pmagent.client import new_request
from pmagent.console import downloads
from pmagent.console.desk import desk_of
from pmagent.console.jobs import run as telling
from pmagent.console.jobs.asking import (
    TRACE,
    BadQuestion,
    Listed,
    cancelled,
    elsewhere,
    list_page,
    number_of,
    read_of,
)
from pmagent.console.jobs.desk import JobsAtHand, whole_id
from pmagent.console.jobs.run import RunPage, address
from pmagent.console.jobs.task import TaskPage, task_page
from pmagent.jobs.kinds import RUNS

LIVE_RUN: Final = ("run.", "plan", "task", "effect.", "request.refused")
LIST: Final = Listed(
    RUNS, ("run.", "plan.", "tasks.changed", "request.refused"), "Done", "Intent",
    "pmagent run 'What to do' --plan FILE",
    ended=lambda end: f"{end.done} of {end.done + end.failed}" if end.done + end.failed else "",
    so_far=lambda run: f"{run.counts['done']} of {len(run.tasks)}" if len(run.tasks) else "",
)  # fmt: skip


async def show(request: Request) -> Response:
    """``GET /runs``."""
    return await list_page(request, LIST)


async def one(request: Request) -> Response:
    """``GET /runs/{run_id}``."""
    run_id = await whole_id(request, RUNS, request.path_params["run_id"])
    if run_id != request.path_params["run_id"]:
        return elsewhere(request, f"/runs/{run_id}")
    state, start = request.query_params.get("tasks", ""), number_of(request.query_params, "from")
    if state and state not in telling.STATES:
        raise BadQuestion(f"tasks={state[:60]!r} is no state of tasks", f"tasks: {', '.join(telling.STATES)}")

    def read(jobs: JobsAtHand) -> RunPage:
        return jobs.run_page(run_id, state, start)

    page = await read_of(request, read)
    answer = await desk_of(request).page(
        request, "run.html", title=f"Run {run_id[:8]}", section="runs",
        live=() if page.run.over else LIVE_RUN,
        command=("pmagent", "runs", run_id), page=page, run=page.run, rows_max=telling.ROWS_MAX, state=state,
        request_id=new_request(RUNS.cancel), reason_max=REASON_CHARS_MAX, address=address,
    )  # fmt: skip
    answer.headers[TRACE] = run_id
    return answer


async def task(request: Request) -> Response:
    """``GET /runs/{run_id}/tasks/{task_id}``."""
    run_id = await whole_id(request, RUNS, request.path_params["run_id"])
    task_id = request.path_params["task_id"]
    if run_id != request.path_params["run_id"]:
        return elsewhere(request, f"/runs/{run_id}/tasks/{task_id}")
    attempt = number_of(request.query_params, "attempt")

    def read(jobs: JobsAtHand) -> TaskPage:
        with jobs.runs.story(run_id) as (story, log):
            return task_page(story, log, task_id, attempt)

    page = await read_of(request, read)
    over = page.run.over or page.state in ("done", "failed")
    answer = await desk_of(request).page(
        request, "task.html", title=f"Task {page.planned.name}", section="runs", live=() if over else LIVE_RUN,
        command=("pmagent", "runs", run_id, "--format", "json"), page=page, run=page.run,
    )
    answer.headers[TRACE] = run_id
    return answer


async def cancel(request: Request) -> Response:
    """``POST /runs/{run_id}/cancel``: ``reason``, and the request's id, by which asking twice is asking once."""
    return await cancelled(request, RUNS)


async def document(request: Request) -> Response:
    """``GET /runs/{run_id}/report.md``, ``plan.json``, ``metrics.json``: as the projection makes them of the log."""
    given, name = request.path_params["run_id"], request.url.path.rpartition("/")[2]
    run_id = await whole_id(request, RUNS, given)
    if run_id != given:
        return elsewhere(request, f"/runs/{run_id}/{name}")

    def read(jobs: JobsAtHand) -> bytes | None:
        with jobs.runs.story(run_id) as (story, log):
            return telling.document(story, log, name)

    content = await read_of(request, read)
    if content is None:
        raise NotFound(f"run {run_id} has no {name}", "its page says how it stands")
    answer = downloads.whole(name, content)
    answer.headers[TRACE] = run_id
    return answer


routes: list[BaseRoute] = [
    Route("/runs", show),
    Route("/runs/{run_id}", one),
    Route("/runs/{run_id}/tasks/{task_id}", task),
    Route("/runs/{run_id}/cancel", cancel, methods=["POST"]),
    *(Route(f"/runs/{{run_id}}/{name}", document) for name in telling.DOCUMENTS),
]
