"""Deciding on the console as people do: a page is fetched, its form filled in and sent; over a live host."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from pmagent.console.pages.context import PageContext
from pmagent.pla import reading
from pmagent.service.answer import Answer
from pmagent.workspace.trust import accept
from tests.support.console_pages import Page, assert_harmless
from tests.support.consoles import Console, LiveHost

ASKING = "ada"
APPROVING = "bob"
LOOKING = "eve"
SECONDS = 120.0


def configure(workspace: Path, *lines: str) -> Path:
    """Write the settings [pla]; the workspace."""
    folder = workspace / ".pmagent"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text("\n".join(["[pla]", f'operator = "{ASKING}"', *lines, ""]))
    accept(workspace)
    return workspace


class _Forms(HTMLParser):
    """The forms of a page: where each is sent, and the values that it has by itself."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, str]]] = []
        self.buttons: dict[str, list[dict[str, str | None]]] = {}
        self._area = ""
        self._open = False
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See HTMLParser."""
        given = dict(attrs)
        if tag == "form":
            self.forms.append((given.get("action") or "", {}))
            self._open = True
            return
        if not self._open:
            return
        action, fields = self.forms[-1]
        if tag == "button":
            self.buttons.setdefault(action, []).append(given)
        elif tag == "textarea":
            self._area = given.get("name") or ""
            fields[self._area] = ""
        elif tag == "input" and given.get("name") and (given.get("type") != "checkbox" or "checked" in given):
            fields[str(given["name"])] = given.get("value") or ""

    def handle_data(self, data: str) -> None:
        """See HTMLParser."""
        if self._area:
            self.forms[-1][1][self._area] += data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        """See HTMLParser."""
        if tag == "textarea":
            self._area = ""
        elif tag == "form":
            self._open = False


def forms(source: str, action: str) -> list[dict[str, str]]:
    """The fields of the forms of a page that are sent to ``action``, as they stand."""
    return [fields for where, fields in _Forms(source).forms if where == action]


def buttons(source: str, action: str) -> list[dict[str, str | None]]:
    """The attributes of the buttons of the forms that are sent to ``action``, in their order."""
    return _Forms(source).buttons.get(action, [])


class Approver:
    """Somebody at the console of a live host, who decides on proposals."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def card(self, name: str, query: str = "", status: int = 200) -> Page:
        """The page of a proposal, which is harmless."""
        answer = self.console.get(f"/approvals/{name}{query}", follow_redirects=True)
        return page_of(answer, status)

    def form(self, name: str, word: str = "approve") -> dict[str, str]:
        """The form that approves or rejects it, as the page has it."""
        (fields,) = forms(self.card(name, f"?decide={word}").source, f"/approvals/{name}/{word}")
        return fields

    def filled(self, name: str, **more: str) -> dict[str, str]:
        """The form that approves it, filled in by somebody who has read it."""
        fields = self.form(name)
        return {**fields, "read": "yes", "first": fields["digest"][:6], **more}

    def send(self, name: str, word: str, fields: dict[str, str]) -> Any:
        """The answer to a form."""
        return self.console.post(f"/approvals/{name}/{word}", **fields)

    def approve(self, name: str, **more: str) -> Any:
        """Read it, fill the form in, send it."""
        return self.send(name, "approve", self.filled(name, **more))

    def reject(self, name: str, reason: str) -> Any:
        """Fetch the form, say why, send it."""
        return self.send(name, "reject", {**self.form(name, "reject"), "reason": reason})


def page_of(answer: Any, status: int) -> Page:
    """The page of an answer with this status, which is harmless."""
    assert answer.status_code == status, f"{answer.status_code} {answer.text[-3000:]}"
    page = Page(answer.text)
    assert_harmless(page)
    return page


def told(page: Page) -> str:
    """All that a page says, a blank between what stands in different elements."""
    return " ".join(" ".join(page._texts).split())


def suggesting(host: LiveHost) -> None:
    """In SUGGEST, with nothing open, whatever was before."""
    state = reading.warden(host.host.runtime.engine)
    if state.mode == "SUGGEST":
        for view in state.open_proposals:
            name = view.proposed.proposal_id
            host.perform("pla.decide", operator=ASKING, proposal_id=name, decision="REJECTED", reason="enough of it")
        return
    for mode in ("OBSERVE", "SUGGEST"):
        answer = host.perform("pla.mode", operator=ASKING, channel="cli", mode=mode)
        assert answer.exit_code == 0, answer.document


def proposed(host: LiveHost, goal: str = 'type: "ls -la\\n"', **more: Any) -> dict[str, Any]:
    """A fresh open proposal of ada's."""
    suggesting(host)
    answer = host.perform("pla.propose", **{"operator": ASKING, "channel": "cli", "goal": goal, **more})
    assert answer.exit_code == 0, answer.document
    return answer.document


def stand_by(monkeypatch: pytest.MonkeyPatch, **pla: Any) -> None:
    """Have pages learn that another machine holds the log, and these fields of how the PLA stands."""
    standing, more = PageContext.standing, {"status": {"daemon": "elsewhere", "holder": "pid 7"}, "pla.status": pla}

    async def stood(self: PageContext, operation: str) -> Answer:
        answer = await standing(self, operation)
        return msgspec.structs.replace(answer, document={**answer.document, **more.get(operation, {})})

    monkeypatch.setattr(PageContext, "standing", stood)


def until(host: LiveHost, condition: Callable[[], object]) -> None:
    """Wait until ``condition`` holds of the host's actors, as long as a test may take at most."""
    host.run(_until, host, condition)


async def _until(host: LiveHost, condition: Callable[[], object]) -> None:
    with anyio.fail_after(SECONDS):
        await host.host.until(lambda: bool(condition()))


def view_of(host: LiveHost, name: str) -> dict[str, Any]:
    """How a proposal stands, as the command line has it."""
    return host.perform("pla.show", proposal_id=name).document


def main_of(page: Page) -> str:
    """The page's own part: what is not of the moment."""
    return page.source[page.source.index("<main") : page.source.index("</main>")]
