"""Pages of the console over a workspace that no daemon runs on, and what must hold of any page, whatever it shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from pmagent.console.app import Positioned, application
from pmagent.console.auth.entrance import Visitor
from pmagent.console.pages.context import PageContext
from tests.support.hostile import unseen_in

VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))
FORBIDDEN = frozenset(("style", "iframe", "object", "embed", "base", "frame", "applet", "marquee", "font"))
ADDRESSES = ("href", "src", "action", "formaction", "data-tail", "poster", "srcset")


class Page(HTMLParser):
    """A page, parsed: its elements with their attributes, and its text. An element that does not nest is an error."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.errors: list[str] = []
        self._open: list[str] = []
        self._texts: list[str] = []
        self.feed(source)
        self.close()
        self.errors += [f"<{tag}> is never closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See HTMLParser."""
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.errors.append(f"<{tag}> has an attribute twice: {names}")
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """See HTMLParser."""
        if not self._open or self._open[-1] != tag:
            self.errors.append(f"</{tag}> where {self._open[-1:]} is open, line {self.getpos()[0]}")
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        """See HTMLParser."""
        self._texts.append(data)

    @property
    def text(self) -> str:
        """All text, with single blanks."""
        return " ".join("".join(self._texts).split())

    def all(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        """The attributes of the elements of this name that have these values; ``_`` stands for ``-``."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [
            found for name, found in self.elements
            if name == tag and all(found.get(each) == value for each, value in wanted.items())
        ]  # fmt: skip

    def one(self, tag: str, **attributes: str) -> dict[str, str]:
        """The only such element's attributes."""
        (found,) = self.all(tag, **attributes)
        return found

    def links(self, beginning: str = "") -> list[str]:
        """Where its links lead, of those that begin so."""
        return [found["href"] for found in self.all("a") if found.get("href", "").startswith(beginning)]

    @property
    def copied(self) -> list[str]:
        """The commands that the page offers to copy."""
        return [found["data-copy"] for found in self.all("button", class_="copy")]


def assert_harmless(page: Page) -> None:
    """Nothing in it runs, loads, leads elsewhere, hides or reorders, and what it consists of nests."""
    assert not page.errors, page.errors[:5]
    hidden = unseen_in(page.source)
    assert not hidden, sorted(map(ascii, hidden))
    at = page.source.find("\u0301" * 5)
    assert at < 0, page.source[max(0, at - 200) : at + 8]
    for tag, attributes in page.elements:
        assert tag not in FORBIDDEN, tag
        assert tag != "script" or attributes.get("src", "").startswith("/static/"), attributes
        assert not [name for name in attributes if name.startswith("on") or name == "style"], attributes
        for name in ADDRESSES:
            if name in attributes:
                address = attributes[name]
                assert address.startswith(("/", "#")), (tag, address)
                assert not address.startswith(("//", "/\\")), (tag, address)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids)), [id for id in ids if ids.count(id) > 1][:5]


class Reader:
    """A browser that reads: it is let in without a guard, as ``ada``, and no daemon answers."""

    def __init__(self, workspace: Path, role: Any = "approve") -> None:
        self.context = PageContext(workspace)
        self.visitor = Visitor("ada", role, "s" * 64, "token", "2026-11-22T12:00:00.000000Z")
        self.app = application(self.context)
        self.client = TestClient(
            self._let_in, base_url="http://127.0.0.1:8321", follow_redirects=False, raise_server_exceptions=False
        )
        self._pages = Positioned(self.app, self.context)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {}).update(visitor=self.visitor, form={})
        await self._pages(scope, receive, send)

    def get(self, address: str) -> Any:
        """The answer to a GET."""
        return self.client.get(address)

    def page(self, address: str, status: int = 200) -> Page:
        """The page at an address, which is harmless."""
        answer = self.client.get(address)
        assert answer.status_code == status, f"{address}: {answer.status_code} {answer.text[-3000:]}"
        page = Page(answer.text)
        assert_harmless(page)
        return page


@contextmanager
def reading(workspace: Path, role: Any = "approve") -> Iterator[Reader]:
    """A browser for the length of a block; all its requests run on one event loop."""
    made = Reader(workspace, role)
    with start_blocking_portal() as portal:
        made.client.portal = portal
        yield made
