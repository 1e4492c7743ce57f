"""Hostile text in every field of the first page and of the pages of proposals: nothing runs, leads elsewhere, hides or
reorders, and the page is made of the same elements as with harmless text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from anyio.from_thread import start_blocking_portal
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from pmagent.console.app import application
from pmagent.console.auth.entrance import Visitor
from pmagent.console.pages.approvals.history import Step, Story
from pmagent.console.pages.approvals.shown_state import Situation, packed, shown_state
from pmagent.console.pages.context import PageContext
from pmagent.contracts.pla_events import PlaDecisionRequested, PlaFrameObserved, PlaProposalRequested
from pmagent.jobs.catalogue import Ending, Entry
from pmagent.jobs.kinds import RUNS
from pmagent.service.answer import Answer
from tests.support.cases import each
from tests.support.console_pages import Page, assert_harmless
from tests.support.effort import some
from tests.support.hostile import CORPUS
from tests.support.proposals import PROPOSAL, status, typed

T = TypeVar("T")

TIME: Final = "2026-11-22T12:00:00.000000Z"
MARKUP: Final = {
    "script": "</pre></textarea></title><script>alert(1)</script>",
    "attribute": '"\' onmouseover=alert(1) x="',
    "link": "<a href=https://evil.example>click</a> javascript:alert(1) [x](https://evil.example)",
    "image": "<img src=//evil.example/x onerror=alert(1)><svg/onload=alert(1)>",
    "template": "{{ 7*7 }} {% for x in y %} &lt;b&gt; &#x202e;",
}
TEXTS: Final = {name: text[:240] for name, text in {**CORPUS, **MARKUP}.items()}
COUNTED: Final = ("a", "button", "form", "iframe", "img", "input", "script", "svg", "textarea", "select")
SIGNED_IN: Final = Visitor("bob", "approve", "s" * 64, "token", TIME)


def alert(text: str, severity: str = "bad") -> dict[str, Any]:
    """An alert that says ``text``."""
    return {
        "kind": text, "severity": severity, "title": text, "subject": text, "detail": text, "page": "",
        "position": 7 if severity == "bad" else 8, "time": TIME, "first": 7, "since": TIME, "count": 2,
    }  # fmt: skip


def acknowledged(text: str) -> dict[str, Any]:
    """The same, acknowledged."""
    return {**alert(text), "alert": 7, "operator_id": text, "channel": text, "note": text}


class Told(PageContext):
    """A context whose daemon and log say ``text`` wherever they say anything."""

    def __init__(self, workspace: Path) -> None:
        super().__init__(workspace)
        self.text = "plain"
        self.open = True
        self.refused = False

    def document(self) -> dict[str, Any]:
        """The proposal."""
        text = self.text
        own = {"chars": 4, "rationale": text, "requested_by": text, "proposed_by": text, "channel": text}
        shown = typed(
            text, **own, findings=[text, text], credential_warning=True, ocr_text=text, frame=9, policy=text,
            proposed_in=text, session_id=text, machine=text, layout=text,
        )  # fmt: skip
        shown["digest"] = "0123456789abcdef" * 4
        if not self.open:
            shown |= {
                "stands": "closed", "outcome": "rejected", "why": text, "decided_by": text, "decided_over": text,
                "decided_at": TIME, "closed_at": TIME, "execution_id": text,
            }  # fmt: skip
        return shown

    def position(self) -> int:
        """See PageContext."""
        return 14

    async def standing(self, operation: str) -> Answer:
        """See PageContext."""
        text = self.text
        if operation == "alerts.list":
            return Answer(document={
                "counts": {}, "open": [alert(text, "urgent"), alert(text)], "acknowledged": 1, "newest": 6,
                "given_up": 1,
            })  # fmt: skip
        if operation == "figures":
            return Answer(document={"hours": []})
        if operation == "guests.approvals":
            call = {"approval": 9, "tool": text, "text": text, "harness": text, "agent": text, "session": text}
            call |= {"given": False, "needed": 2, "operators": [text], "asked": TIME, "expires": TIME}
            return Answer(document={"approvals": [call]})
        if operation == "pla.status":
            device = {"device_id": text, "port": text, "firmware_version": text, "text": text, "compatible": False}
            device |= {"caps_lock": True, "error": text}
            session = {"session_id": text, "began_at": TIME, "operator_id": text}
            more = {
                "ending": text, "trouble": text, "halted": [text], "action_class": text, "proposal": self.document(),
            }
            return Answer(document=status(device=device, session=session, **more))
        return Answer(
            document={
                "running": True, "mode": "DEGRADED", "phase": text, "branch": text, "permits": 1, "held": 1,
                "reasons": [{"code": text, "mode": "DEGRADED", "text": text, "mend": text}], "halted": [text],
                "sessions": [{"session_id": text, "booted_at": TIME, "boot_mode": text, "current_mode": text,
                              "correlation": text}],
                "alerts": {
                    "urgent": 1, "request": 0, "bad": 1, "warn": 0, "newest": [alert(text, "urgent"), alert(text)],
                },
                "paused": {"since": 3, "time": TIME, "operator_id": text, "reason": text},
                "open_effects": [{"position": 4, "type": text, "since": TIME, "held": True}],
                "jobs": [{"kind": "run", "id": text, "position": 5, "doing": text, "what": text}],
                "log": {"log_id": text, "position": 14, "sum": "0" * 64, "time": TIME},
            }
        )  # fmt: skip

    async def ask(
        self, operation: str, visitor: Visitor | None = None, *, request: str = "", seconds: float = 0.0,
        **arguments: Any,
    ) -> Answer:  # fmt: skip
        """See PageContext."""
        del visitor, request, seconds, arguments
        text = self.text
        if operation == "pla.list":
            other = {**self.document(), "proposal_id": "prop-1", "position": 2, "stands": "closed", "why": text}
            return Answer(
                document={"proposals": [self.document(), {**other, "outcome": "recorded", "decided_by": text}]}
            )
        if operation == "pla.show":
            return Answer(document=self.document())
        return Answer(document={"reasons": [text], "mend": [text], "code": text}, exit_code=1)

    async def read(self, reader: Callable[..., T], *arguments: Any) -> T:
        """The log's answer, by what is asked for."""
        del arguments
        name, text = getattr(reader, "__name__", ""), self.text
        answers: dict[str, Callable[[], Any]] = {
            "_recent": lambda: [Entry(RUNS, "r" * 36, 5, TIME, text, whole=True, ending=Ending(
                request=5, position=6, time=TIME, state="failed", reasons=[text],
            ))],
            "_times": lambda: [TIME], "latest": lambda: None, "story": self.story,
            "acknowledged": lambda: ([acknowledged(text)], 5), "troubles": lambda: [text],
            "_notes": lambda: [{"note": text, "text": text, "operator_id": text, "position": 7, "time": TIME}],
        }  # fmt: skip
        return answers[name]()  # type: ignore[no-any-return]

    def story(self) -> Story:
        """The log's story of the proposal."""
        text = self.text
        step = Step(13, TIME, text, text, text)
        return Story(
            asked=PlaProposalRequested(goal=text, requested_by="ada", channel="cli"),
            frame=PlaFrameObserved(
                request=8, name=text, media_type="image/png", sha256=text, size=1, width=2, height=3, ocr_text=text,
                ocr=text, note=text,
            ),
            causes=[step], steps=[step], more=3,
            decision=None if self.open else PlaDecisionRequested(
                proposal_id=PROPOSAL, decision="REJECTED", digest="0" * 64, operator_id="bob", channel="console",
                reason=text[:500],
            ),
        )  # fmt: skip


class Browser:
    """The pages of a ``Told`` context."""

    def __init__(self, context: Told) -> None:
        self.context = context
        self.form: dict[str, str] = {}
        self._app = application(context)
        self.client = TestClient(self._let_in, follow_redirects=False, raise_server_exceptions=False)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {}).update(visitor=SIGNED_IN, form=self.form, position=14)
        await self._app(scope, receive, send)

    def page(self, name: str, text: str) -> Page:
        """One of the pages, where everything says ``text``."""
        self.context.text, self.context.open = text, name != "decided"
        method, address, status_code, form = PAGES[name]
        shown = shown_state(self.context.document(), status(), paused=False)
        self.form = {
            "digest": shown.digest, "mode": "SUGGEST", "nonce": "0" * 32, "seen": packed(shown), **form(text),
        }  # fmt: skip
        answer = self.client.request(method, address)
        assert answer.status_code == status_code, answer.text[-2000:]
        page = Page(answer.text)
        assert_harmless(page)
        return page


def _none(_: str) -> dict[str, str]:
    return {}


_CARD: Final = f"/approvals/{PROPOSAL}"
_OPENED: Final = packed(Situation("SUGGEST", "not armed", "none", "running"))
_FORM: Final = f"&form={'0' * 32}&opened={_OPENED.replace('=', '%3D')}"
PAGES: Final[dict[str, tuple[str, str, int, Callable[[str], dict[str, str]]]]] = {
    "now": ("GET", "/", 200, _none),
    "alerts": ("GET", "/alerts", 200, _none),
    "now_mode": ("GET", "/?change=mode", 200, _none),
    "list": ("GET", "/approvals", 200, _none),
    "card": ("GET", _CARD, 200, _none),
    "approving": ("GET", f"{_CARD}?decide=approve{_FORM}", 200, _none),
    "rejecting": ("GET", f"{_CARD}?decide=reject{_FORM}", 200, _none),
    "decided": ("GET", _CARD, 200, _none),
    "lacking": ("POST", f"{_CARD}/reject", 422, lambda text: {"reason": text * 501}),
    "changed": ("POST", f"{_CARD}/reject", 409, lambda _: {"reason": "no"}),
    "not_done": ("POST", "/control/arm", 409, _none),
}  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """The pages, made once."""
    made = Browser(Told(tmp_path_factory.mktemp("hostile")))
    with start_blocking_portal() as portal:
        made.client.portal = portal
        yield made


def elements(page: Page) -> Counter[str]:
    """How many there are of each kind that does something."""
    return Counter(tag for tag, _ in page.elements if tag in COUNTED)


@each("name", PAGES)
def test_whatever_is_said_a_page_does_nothing_else(browser: Browser, name: str) -> None:
    usual = elements(browser.page(name, "a\tb\n"))
    for text in some(list(TEXTS.values()), 6):
        given = text if "\n" in text and "\t" in text else f"{text}\t\n"  # what it may do is the same, so the page is
        assert elements(browser.page(name, given)) == usual, text[:80]


@each("name", ["card", "list", "now", "alerts", "decided"])
def test_markup_is_seen_as_it_was_written(browser: Browser, name: str) -> None:
    page = browser.page(name, "<b>bold</b> & 'quoted'")
    assert "<b>bold</b> & 'quoted'" in page.text
    assert "<b>" not in page.source


def test_what_is_typed_is_shown_with_each_character_named(browser: Browser) -> None:
    page = browser.page("card", "a b\x00\u202e\t\n")
    start = page.source.index('<pre class="bytes"')
    shown = Page(page.source[start : page.source.index("</pre>", start) + 6]).text
    assert shown == "a·bU+0000U+202E⇥⏎"


def test_an_address_that_is_hostile_itself_is_answered_by_a_page_that_is_not(browser: Browser) -> None:
    browser.context.text = "plain"
    answer = browser.client.get("/approvals/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert answer.status_code == 404
    assert_harmless(Page(answer.text))
