"""The pages of the policy: its rules, and editing a file of it: a text is tried, and then accepted (docs/policy.md).

A page decides nothing: it hands on the text that an operator accepts, with the digests of it and of the file that they
were shown, and the guests' actor judges.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Final

import msgspec
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from pmagent.console.auth.forms import BODY_BYTES_MAX
from pmagent.console.pages.approvals.decision import FIRST_CHARS
from pmagent.console.pages.context import PageContext, context_of, form_of, visitor_of
from pmagent.console.pages.views.passkeys import confirm_first
from pmagent.contracts.guest_calls import LayerName, Policy
from pmagent.events.errors import PmagentError
from pmagent.events.log import now
from pmagent.guests.policy import FILE
from pmagent.guests.policy_edit import ELSEWHERE, BadEdit, Shown, Tried, seen, tried
from pmagent.guests.what_if import TRIED_DAYS, policy_shown
from pmagent.service.wire import RemoteError

LAYERS: Final[tuple[LayerName, ...]] = ("project", "user")
"""Those that have a file, which may be edited here."""
TEXT_CHARS_MAX: Final = BODY_BYTES_MAX // 2
"""A form holds so much: many characters take three bytes there."""


async def listing(request: Request) -> Response:
    """``GET /policy``: the rules of every layer, and how often each decided."""
    context = context_of(request)
    found = (await context.standing("guests.policy")).document
    return await context.page(
        request, "policy.html", title="Policy", section="policy", live=("guest.policy_read",), policy=found,
        layers=LAYERS, command=("pmagent", "policy", "check"),
    )


async def edit(request: Request) -> Response:
    """``GET /policy/edit?layer=``: a layer's file as it lies there, to be changed."""
    return await _page(request)


async def attempt(request: Request) -> Response:
    """POST ``layer``, ``text``, ``before``: what the text would decide, and the form that accepts it."""
    return await _page(request, wanted=True)


async def accept(request: Request) -> Response:
    """POST ``layer``, ``text``, ``before``, ``digest``, ``first``, ``read``: let the text be the layer's file."""
    context, visitor, form = context_of(request), visitor_of(request), form_of(request)
    if visitor.role != "approve":
        raise HTTPException(403, "Your role is view: you may look, and change nothing.")
    if (first := confirm_first(request, "/policy")) is not None:
        return first
    layer, text, before, digest = (form.get(name, "") for name in ("layer", "text", "before", "digest"))
    if layer not in LAYERS or len(digest) != len(sha256().hexdigest()):
        raise HTTPException(400, "It is not said which text is accepted for which file.")
    if form.get("read") != "yes" or form.get("first", "").strip().lower() != digest[:FIRST_CHARS]:
        lacks = f"Confirm that you have read it, and type the first {FIRST_CHARS} characters of the text's digest."
        return await _page(request, [lacks], wanted=True, status=422)
    about = sha256(f"{visitor.operator}|{layer}|{before}|{digest}".encode()).hexdigest()[:32]
    try:
        answer = await context.ask(
            "guests.policy_edit", visitor, request=f"guests.policy_edit-{about}", layer=layer, text=text, before=before,
            sha256=digest,
        )
    except RemoteError as error:
        return await _page(request, [f"{error.message}; {error.hint}"], wanted=True, status=422)
    if answer.exit_code:
        reasons = [*answer.document["reasons"], *answer.document["mend"]]
        return await _page(request, reasons, status=409)
    return RedirectResponse("/policy", status_code=303)


async def _page(
    request: Request, reasons: Sequence[str] = (), *, wanted: bool = False, status: int = 200
) -> Response:
    """The file, or the text that was sent; ``wanted``: that is tried."""
    context = context_of(request)
    form = form_of(request) if request.method == "POST" else {}
    named = form.get("layer") or request.query_params.get("layer", LAYERS[0])
    layer = next((one for one in LAYERS if one == named), None)
    accepted = policy_shown((await context.standing("guests.policy")).document)
    path = next((one.path for one in accepted.layers if one.name == layer and not one.path.endswith(".cedar")), "")
    path = path or (str(context.workspace / FILE) if layer == "project" else "")
    if layer is None or not path:
        raise HTTPException(404, "There is no such file of the policy that could be edited here.")
    wrong, found = list(reasons), None
    file, text = Shown(layer=layer, path=path, text="", sha256=""), form.get("text", "")
    try:
        file = msgspec.convert((await context.ask("guests.policy_file", layer=layer)).document, Shown)
        path = file.path
        text = form.get("text", file.text)
        seen(text, path)
        if len(text) > TEXT_CHARS_MAX:
            raise BadEdit(f"{path} is too long for a form", ELSEWHERE)
        if form and form.get("before", "") != file.sha256:
            raise BadEdit(f"{path} has been changed since it was shown", "its text stands below; look at it again")
        if wanted:
            found = await _tried(context, accepted, file, text)
    except PmagentError as error:
        wrong.append(f"{error.message}; {error.hint}")
        status = max(status, 422) if form else status
    return await context.page(
        request, "policy_edit.html", title="Edit the policy", section="policy", status=status, file=file, wrong=wrong,
        text=_written(text, path), tried=found, first=(found.sha256[:FIRST_CHARS] if found else ""), days=TRIED_DAYS,
        command=("pmagent", "what-if", "--policy", path, "--since", f"{TRIED_DAYS}d"),
    )  # fmt: skip


async def _tried(context: PageContext, accepted: Policy, file: Shown, text: str) -> Tried:
    home = os.environ.get("HOME", "")
    return await context.read(partial(tried, context.layout.store, accepted, file, text, home, now()))


def _written(text: str, where: str) -> Any:
    """The text for a form: exactly as it is, tabs and all, or cleaned where something in it would not be seen."""
    try:
        seen(text, where)
    except BadEdit:
        return text
    return Markup(escape(text))  # noqa: S704 - escaped here


routes: list[BaseRoute] = [
    Route("/policy", listing, methods=["GET"]),
    Route("/policy/edit", edit, methods=["GET"]),
    Route("/policy/try", attempt, methods=["POST"]),
    Route("/policy/accept", accept, methods=["POST"]),
    *(Route(f"/policy/{word}", edit, methods=["GET"]) for word in ("try", "accept")),
]
