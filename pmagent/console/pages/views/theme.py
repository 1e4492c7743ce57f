"""The choice of a theme: a cookie, set by a form, so that it needs no script. The system's own is the rule."""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from pmagent.console.pages.context import form_of
from pmagent.console.pages.views.entrance import own_page

COOKIE: Final = "theme"
THEMES: Final = ("auto", "light", "dark")
SECONDS: Final = 365 * 86_400


async def choose(request: Request) -> Response:
    """Keep the choice in the browser, and go back to where it was made. Raises HTTPException (400): no such theme."""
    form = form_of(request)
    theme = form.get("theme", "")
    if theme not in THEMES:
        raise HTTPException(400, f"There is no such theme; there are {', '.join(THEMES)}.")
    answer = RedirectResponse(own_page(form.get("back", "")), status_code=303)
    if theme == "auto":
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    else:
        answer.set_cookie(COOKIE, theme, max_age=SECONDS, path="/", httponly=True, samesite="strict")
    return answer


routes: list[BaseRoute] = [Route("/theme", choose, methods=["POST"])]
