"""The alert inbox: what is open, the gravest first, with a form that acknowledges; and who acknowledged the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from pmagent.actors.alerts.actor import ALERTING
from pmagent.alerts.inbox import acknowledged
from pmagent.alerts.ledger import troubles
from pmagent.console.pages.addresses import address, number
from pmagent.console.pages.context import context_of, form_of, visitor_of
from pmagent.contracts.alerts import HANDOVER_CHARS_MAX
from pmagent.contracts.control import REASON_CHARS_MAX
from pmagent.events.errors import NotFound, PmagentError

COMMAND: Final = ("pmagent", "alerts")
AT_ONCE: Final = 50
"""So many alerts are acknowledged with one form."""

_ID: Final = re.compile(r"alerts\.handover-[0-9a-f-]{36}")
_FIELD: Final = re.compile(r"alert-([1-9][0-9]{0,17})")


_VIEW: Final = "Your role is view: you may look and stop, and acknowledge and hand over nothing."


async def show(request: Request) -> Response:
    """``GET /alerts?before=``: the open alerts, and those acknowledged up to ``before``. Raises BadAddress."""
    return await _page(request)


async def _page(
    request: Request, status: int = 200, wrong: Sequence[str] = (), mends: Iterable[str] = ()
) -> Response:
    """The inbox. What answers a form has what was ``wrong`` in it, keeps its marks and its note, and stays."""
    context, form = context_of(request), form_of(request) if request.method == "POST" else {}
    position = number(request, "before")
    try:
        found: dict[str, Any] = (await context.standing("alerts.list")).document
    except PmagentError:  # the head of the page says why
        found = {}
    try:
        done, older = await context.read(acknowledged, context.layout, position or found.get("newest", 0))
    except NotFound as error:
        raise HTTPException(404, f"{error.message}.") from error
    return await context.page(
        request, "alerts.html", title="Alerts", section="alerts", command=COMMAND, live=() if form else ALERTING,
        found=found, undelivered=await context.read(troubles, context.layout), done=done,
        newer="/alerts" if position else None, note_max=REASON_CHARS_MAX,
        older=address("/alerts", before=older) if older else None, form=form, wrong=wrong, mends=mends, status=status,
    )  # fmt: skip


async def acknowledge(request: Request) -> Response:
    """POST ``alert-POSITION`` (of each that was marked), ``note``, ``back``. Raises HTTPException, and as asking."""
    context, visitor, form = context_of(request), visitor_of(request), form_of(request)
    if visitor.role != "approve":
        raise HTTPException(403, _VIEW)
    note = form.get("note", "").strip()
    chosen = [int(match[1]) for name in form if (match := _FIELD.fullmatch(name))]
    wrong = []
    if not 0 < len(chosen) <= AT_ONCE:
        wrong.append(f"mark 1 to {AT_ONCE} alerts")
    if not 0 < len(note) <= REASON_CHARS_MAX:
        wrong.append(f"say how they were dealt with, in a note of 1 to {REASON_CHARS_MAX} characters")
    if wrong:
        return await _page(request, 400, wrong)
    reasons: list[str] = []
    mends: dict[str, None] = {}
    for position in chosen:
        about = sha256(f"{visitor.operator}|{note}".encode()).hexdigest()[:16]
        answer = await context.ask(
            "alerts.acknowledge", visitor, request=f"alerts.acknowledge-{position}-{about}", alert=position, note=note
        )
        if answer.exit_code:
            reasons += (f"{position}: {reason}" for reason in answer.document["reasons"])
            mends |= dict.fromkeys(answer.document["mend"])
    if not reasons:
        return RedirectResponse("/" if form.get("back") == "/" else "/alerts", status_code=303)
    return await _page(request, 409, reasons, mends)


async def hand_over(request: Request) -> Response:
    """POST ``text``, ``id``: a note for the next operator; the same id twice is one note. Raises HTTPException, what
    asking raises."""
    context, visitor, form = context_of(request), visitor_of(request), form_of(request)
    if visitor.role != "approve":
        raise HTTPException(403, _VIEW)
    text, id = form.get("text", "").strip(), form.get("id", "")
    if not 0 < len(text) <= HANDOVER_CHARS_MAX or not _ID.fullmatch(id):
        raise HTTPException(400, f"A hand-over note has 1 to {HANDOVER_CHARS_MAX} characters; nothing was left.")
    await context.ask("alerts.handover", visitor, request=id, text=text)
    return RedirectResponse("/", status_code=303)


routes: list[BaseRoute] = [
    Route("/alerts", show, methods=["GET"]),
    Route("/alerts/acknowledge", acknowledge, methods=["POST"]),
    Route("/alerts/handover", hand_over, methods=["POST"]),
    Route("/alerts/handover", show, methods=["GET"]),
    Route("/alerts/acknowledge", show, methods=["GET"]),  # a page that answers a POST may be looked at again
]
