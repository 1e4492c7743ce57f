"""The page of help: what the pages are for, keys, marks, times and words. Tables come from the code."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pmagent.cli.topics import TOPICS
from pmagent.console.pages.context import context_of

KEYS: Final = (
    (("j",), "the next row"),
    (("k",), "the row before"),
    (("Enter",), "open the row"),
    (("/",), "to the filter"),
    (("?",), "these keys"),
    (("Esc",), "out of a field; stops what is being typed, on its page"),
)
"""Keys that move; none of them decides anything. Those that go to a section are ``g`` and the section's."""

MARKS: Final = (
    ("✓", "good", "it came about, or is as it should be"),
    ("✗", "bad", "it failed, or was refused"),
    ("▸", "busy", "it is going on; in the log: a decision"),
    ("•", "", "in the log: a fact"),
    ("◦", "", "it waits"),
    ("↻", "warn", "it is tried again"),
    ("‖", "warn", "it is paused"),
    ("!", "warn", "it wants to be looked at"),
    ("?", "warn", "nobody can tell"),
    ("·", "", "nothing has come of it yet"),
)
"""Sign, tone, meaning."""


async def show(request: Request) -> Response:
    """The page."""
    return await context_of(request).page(
        request, "help.html", title="Help", section="help", command=("pmagent", "help"), keys=KEYS, marks=MARKS,
        times=_body("times"), words=_body("vocabulary"),
    )


def _body(topic: str) -> str:
    """A topic of ``pmagent help`` without its heading."""
    return TOPICS[topic].text().partition("\n\n")[2]


routes: list[BaseRoute] = [Route("/help", show)]
