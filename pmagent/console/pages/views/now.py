"""The first page: how everything stands now, what an operator should know of, and the stop switch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pmagent.actors.alerts.core import HANDOVER
from pmagent.actors.oa.policy import ALLOWED, FORBIDDEN
from pmagent.alerts.inbox import handed_over
from pmagent.console.pages.addresses import choices, one_of
from pmagent.console.pages.approvals.presentation import title
from pmagent.console.pages.context import PageContext, context_of
from pmagent.console.pages.figures import SPANS, Figure, figures
from pmagent.console.pages.jobs.cache import JobCache, jobs_of
from pmagent.console.pages.views.agents import standing
from pmagent.console.pages.views.integrity import checks_of
from pmagent.contracts.alerts import HANDOVER_CHARS_MAX
from pmagent.contracts.pla import MODES, ActionClass
from pmagent.events.errors import CorruptLog, NotFound, PmagentError
from pmagent.events.log import now as log_now
from pmagent.jobs.catalogue import Entry
from pmagent.log.source import time_at
from pmagent.service.client import new_request
from pmagent.workspace.layout import Layout

LIVE: Final = (
    "kernel.", "oa.", "run.", "audit.", "pla.", "hid.linked", "hid.lost", "hid.reported", "hid.tripped", "hid.outcome_",
    "control.", "alert.", "actor.", "effect.", "daemon.", "console.refused", "task.attempt_requested", "task.exited",
)  # fmt: skip
CLASSES: Final = get_args(ActionClass)
CHANGES: Final = ("stop", "mode", "end", "handover")
RECENT: Final = 6
_SCHEDULED: Final = ("timer.requested", "run.requested", "hid.ping_requested", "hid.lease_requested")
"""Effects that wait for a time, all day long."""


class Effects(msgspec.Struct, frozen=True):
    """Open effects of one type: how many, how many of them wait for the stop switch (``first_held``: the position of
    the first, 0: none), and since when the oldest."""

    type: str
    count: int
    held: int
    first_held: int
    since: str


async def now(request: Request) -> Response:
    """``/?change=&span=``: how things stand, and the figures of that time; with ``change`` (stop, mode, end
    or handover) the form with all that may be said to that. Raises BadAddress."""
    context, change = context_of(request), one_of(request, "change", CHANGES)
    span = one_of(request, "span", tuple(SPANS), "24h")
    status, pla = await _standing(context)
    jobs = status.get("jobs", [])
    begun = await context.read(_times, context.layout, [job["position"] for job in jobs])
    modes = reachable(pla["mode"]) if pla else []
    return await context.page(
        request, "now.html", title="Now", section="now", live=LIVE, command=("pmagent", "status"), status_now=status,
        pla=pla, jobs=[{**job, "since": since} for job, since in zip(jobs, begun, strict=True)],
        effects=grouped(status.get("open_effects", [])), alerts=status.get("alerts"), modes=modes,
        modes_shown=[(name, f"{name}: {says}") for name, says in modes],
        classes=choices(CLASSES), change=change,
        allowed=ALLOWED[status["mode"]] if status.get("mode") else (),
        forbidden=FORBIDDEN[status["mode"]] if status.get("mode") else (),
        chain=await context.read(checks_of(context).latest, "log"), span=span, figures=await _figures(context, span),
        recent=await context.read(_recent, jobs_of(request)),
        proposed=title(pla["proposal"]) if pla.get("proposal") else "",
        calls=await standing(context, "guests.approvals", "approvals") or [], handover_max=HANDOVER_CHARS_MAX,
        notes=await context.read(_notes, context.layout, (status.get("alerts") or {}).get("handover", [])),
        handover=HANDOVER, handover_id=new_request("alerts.handover"), open_now=_open_now(status, pla),
    )  # fmt: skip


async def _figures(context: PageContext, span: str) -> list[Figure] | None:
    """The figures; None while the daemon cannot be asked."""
    try:
        return figures((await context.standing("figures")).document["hours"], span, log_now())
    except PmagentError:
        return None


def _recent(jobs: JobCache) -> list[Entry]:
    """The newest runs, as far as they are near the log's end. Blocking."""
    try:
        return jobs.recent(RECENT)
    except (NotFound, CorruptLog):
        return []


def _open_now(status: dict[str, Any], pla: dict[str, Any]) -> str:
    """The beginning of a hand-over note: what is open."""
    alerts, jobs = status.get("alerts") or {}, status.get("jobs", [])
    count = alerts.get("urgent", 0) + alerts.get("bad", 0) + alerts.get("warn", 0) - len(alerts.get("handover", []))
    lines = [f"Decisions that wait: {alerts['request']}."] if alerts.get("request") else []
    lines += [f"Alerts that are open: {count}."] if count else []
    lines += [f"Running: {', '.join('{kind} {id:.8}'.format(**job) for job in jobs[:5])}."] if jobs else []
    if pla.get("session"):
        lines.append(f"The lab assistant is in {pla['mode']}{', armed' if pla['armed'] else ''}.")
    lines += [f"Effects are paused by {status['paused']['operator_id']}."] if status.get("paused") else []
    return "\n".join([*lines, ""])


def _notes(layout: Layout, positions: Sequence[int]) -> list[dict[str, Any]]:
    """The open hand-over notes, as far as the log can be read. Blocking."""
    try:
        return handed_over(layout, positions)
    except (NotFound, CorruptLog):
        return []


async def _standing(context: PageContext) -> tuple[dict[str, Any], dict[str, Any]]:
    """How things stand, as the daemon tells it; nothing while it cannot be asked (the head of the page says so)."""
    try:
        return (await context.standing("status")).document, (await context.standing("pla.status")).document
    except PmagentError:
        return {}, {}


def reachable(mode: str) -> list[tuple[str, str]]:
    """The modes that may be asked for from ``mode``, each with what it means: one up, any down."""
    at = MODES.index(mode)
    says = {
        "OBSERVE": "frames are looked at, nothing is proposed; what is open is withdrawn",
        "SUGGEST": "actions are proposed; approving one is recorded, and types nothing",
        "EXECUTE": "what is approved is typed, if the device is armed",
    }
    return [(name, says[name]) for place, name in enumerate(MODES) if place != at and place <= at + 1]


def grouped(effects: Sequence[dict[str, Any]]) -> list[Effects]:
    """Open effects by type, those with the oldest first; without those that only wait for a time."""
    by_type: dict[str, list[dict[str, Any]]] = {}
    for one in effects:
        if one["type"] not in _SCHEDULED:
            by_type.setdefault(one["type"], []).append(one)
    found: list[Effects] = []
    for type_, some in by_type.items():
        held = [one["position"] for one in some if one["held"]]
        since = min(one["since"] for one in some)
        found.append(Effects(type_, len(some), len(held), min(held, default=0), since))
    return sorted(found, key=lambda each: each.since)


def _times(layout: Layout, positions: Sequence[int]) -> list[str]:
    """The times of these positions, "" where they cannot be read. Blocking."""
    try:
        with closing(layout.store.reader()) as storage:
            return [time_at(storage, position) for position in positions]
    except (NotFound, CorruptLog):
        return ["" for _ in positions]


routes: list[BaseRoute] = [Route("/", now, methods=["GET"])]
