"""The pages of guests: agents' sessions, one of them as a timeline, and a call that waits for operators
(docs/guests.md).

A page decides nothing: it hands on what an operator says, with the digest that they were shown, and the guests' actor
judges.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from pmagent.console.pages.addresses import address as address_of
from pmagent.console.pages.context import PageContext, context_of, form_of, visitor_of
from pmagent.console.pages.views.passkeys import confirm_first
from pmagent.contracts.control import REASON_CHARS_MAX
from pmagent.contracts.guest_calls import Call
from pmagent.contracts.guests import GUESTS
from pmagent.events.errors import PmagentError
from pmagent.events.log import now
from pmagent.guests.frequent import SECONDS as OFTEN_SECONDS
from pmagent.guests.frequent import USES as OFTEN_USES
from pmagent.guests.frequent import frequent
from pmagent.guests.what_if import TRIED_DAYS, Trial, policy_shown, try_session_rule
from pmagent.projections.guests.report import CallLine, Subagent, tree
from pmagent.service.wire import RemoteError

LIVE: Final = ("guest.",)
SHOWN_MAX: Final = 500
"""So many calls of a session are shown, the newest."""
RULE_CHARS_MAX: Final = 1000
_HOUR: Final = "3600"
_USES: Final = (("0", "any number of calls"), ("1", "one more call"), ("5", "5 more calls"), ("20", "20 more calls"))
_LASTING: Final = (("900", "15 minutes"), (_HOUR, "an hour"), ("28800", "8 hours"))


async def listing(request: Request) -> Response:
    """``GET /agents``: calls that wait, then the sessions, those first whose calls wait."""
    context = context_of(request)
    return await context.page(
        request, "agents.html", title="Agents", section="agents", live=LIVE, command=("pmagent", GUESTS),
        waiting=await standing(context, "guests.approvals", "approvals"),
        sessions=await standing(context, "guests.sessions", "sessions"),
    )


async def standing(context: PageContext, operation: str, name: str) -> list[dict[str, Any]] | None:
    """A list that many pages share; None where there is no answer: the head of the page says why."""
    try:
        found: list[dict[str, Any]] = (await context.standing(operation)).document[name]
    except PmagentError:
        return None
    return found


async def show(request: Request) -> Response:
    """``GET /agents/{session}``: a session as a timeline. Raises HTTPException (404)."""
    context, name = context_of(request), str(request.path_params["session"])
    try:
        session = (await context.ask("guests.sessions", session=name)).document
    except RemoteError as error:
        if error.kind != "NoSuchSession":
            raise
        raise HTTPException(404, f"{error.message}; {error.hint}.") from error
    calls = msgspec.convert(session["calls"], list[CallLine])
    subagents = msgspec.convert(session["subagents"], dict[str, Subagent])
    return await context.page(
        request, "agent.html", title=f"Session {name[:8]}", section="agents", live=LIVE, session=session,
        rows=tree(calls[-SHOWN_MAX:], subagents), left_out=max(0, len(calls) - SHOWN_MAX),
        command=("pmagent", GUESTS, name),
    )


async def call(request: Request) -> Response:
    """``GET /agents/calls/{number}?rule=&rule_seconds=&rule_uses=``: exactly
    what a call would do, and the forms that decide; with a ``rule``, what that would have let through in the last days,
    and the form that makes it, too."""
    return await _call(request)


async def _call(
    request: Request, reasons: Sequence[str] = (), mends: Sequence[str] = (), status: int = 200
) -> Response:
    context, number = context_of(request), _number(request)
    found: dict[str, Any] | None = None
    try:
        found = (await context.ask("guests.approvals", approval=number)).document
    except RemoteError as error:
        if error.kind != "NothingWaits":
            raise
        status, reasons, mends = max(status, 404), [*reasons, error.message], [*mends, f"/log/{number} has the call"]
    form = form_of(request) if request.method == "POST" else {}
    given = form or request.query_params
    rule, seconds = given.get("rule", "").strip()[:RULE_CHARS_MAX], given.get("rule_seconds", _HOUR)
    uses = given.get("rule_uses", "0")
    trial, wrong, often = None, "", None
    if found is not None and not found["given"]:
        call = msgspec.convert(found["facts"], Call)
        often = await context.read(frequent, context.layout.store, call, now())
    if found is not None and rule:
        try:
            trial = await _tried(context, number, rule)
        except PmagentError as error:
            wrong = f"{error.message}; {error.hint}"
    return await context.page(
        request, "agent_call.html", title=f"Call {number}", section="agents", status=status, call=found, number=number,
        reasons=reasons, mends=mends, form=form, lasting=_LASTING, rule=rule, trial=trial, wrong=wrong,
        often=often, often_seconds=OFTEN_SECONDS, often_uses=OFTEN_USES, uses=_USES, address=address_of,
        rule_uses=uses if uses in dict(_USES) else "0", days=TRIED_DAYS,
        rule_seconds=seconds if seconds in dict(_LASTING) else _HOUR,
        live=LIVE if request.method == "GET" and not rule else (), note_max=REASON_CHARS_MAX,
        command=("pmagent", "approvals", "show", str(number), *(("--rule", rule) if rule else ())),
    )  # fmt: skip


async def _tried(context: PageContext, number: int, rule: str) -> Trial:
    """The calls that the rule would have let through, told by a reader of the log: the daemon goes on answering
    hooks. Raises BadPolicy, CorruptLog, DaemonUnreachable, RemoteError."""
    policy = policy_shown((await context.standing("guests.policy")).document)
    home = os.environ.get("HOME", "")
    return await context.read(try_session_rule, context.layout.store, policy, rule, number, home, now())


async def approve(request: Request) -> Response:
    """POST ``digest``, ``note``, ``rule``, ``rule_seconds``, ``rule_uses``: let exactly that call through, once."""
    page = f"/agents/calls/{_number(request)}"
    return confirm_first(request, page) or await _decide(request, "approve")


async def reject(request: Request) -> Response:
    """POST ``digest``, ``note``: refuse the call."""
    return await _decide(request, "reject")


async def _decide(request: Request, decision: str) -> Response:
    context, visitor, form, number = context_of(request), visitor_of(request), form_of(request), _number(request)
    if visitor.role != "approve":
        raise HTTPException(403, "Your role is view: you may look, and decide nothing.")
    digest, note = form.get("digest", ""), form.get("note", "").strip()
    rule, seconds = form.get("rule", "").strip(), form.get("rule_seconds", _HOUR)
    uses = form.get("rule_uses", "0")
    if len(note) > REASON_CHARS_MAX or seconds not in dict(_LASTING) or uses not in dict(_USES):
        raise HTTPException(400, f"A note has at most {REASON_CHARS_MAX} characters; a rule lasts as the form offers.")
    ruled: dict[str, Any] = {}
    if rule and decision == "approve":
        ruled = {"rule": rule, "rule_seconds": float(seconds), "rule_uses": int(uses)}
    about = sha256(f"{visitor.operator}|{decision}|{digest}|{rule}|{seconds}|{uses}|{note}".encode()).hexdigest()[:16]
    try:
        await context.ask("guests.approvals", approval=number)  # about what there is not nothing is recorded
        answer = await context.ask(
            "guests.answer", visitor, request=f"guests.answer-{number}-{about}", approval=number, decision=decision,
            digest=digest, note=note, **ruled,
        )
    except RemoteError as error:
        if error.kind == "NothingWaits":
            return await _call(request)
        return await _call(request, [error.message], [error.hint] if error.hint else [], status=422)
    if answer.exit_code:
        return await _call(request, answer.document["reasons"], answer.document["mend"], status=409)
    return RedirectResponse("/agents", status_code=303)


def _number(request: Request) -> int:
    """The call's number. Raises HTTPException (404)."""
    given = str(request.path_params["number"])
    if not (given.isdecimal() and given.isascii() and len(given) < 19):
        raise HTTPException(404, "A call is named by its position in the log.")
    return int(given)


def address(session: str) -> str:
    """The page of a session."""
    return f"/agents/{quote(session, safe='')}"


_ONE: Final = "/agents/calls/{number}"

routes: list[BaseRoute] = [
    Route("/agents", listing, methods=["GET"]),
    Route(_ONE, call, methods=["GET"]),
    Route(f"{_ONE}/approve", approve, methods=["POST"]),
    Route(f"{_ONE}/reject", reject, methods=["POST"]),
    *(Route(f"{_ONE}/{word}", call, methods=["GET"]) for word in ("approve", "reject")),
    Route("/agents/{session}", show, methods=["GET"]),
]
