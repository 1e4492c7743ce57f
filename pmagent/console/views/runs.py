"""The pages Runs: all of them, one with its order and its times, and a task of one with what it wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from contracts.orchestra_events import REASON_CHARS_MAX
from events.errors import NotFound
from pmagent.clean import shorten
from pmagent.client import new_request
from pmagent.console import downloads
from pmagent.console.desk import desk_of
from pmagent.console.jobs import run as telling
from pmagent.console.jobs.asking import (
    LISTED,
    TRACE,
    BadQuestion,
    asked_of,
    cancelled,
    choices,
    elsewhere,
    listed,
    number_of,
    pages,
    read_of,
    took,
    twin,
)
from pmagent.console.jobs.desk import JobsAtHand, jobs_of, whole_id
from pmagent.console.jobs.run import RunPage, address
from pmagent.console.jobs.task import TaskPage, task_page
from pmagent.jobs.catalogue import Entry
from pmagent.jobs.kinds import RUNS

OPEN_LOOKED_AT: Final = 5
"""Of so many open runs the list says how far they are, the newest."""
LIVE_LIST: Final = ("run.", "plan.", "tasks.changed", "request.refused")
LIVE_RUN: Final = ("run.", "plan", "task", "effect.", "request.refused")

class Row(msgspec.Struct, frozen=True):
    """A run in the list. ``word``: how it stands; ``done``: how many of how many tasks."""

    entry: Entry
    word: str
    intent: str
    took: str
    done: str
    reason: str


async def show(request: Request) -> Response:
    """``GET /runs``."""
    asked = asked_of(request.query_params, RUNS.states)
    listing = await listed(request, RUNS, asked)
    rows = await desk_of(request).read(_rows, jobs_of(request), listing.entries)
    newest, older = pages("/runs", asked, listing)
    return await desk_of(request).page(
        request, "runs.html", title="Runs", section="runs", live=LIVE_LIST,
        command=twin(RUNS, asked), asked=asked, states=choices(RUNS.states),
        rows=rows, listing=listing, newest=newest, older=older, full=LISTED,
    )  # fmt: skip


def _rows(jobs: JobsAtHand, entries: Sequence[Entry]) -> list[Row]:
    """The list's rows; of open runs, as far as there are few, how far they are. Raises CorruptLog."""
    rows, looked = [], 0
    for entry in entries:
        word, done = entry.state, ""
        ending = entry.ending
        if ending is not None and ending.done + ending.failed:
            done = f"{ending.done} of {ending.done + ending.failed}"
        elif ending is None and looked < OPEN_LOOKED_AT:
            looked += 1
            word, done = _so_far(jobs, entry)
        reason = shorten("; ".join(entry.reasons), 200)
        rows.append(Row(entry, word, shorten(entry.title, 160), took(entry), done, reason))
    return rows


def _so_far(jobs: JobsAtHand, entry: Entry) -> tuple[str, str]:
    """How an open run stands, and how many of its tasks are done."""
    with jobs.runs.story(entry.job_id) as (story, _):
        run = story.view
    if run.requested != entry.position:  # its id has been used again
        return entry.state, ""
    return run.word, f"{run.counts['done']} of {len(run.tasks)}" if len(run.tasks) else ""


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
    return await cancelled(request, RUNS, "run_id")


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
