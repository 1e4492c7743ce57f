"""The pages of proposals: which there are, one with all that a decision needs, and deciding (docs/design.md §18.3).

A page decides nothing: it hands on what an operator says, with what they were shown, and the daemon's warden judges. A
late decision, or one about anything else than the open proposal, is answered by 409 and the difference.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote
from weakref import WeakKeyDictionary

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from pmagent.console.auth.entrance import Visitor
from pmagent.console.pages.addresses import choices, one_of, options
from pmagent.console.pages.approvals.decision import NONCE, YES, Sent, Verdict, arguments, request_id, sent, wanting
from pmagent.console.pages.approvals.presentation import by_risk, content, title
from pmagent.console.pages.approvals.proposal_page import LISTED, ProposalPage, gathered
from pmagent.console.pages.approvals.shown_state import (
    Situation,
    compared,
    differences,
    opened,
    otherwise,
    packed,
    situation,
)
from pmagent.console.pages.approvals.viewing_time import ViewingTimes
from pmagent.console.pages.context import PageContext, context_of, form_of, visitor_of
from pmagent.console.pages.views.agents import standing
from pmagent.console.pages.views.passkeys import confirm_first
from pmagent.contracts.pla import MODES
from pmagent.contracts.pla_words import OUTCOMES
from pmagent.pla.filters import STANDS, fits
from pmagent.pla.risk import risk
from pmagent.service.client import new_request
from pmagent.service.wire import RemoteError

LIVE: Final = ("pla.", "guest.approval_", "hid.linked", "hid.lost", "hid.reported", "control.", "kernel.mode")
"""Events that make a page of proposals stale. Pings are no news."""

_TITLES: Final = {
    "decided": "Already decided", "expired": "Too late: it has expired", "changed": "The mode has changed",
    "otherwise": "It is not as you saw it", "digest": "This is about other bytes", "self": "You asked for it yourself",
    "wait": "Not yet",
}


PRACTISE: Final = ("pmagent", "pla", "practice")
FRAME_PATIENCE_SECONDS: Final = 120.0

_LOOKED: Final[WeakKeyDictionary[PageContext, ViewingTimes]] = WeakKeyDictionary()
"""When each console first showed a proposal to whom."""


async def listing(request: Request) -> Response:
    """``/approvals?stands=&by=&outcome=``: the open ones by risk and age, then the decided ones, newest first."""
    context = context_of(request)
    stands, outcome = one_of(request, "stands", STANDS), one_of(request, "outcome", OUTCOMES)
    by = request.query_params.get("by", "")[:64]
    every = (await context.ask("pla.list", count=LISTED)).document["proposals"]
    found = [one for one in every if fits(one, stands, by, outcome)]
    waiting = by_risk([one for one in found if one["stands"] == "open"])
    over = [one for one in found if one["stands"] != "open"]
    return await context.page(
        request, "approvals.html", title="Approvals", section="approvals", live=LIVE,
        command=["pmagent", "pla", "list", "-n", str(LISTED), *options(stands=stands, by=by, outcome=outcome)],
        waiting=[_row(one) for one in waiting], calls=await standing(context, "guests.approvals", "approvals"),
        over=[_row(one) for one in over], stands=stands, by=by, outcome=outcome, filtered=bool(stands or by or outcome),
        full=len(every) == LISTED, choices_stands=choices(STANDS), choices_outcome=choices(OUTCOMES),
    )  # fmt: skip


def _row(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "risk": risk(document), "headline": title(document), "content": content(document)}


async def show(request: Request) -> Response:
    """``/approvals/{id}?decide=&form=&opened=``: one proposal; with ``decide`` (approve or reject) the form for that.
    ``form`` is the form's nonce: it stands in the address, so that a page that is made anew holds the same form, and
    another tab another. ``opened``: what an approval did when the form was opened; where it does something else by now
    there is no form any more, and the difference instead. The addresses that forms post to show the card as well: a
    page that answers a POST may be looked at again."""
    context, visitor, name = context_of(request), visitor_of(request), request.path_params["proposal_id"]
    decide, nonce = one_of(request, "decide", ("approve", "reject")), request.query_params.get("form", "")
    since = opened(request.query_params.get("opened", ""))
    card = await gathered(context, visitor, name)
    if decide and card.is_open and not (NONCE.fullmatch(nonce) and since):
        return RedirectResponse(_form_address(card, decide, _drawn()), status_code=303)
    if card.document["proposal_id"] != name:
        return RedirectResponse(_address(card.document["proposal_id"]), status_code=303)
    return await _page(request, card, decide=decide, nonce=nonce, since=since)


def _drawn() -> str:
    return secrets.token_hex(16)


def _form_address(card: ProposalPage, decide: str, nonce: str, since: Situation | None = None) -> str:
    """Where a form stands that was opened as things stood ``since`` (None: now)."""
    mark = packed(since or situation(card.seen))
    return f"{_address(card.document['proposal_id'])}?decide={decide}&form={nonce}&opened={quote(mark, safe='')}"


async def _page(
    request: Request, card: ProposalPage, *, decide: str, nonce: str, since: Situation | None = None, status: int = 200,
    lacks: dict[str, str] | None = None, form: dict[str, str] | None = None,
) -> Response:  # fmt: skip
    """The card. An open form stays as it was opened (``since``; None: now), and what has changed is told beside it. A
    page that answers a POST is no address to come back to, so nothing else makes it stale."""
    visitor = visitor_of(request)
    since = since or situation(card.seen)
    # A rejection is the same in every mode.
    changed = differences(since, situation(card.seen)) if decide == "approve" and card.is_open else []
    offered = bool(decide) and card.is_open and visitor.role == "approve"
    frozen = offered and not changed and (decide == "reject" or not (card.barred or card.hidden))
    _LOOKED.setdefault(context_of(request), ViewingTimes()).shown(visitor.session, card.document["proposal_id"])
    return await context_of(request).page(
        request, "approval.html", title=card.title, section="approvals", status=status,
        live=LIVE if request.method == "GET" or decide else (), card=card, proposal=card.document, decide=decide,
        regions=_form_address(card, decide, nonce, since) if decide else "", frozen=frozen, changed=changed,
        nonce=nonce, lacks=lacks or {}, form=form or {}, address=_address(card.document["proposal_id"]),
        command=("pmagent", "pla", "show", card.document["proposal_id"], "--hexdump"),
    )  # fmt: skip


async def reveal(request: Request) -> Response:
    """POST: the card with what is masked in plain, out of the daemon's memory; it is kept nowhere."""
    visitor = _approver(request)
    card = await gathered(context_of(request), visitor, request.path_params["proposal_id"], reveal=True)
    return await _page(request, card, decide="approve" if card.is_open and not card.hidden else "", nonce=_drawn())


async def approve(request: Request) -> Response:
    """POST: approve exactly what was shown, once."""
    page = f"/approvals/{quote(str(request.path_params['proposal_id']), safe='')}?decide=approve"
    return confirm_first(request, page) or await _decide(request, "APPROVED")


async def reject(request: Request) -> Response:
    """POST: reject, with a reason."""
    return await _decide(request, "REJECTED")


_KINDS: Final = (
    ("type", "Type text"), ("keys", "Press keys"), ("move", "Move the pointer"), ("click", "Click a button"),
)  # fmt: skip
_REQUEST: Final = re.compile(r"pla\.propose-[0-9a-f-]{36}")


async def propose_form(request: Request) -> Response:
    """``/approvals/propose``: the form that asks for an action; also the page that answers a POST, looked at again."""
    return await _propose_page(request)


async def _propose_page(
    request: Request, *, wrong: Sequence[str] = (), mends: Sequence[str] = (), status: int = 200
) -> Response:
    context, form = context_of(request), form_of(request) if request.method == "POST" else {}
    pla = (await context.standing("pla.status")).document
    device = pla["device"]
    steps = [
        ("link a device", device is not None), ("switch to SUGGEST", pla["mode"] != MODES[0]),
        ("propose an action", pla["proposal"] is not None), ("switch to EXECUTE", pla["mode"] == MODES[2]),
        ("arm the device", bool(pla["armed"])), ("another operator approves, and it is typed", False),
    ]  # fmt: skip
    return await context.page(
        request, "propose.html", title="Propose an action", section="approvals", status=status, wrong=wrong,
        mends=mends, mode=pla["mode"], ready=pla["mode"] != MODES[0], kinds=_KINDS, form=form, steps=steps,
        request_id=new_request("pla.propose"), practise=PRACTISE, command=("pmagent", "pla", "propose", "type: ls"),
    )  # fmt: skip


async def propose(request: Request) -> Response:
    """POST ``kind``, ``action``, ``why``, ``look``: ask for a proposal; then on to its page. A form that is sent twice
    asks once."""
    visitor, form = _approver(request), form_of(request)
    if form.get("kind") not in dict(_KINDS):
        raise HTTPException(400, f"There are the actions {', '.join(dict(_KINDS))}.")
    asked = form.get("request", "")
    try:
        answer = await context_of(request).ask(
            "pla.propose", visitor, request=asked if _REQUEST.fullmatch(asked) else "", goal=_goal(form),
            why=form.get("why", "").strip(), look=form.get("look") == YES,
        )
    except RemoteError as error:
        return await _propose_page(request, wrong=[error.message], mends=[error.hint] if error.hint else [], status=422)
    if answer.exit_code:
        document = answer.document
        mends = list(dict.fromkeys(document.get("mend", [])))
        return await _propose_page(request, wrong=document.get("reasons", []), mends=mends, status=409)
    return RedirectResponse(_address(answer.document["proposal_id"]), status_code=303)


def _goal(form: Mapping[str, str]) -> str:
    """The goal that states the action literally, as the command line takes it."""
    kind, action = form["kind"], form.get("action", "")
    if kind != "type":
        return f"{kind}: {action.strip()}"
    escaped = action.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'type: "{escaped}"'


async def observe(request: Request) -> Response:
    """POST: take a screenshot of the machine, by the settings; then on to the session's frames."""
    context, visitor = context_of(request), _approver(request)
    try:
        answer = await context.ask("pla.observe", visitor, seconds=FRAME_PATIENCE_SECONDS)
    except RemoteError as error:
        reasons, mends = [error.message], [error.hint] if error.hint else []
    else:
        if answer.exit_code == 0:
            session = answer.document["session_id"]
            return RedirectResponse(f"/sessions/{quote(session, safe='')}#frames", status_code=303)
        reasons, mends = answer.document["reasons"], answer.document["mend"]
    return await context.page(
        request, "not_done.html", title="No screenshot was taken", section="approvals", status=409, reasons=reasons,
        mends=mends, command=("pmagent", "pla", "observe"),
    )


async def _decide(request: Request, verdict: Verdict) -> Response:
    context, visitor, form = context_of(request), _approver(request), form_of(request)
    decision = sent(form, verdict)
    card = await gathered(context, visitor, request.path_params["proposal_id"], reveal=decision.revealed)
    name = card.document["proposal_id"]
    lacks = wanting(decision, card.document, card.risk.tier)
    if lacks and card.is_open and (stale := _not_as_shown(decision, card)) is not None:
        return await _changed(request, card, decision, stale)
    if lacks and card.is_open:
        word = "approve" if verdict == "APPROVED" else "reject"
        return await _page(request, card, decide=word, nonce=decision.nonce, status=422, lacks=lacks, form=form)
    if lacks:
        over = {"code": "decided", "reasons": ["it is not open any more, and nothing was recorded"], "mend": []}
        return await _changed(request, card, decision, over)
    same = (decision.digest, decision.mode) == (card.seen.digest, card.seen.mode)
    if same and card.is_open and (stale := _not_as_shown(decision, card)) is not None:
        return await _changed(request, card, decision, stale)
    looked = _LOOKED.setdefault(context, ViewingTimes()).milliseconds(visitor.session, name)
    answer = await context.ask(
        "pla.decide", visitor, request=request_id(decision, visitor.operator, name), **arguments(decision, name, looked)
    )
    if answer.exit_code == 0:
        return RedirectResponse(_address(name), status_code=303)
    return await _changed(request, await gathered(context, visitor, name), decision, answer.document)


def _not_as_shown(form: Sent, card: ProposalPage) -> dict[str, Any] | None:
    """Why nothing is approved: it would do something else than the form said when it was opened."""
    others = otherwise(form.seen, card.seen) if form.verdict == "APPROVED" else []
    if not others:
        return None
    reasons = [f"{one.name}: it was {one.shown} when it was shown, and is {one.now} now" for one in others]
    code = "changed" if form.mode != card.seen.mode else "otherwise"
    return {"code": code, "reasons": reasons, "mend": ["look at it again: an approval would do something else"]}


async def _changed(request: Request, card: ProposalPage, form: Sent, refused: dict[str, Any]) -> Response:
    """The decision counts for nothing: why, and what is not as it was shown."""
    code = refused["code"]
    if code == "changed" and form.mode == card.seen.mode:  # a setting has
        code = "otherwise"
    return await context_of(request).page(
        request, "changed.html", title=_TITLES.get(code, "It is not decided"), section="approvals",
        status=403 if code == "self" else 409, verdict=form.verdict, reasons=refused["reasons"],
        mends=list(dict.fromkeys(refused["mend"])), card=card, proposal=card.document,
        differences=differences(form.seen, card.seen), rows=compared(form.seen, card.seen),
        address=_address(card.document["proposal_id"]),
        command=("pmagent", "pla", "show", card.document["proposal_id"]),
    )  # fmt: skip


def _approver(request: Request) -> Visitor:
    """The signed-in operator, if they may decide. Raises HTTPException (403)."""
    visitor = visitor_of(request)
    if visitor.role != "approve":
        raise HTTPException(403, "Your role is view: you may look, and decide nothing.")
    return visitor


def _address(proposal_id: str) -> str:
    return f"/approvals/{quote(proposal_id, safe='')}"


_ONE: Final = "/approvals/{proposal_id}"

routes: list[BaseRoute] = [
    Route("/approvals", listing, methods=["GET"]),
    Route("/approvals/propose", propose_form, methods=["GET"]),
    Route("/approvals/propose", propose, methods=["POST"]),
    Route("/approvals/observe", propose_form, methods=["GET"]),
    Route("/approvals/observe", observe, methods=["POST"]),
    Route(_ONE, show, methods=["GET"]),
    Route(f"{_ONE}/approve", approve, methods=["POST"]),
    Route(f"{_ONE}/reject", reject, methods=["POST"]),
    Route(f"{_ONE}/reveal", reveal, methods=["POST"]),
    *(Route(f"{_ONE}/{word}", show, methods=["GET"]) for word in ("approve", "reject", "reveal")),
]
