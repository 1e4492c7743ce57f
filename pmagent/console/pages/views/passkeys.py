"""Passkeys: an operator's own, adding one, and confirming with one before something is approved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from pmagent.console.auth.entrance import CONFIRMED_SECONDS
from pmagent.console.auth.operators import PASSKEY_NAME_MAX
from pmagent.console.auth.passkeys import RELYING, at_relying
from pmagent.console.pages.addresses import BadAddress
from pmagent.console.pages.context import context_of, form_of, visitor_of
from pmagent.console.pages.views.entrance import entrance_of, own_page
from pmagent.events.errors import PmagentError

COMMAND: Final = ("pmagent", "operators", "list")


def confirm_first(request: Request, page: str) -> Response | None:
    """To the page where the visitor uses a passkey, and from there back to ``page``; None: nothing is missing."""
    return RedirectResponse(f"/passkeys?next={quote(page, safe='')}", 303) if visitor_of(request).due else None


async def show(request: Request) -> Response:
    """``GET /passkeys?next=``: the visitor's passkeys; with ``next``, to confirm and go back there."""
    return await _page(request)


async def _page(request: Request, wrong: PmagentError | None = None) -> Response:
    visitor, entrance, host = visitor_of(request), entrance_of(request), request.headers["host"]
    operator, keys = entrance.operator(visitor), entrance.passkeys
    lack = keys.lack(host)
    back = own_page((form_of(request) or request.query_params).get("next", ""))
    confirms = bool(operator.passkeys) and not visitor.confirmed
    return await context_of(request).page(
        request, "passkeys.html", title="Passkeys", section="settings", command=COMMAND, operator=operator, lack=lack,
        wanted=keys.wanted, elsewhere=at_relying(host) if host.partition(":")[0] != RELYING else "",
        adding="" if lack or confirms else keys.options("add", visitor.session, host, operator), next=back,
        confirming=keys.options("confirm", visitor.session, host, operator) if confirms and not lack else "",
        minutes=round(CONFIRMED_SECONDS / 60), name_max=PASSKEY_NAME_MAX, wrong=wrong, status=409 if wrong else 200,
    )  # fmt: skip


async def add(request: Request) -> Response:
    """POST ``challenge``, ``answer``, ``name``: one more passkey of the visitor's; who has one has used it just now."""
    form, visitor, entrance = form_of(request), visitor_of(request), entrance_of(request)
    name = form.get("name", "").strip()
    if not 0 < len(name) <= PASSKEY_NAME_MAX:
        raise BadAddress(f"a passkey's name has 1 to {PASSKEY_NAME_MAX} characters", "name the device that keeps it")

    async def added() -> None:
        if entrance.operator(visitor).passkeys and not visitor.confirmed:
            raise BadAddress("another passkey is added with one that you have", "confirm with it first")
        await entrance.add_passkey(visitor, request.headers["host"], *_answer(form), name)

    return await _tried(request, added)


async def confirm(request: Request) -> Response:
    """POST ``challenge``, ``answer``, ``next``: the visitor has used a passkey, and may approve for a while."""
    form, visitor = form_of(request), visitor_of(request)
    return await _tried(
        request, lambda: entrance_of(request).confirm(visitor, request.headers["host"], *_answer(form))
    )  # fmt: skip


async def _tried(request: Request, act: Callable[[], Awaitable[None]]) -> Response:
    try:
        await act()
    except PmagentError as error:
        return await _page(request, error)
    back = own_page(form_of(request).get("next", ""))
    return RedirectResponse("/passkeys" if back == "/" else back, 303)


def _answer(form: dict[str, str]) -> tuple[str, str]:
    return form.get("challenge", ""), form.get("answer", "")


routes: list[BaseRoute] = [
    Route("/passkeys", show, methods=["GET"]),
    Route("/passkeys/add", add, methods=["POST"]),
    Route("/passkeys/confirm", confirm, methods=["POST"]),
    *(Route(f"/passkeys/{word}", show, methods=["GET"]) for word in ("add", "confirm")),
]
