"""The choice of a theme, and of how close rows stand: cookies, set by a form, so that it needs no script. The system's
own theme and roomy rows are the rule."""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from pmagent.console.pages.context import form_of
from pmagent.console.pages.views.entrance import own_page

CHOICES: Final = {"theme": ("auto", "light", "dark"), "density": ("roomy", "compact")}
"""Cookies and what they may say; the first is the rule, and is kept by no cookie."""
SECONDS: Final = 365 * 86_400


async def choose(request: Request) -> Response:
    """Keep the choice in the browser, and go back to where it was made. Raises HTTPException (400): no such theme."""
    form = form_of(request)
    cookie = "density" if "density" in form else "theme"
    chosen = form.get(cookie, "")
    if chosen not in CHOICES[cookie]:
        raise HTTPException(400, f"There is no such {cookie}; there are {', '.join(CHOICES[cookie])}.")
    answer = RedirectResponse(own_page(form.get("back", "")), status_code=303)
    if chosen == CHOICES[cookie][0]:
        answer.delete_cookie(cookie, path="/", httponly=True, samesite="strict")
    else:
        answer.set_cookie(cookie, chosen, max_age=SECONDS, path="/", httponly=True, samesite="strict")
    return answer


routes: list[BaseRoute] = [Route("/theme", choose, methods=["POST"])]
