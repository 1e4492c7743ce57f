"""Entering and leaving: the one-time address, name and secret, the way out (docs/design.md §18.2)."""

from __future__ import annotations

import re
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from pmagent.console.auth.entrance import Entered, Entrance, NotAdmitted, Visitor
from pmagent.console.auth.guard import cookie_name
from pmagent.console.auth.passkeys import RELYING, NoPasskeys, at_relying
from pmagent.console.pages.context import context_of, form_of

NEXT_CHARS_MAX: Final = 2048

_OWN_PAGE: Final = re.compile(r"/(?![/\\])[\x21-\x7e]*")


async def enter(request: Request) -> Response:
    """``/enter?token=``: the one-time address. A look ahead (HEAD, a browser that prefetches) uses up nothing."""
    ahead = "prefetch" in request.headers.get("sec-purpose", request.headers.get("purpose", ""))
    if request.method == "HEAD" or ahead:
        return Response(status_code=204 if request.method == "HEAD" else 403)
    token = request.query_params.get("token", "")
    try:
        entered = await entrance_of(request).enter(token, request.state.cookie)
    except NotAdmitted as error:
        return await _refused(request, "enter.html", "This address lets nobody in", error)
    return _in(request, entered, "/")


async def sign_in_page(request: Request) -> Response:
    """``/sign-in``: name and secret; and how to enter without. A signed-in visitor is led on."""
    if request.state.visitor is not None:
        return RedirectResponse(own_page(request.query_params.get("next", "")), 303)
    return await context_of(request).page(
        request, "sign_in.html", title="Sign in", section="", what="", hint="", name="",
        next=own_page(request.query_params.get("next", "")), secrets=entrance_of(request).has_secrets(),
        **_passkey(request),
    )


async def sign_in(request: Request) -> Response:
    """Name and secret, as they were typed."""
    form = form_of(request)
    name = form.get("name", "").strip()
    try:
        entered = await entrance_of(request).sign_in(name, form.get("secret", ""), request.state.cookie)
    except NotAdmitted as error:
        return await _refused(
            request, "sign_in.html", "Sign in", error, name=name[:64], next=own_page(form.get("next", "")),
            secrets=True, **_passkey(request),
        )  # fmt: skip
    return _in(request, entered, own_page(form.get("next", "")))


async def sign_in_by_passkey(request: Request) -> Response:
    """POST ``challenge``, ``answer``, ``next``: the browser's answer to a challenge of the page before."""
    form, entrance = form_of(request), entrance_of(request)
    back = own_page(form.get("next", ""))
    try:
        entered = await entrance.sign_in_by_passkey(
            request.headers["host"], form.get("challenge", ""), form.get("answer", ""), request.state.cookie
        )  # fmt: skip
    except (NotAdmitted, NoPasskeys) as error:
        refused = error if isinstance(error, NotAdmitted) else NotAdmitted(f"No passkey: {error.message}.", error.hint)
        return await _refused(
            request, "sign_in.html", "Sign in", refused, name="", next=back, secrets=entrance.has_secrets(),
            **_passkey(request),
        )  # fmt: skip
    return _in(request, entered, back)


def _passkey(request: Request) -> dict[str, Any]:
    """Of the page: the options of the browser's call, "" where it has no use of passkeys, and where it has then ("":
    nowhere)."""
    keys, host = entrance_of(request).passkeys, request.headers["host"]
    lack = keys.lack(host)
    there = at_relying(host) if lack and not keys.lack(RELYING) else ""
    options = "" if lack else keys.options("enter", "", host)
    return {"passkey": options, "elsewhere": there}


async def sign_out(request: Request) -> Response:
    """The way out: the session ends, here and everywhere it is used."""
    visitor: Visitor | None = request.state.visitor
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(_cookie(request), path="/", httponly=True, samesite="strict")
    if visitor is not None:
        await entrance_of(request).sign_out(visitor)
    return answer


def own_page(address: str) -> str:
    """``address``, if it is one of a page here; else that of the first page. It leads to no other site, however a
    browser reads it."""
    fits = len(address) <= NEXT_CHARS_MAX and _OWN_PAGE.fullmatch(address) is not None
    return address if fits and not address.startswith(("/enter", "/sign-")) else "/"


def _in(request: Request, entered: Entered, page: str) -> Response:
    answer = RedirectResponse(page, 303)
    answer.set_cookie(_cookie(request), entered.cookie, path="/", httponly=True, samesite="strict")
    return answer


async def _refused(request: Request, template: str, title: str, error: NotAdmitted, **context: Any) -> Response:
    """The page says by itself how else one enters; when to try again, it has to be told."""
    answer = await context_of(request).page(
        request, template, title=title, section="", status=429 if error.after else 403, what=error.message,
        hint=error.hint if error.after else "", **context,
    )
    if error.after:
        answer.headers["retry-after"] = f"{error.after:.0f}"
    return answer


def _cookie(request: Request) -> str:
    return cookie_name(context_of(request).workspace)


def entrance_of(request: Request) -> Entrance:
    """Whoever lets operators in, of the application that serves ``request``."""
    entrance: Entrance = request.app.state.entrance
    return entrance


routes: list[BaseRoute] = [
    Route("/enter", enter, methods=["GET"]),
    Route("/sign-in", sign_in_page, methods=["GET"]),
    Route("/sign-in", sign_in, methods=["POST"]),
    Route("/sign-in/passkey", sign_in_by_passkey, methods=["POST"]),
    Route("/sign-in/passkey", sign_in_page, methods=["GET"]),  # a page that answers a POST may be looked at again
    Route("/sign-out", sign_out, methods=["POST"]),
]
