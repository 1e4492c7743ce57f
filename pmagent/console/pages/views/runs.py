"""The pages Runs: all of them, one with its order and its times, and a task of one with what it wrote."""

from __future__ import annotations

import uuid
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from pmagent.console.pages import downloads
from pmagent.console.pages.addresses import BadAddress, address, number, one_of
from pmagent.console.pages.context import context_of, form_of, visitor_of
from pmagent.console.pages.jobs import compared as comparing
from pmagent.console.pages.jobs import run as telling
from pmagent.console.pages.jobs.cache import JobCache, whole_id
from pmagent.console.pages.jobs.listing import TEXT_CHARS_MAX, both_of, job_routes, read_of, story_of
from pmagent.console.pages.jobs.task import task_page
from pmagent.console.pages.reading import artifacts
from pmagent.contracts.orchestra_events import REASON_CHARS_MAX
from pmagent.events.errors import NotFound
from pmagent.jobs.history import Jobs, opened
from pmagent.jobs.kinds import RUNS, JobRequest
from pmagent.jobs.story import RunStory
from pmagent.orchestra.repeating import repeated
from pmagent.projections.views.runs import Run
from pmagent.service.client import new_request

BEFORE_LOOK: Final = 10_000
"""So many events that nobody has looked at yet are looked through for the run before one."""
SANDBOX: Final = "default-src 'none'; sandbox"
_ORDERS: Final = (("", "failures first"), ("plan", "the plan's"), ("longest", "longest first"))
LIVE_RUN: Final = ("run.", "plan", "task", "effect.", "request.refused")
LIVE_RUNS: Final = ("run.", "plan.", "tasks.", "task.assigned", "task.finished", "request.refused")


async def one(request: Request, run_id: str) -> Response:
    """``GET /runs/{run_id}?tab=&tasks=&find=&order=&from=``."""
    state, start = one_of(request, "tasks", telling.STATES), number(request, "from")
    find = request.query_params.get("find", "")[:TEXT_CHARS_MAX]
    order = one_of(request, "order", telling.ORDERS)
    tab = one_of(request, "tab", telling.TABS) or ("tasks" if state or start or find or order else "")
    page = await read_of(request, lambda jobs: jobs.run_page(run_id, telling.Asked(tab, state, find, start, order)))
    return await context_of(request).page(
        request, "run.html", title=f"Run {run_id[:8]}", section="runs",
        live=() if page.run.over else LIVE_RUN,
        command=("pmagent", "runs", run_id), page=page, run=page.run, rows_max=telling.ROWS_MAX, state=state,
        tab=tab, find=find, order=order, orders=_ORDERS, shown_first=telling.SHOWN_FIRST,
        before=await read_of(request, lambda jobs: _before(jobs, page.run)),
        again=str(uuid.uuid4()), request_id=new_request(RUNS.cancel), reason_max=REASON_CHARS_MAX, address=address,
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


async def again(request: Request) -> Response:
    """``POST /runs/{run_id}/rerun``: a new run by the recorded plan, as ``pmagent rerun``; ``failed``: only the tasks
    that are not done; ``run``: the new run's id, by which asking twice is asking once. Raises NotRepeatable,
    BadAddress, what asking raises."""
    context, form = context_of(request), form_of(request)
    run_id, new = await whole_id(request, RUNS, str(request.path_params["run_id"])), form.get("run", "")
    if not _is_id(new):
        raise BadAddress("the form's run id is none of ours", "open the page again; nothing was asked for")
    failed = form.get("failed") == "yes"

    def repeat(jobs: JobCache) -> JobRequest:
        entry = jobs.catalogue.called([RUNS], run_id)
        if failed:
            entry.require_kept()
        with opened(context.layout) as log:
            return JobRequest(RUNS, repeated(log, entry.position, new, failed=failed))

    asked = await read_of(request, repeat)
    await context.ask(RUNS.ask, visitor_of(request), **asked.arguments)
    return RedirectResponse(f"/runs/{new}", 303)


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _before(jobs: JobCache, run: Run) -> str:
    """The id of the run before this one, of the same intent if one is near; "" for none. Blocking."""
    if run.asked.earlier is not None:
        return run.asked.earlier.run_id
    for text in (run.asked.intent, ""):
        found = jobs.catalogue.listed(RUNS, 1, before=run.requested, text=text, look=BEFORE_LOOK).entries
        if found:
            return found[0].job_id
    return ""


async def compare(request: Request) -> Response:
    """``GET /runs/compare?a=&b=&file=``: two runs held against each other; ``file``: the lines of one that both left.
    ``run`` twice is ``a`` and ``b``. Raises BadAddress, NotFound, CorruptLog."""
    context, file = context_of(request), request.query_params.get("file", "")
    ids = await both_of(request, RUNS)
    views = [await story_of(request, RUNS, one, lambda story, _: story.view) for one in ids]
    pair, rows = comparing.compared(*views), None
    if file:
        sums = [comparing.files_of(view).get(file, "") for view in views]
        if not all(sums):
            raise NotFound(f"not both runs left {file[:100]!r}", "the comparison lists the files that differ")
        rows = await context.read(comparing.difference, context.layout.store.blobs(), *sums)
    return await context.page(
        request, "run_compare.html", title=f"Runs {ids[0][:8]} and {ids[1][:8]}", section="runs", pair=pair, file=file,
        rows=rows, address=address, command=("pmagent", "runs", ids[1]),
    )  # fmt: skip


async def artifact(request: Request, run_id: str) -> Response:
    """``GET /runs/{run_id}/view/{sha256}/{name}?plain=``: a file that an attempt left, shown. Raises NotFound."""
    context, name = context_of(request), request.path_params["name"]
    blobs, sha256 = context.layout.store.blobs(), await _named(request, run_id)
    plain = one_of(request, "plain", ("yes",)) == "yes"
    shown = await context.read(lambda: artifacts.view(blobs, sha256, name, plain=plain))
    return await context.page(
        request, "artifact.html", title=name, section="runs", run_id=run_id, sha256=sha256, name=name, shown=shown,
        plain=plain, base=telling.file_address(run_id, sha256, name), command=("pmagent", "logs", run_id[:8]),
    )  # fmt: skip


async def picture(request: Request, run_id: str) -> Response:
    """``GET /runs/{run_id}/picture/{sha256}/{name}``: a picture that an attempt left. Raises NotFound: it is none."""
    context, sha256 = context_of(request), await _named(request, run_id)
    content, kind = await context.read(artifacts.image, context.layout.store.blobs(), sha256)
    headers = {"Content-Security-Policy": SANDBOX, "Content-Disposition": "inline"}
    return Response(content, media_type=kind, headers=headers)


async def everything(request: Request, run_id: str) -> Response:
    """``GET /runs/{run_id}/artifacts.zip``: all that its tasks left, in folders of their names."""
    context = context_of(request)
    files = await story_of(request, RUNS, run_id, lambda story, _: list(comparing.files_of(story.view).items()))
    made = artifacts.zipped(context.layout.store.blobs(), artifacts.zip_names(files))
    return downloads.pieces(context, request, f"run-{run_id[:8]}.zip", made)


async def left(request: Request, run_id: str) -> Response:
    """``GET /runs/{run_id}/artifacts/{sha256}/{name}``: a file that an attempt left. An event of this run must name it;
    it is checked against its digest."""
    name, sha256 = request.path_params["name"], await _named(request, run_id)
    try:
        return await downloads.blob(context_of(request), name, sha256)
    except NotFound:
        pruned = await story_of(request, RUNS, run_id, lambda story, _: story.pruned)
        if pruned:
            raise NotFound(f"the run was pruned on {pruned[:10]}, and this file with it", "") from None
        raise


async def _named(request: Request, run_id: str) -> str:
    """The file's SHA-256, where an event of the run names it. Raises NotFound."""
    sha256, name = str(request.path_params["sha256"]), request.path_params["name"]

    def named(story: RunStory, _: Jobs) -> bool:
        kept = story.kept.get(sha256)
        return kept is not None and name in kept.names

    if not await story_of(request, RUNS, run_id, named):
        raise NotFound(f"no event of run {run_id} names such a file", "the pages of its tasks list what they left")
    return sha256


_PAGES: Final = {
    "": one,
    "/tasks/{task_id}": task,
    "/artifacts.zip": everything,
    "/artifacts/{sha256}/{name}": left,
    "/view/{sha256}/{name}": artifact,
    "/picture/{sha256}/{name}": picture,
    **{f"/{name}": document for name in telling.DOCUMENTS},
}
routes: list[BaseRoute] = [
    Route("/runs/compare", compare, methods=["GET"]),
    *job_routes(RUNS, LIVE_RUNS, _PAGES),
    Route("/runs/{run_id}/rerun", again, methods=["POST"]),
]
