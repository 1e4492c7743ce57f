"""Every type of event that there is, with hostile text in every field that takes text: its row, its page, the lists and
the first page do nothing with it but show it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Final

import pytest
from msgspec import inspect

from pmagent.console.pages.reading.lines import rows
from pmagent.contracts.payload import types
from pmagent.events.event import StoredEvent
from pmagent.log.source import line_runs
from pmagent.log.summaries import known
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.console_pages import Page, Reader, assert_harmless, reading
from tests.support.effort import some
from tests.support.furnished import MARKUP
from tests.support.hostile import CORPUS
from tests.support.logged import fill_log, note
from tests.support.made_values import Made

TEXTS: Final = [*(text[:300] for text in CORPUS.values()), *MARKUP.values()]
CELLS: Final = {"table", "tbody", "tr", "td", "th", "a", "span", "time"}
AGAIN: Final = {"", "10;url=/", "30"}
"""How pages without scripts are read anew."""
LISTS: Final = ("/", "/approvals", "/runs", "/audits", "/sessions", "/sessions?kind=oa", "/log", "/integrity", "/help")


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[StoredEvent]]:
    """A log with each type three times, and with different texts in each of its fields."""
    workspace = tmp_path_factory.mktemp("hostile")
    drafts, texts = [], 0
    for number, (name, type_) in enumerate(sorted(types().items())):
        for turn in range(3):
            start = (7 * number + 9 * turn) % len(TEXTS)
            made = Made(texts=cycle([*TEXTS[start:], *TEXTS[:start]]))
            data = made.of(inspect.type_info(type_))
            texts += made.texts
            hostile = TEXTS[(number + turn) % len(TEXTS)][:50]
            drafts.append(note(3 * number + turn, data, type=name, actor=hostile, correlation=hostile, causation=1))
    assert texts > 500
    fill_log(workspace, drafts)
    with closing(Layout(workspace).store.reader()) as storage:
        return workspace, [event for run, _ in line_runs(storage) for event in run]


@pytest.fixture(scope="module")
def browser(events: tuple[Path, list[StoredEvent]]) -> Iterator[Reader]:
    """Somebody who reads them."""
    with reading(events[0]) as opened_browser:
        yield opened_browser


def test_every_type_that_is_told_of_in_words_is_there(events: tuple[Path, list[StoredEvent]]) -> None:
    there = {event.type for event in events[1]}
    assert set(types()) <= there
    assert not {name for name in {*known()} - there if name in types()}


def test_each_is_one_row_that_does_nothing(events: tuple[Path, list[StoredEvent]]) -> None:
    """The stream sends the same rows."""
    for event in events[1]:
        page = Page(f"<table><tbody>{rows([event])}</tbody></table>")
        assert_harmless(page)
        assert len(page.all("tr")) == 1
        assert {tag for tag, _ in page.elements} <= CELLS, event.type


def test_the_page_of_each_does_nothing(events: tuple[Path, list[StoredEvent]], browser: Reader) -> None:
    usual = _active(browser.page("/log/1"))
    for event in some(events[1][1:], 40):
        page = browser.page(f"/log/{event.position}")
        assert _active(page) == usual, event.type
        assert event.type in page.text


@each("address", LISTS)
def test_what_gathers_from_all_of_them_does_nothing(browser: Reader, address: str) -> None:
    """A page that cannot make anything of such a log says so; that is a page, too."""
    answer = browser.get(address)
    page = Page(answer.text)
    assert_harmless(page)
    assert "A bug in pmagent" not in page.text
    assert _active(page) == _active(browser.page("/help"))


def _active(page: Page) -> list[dict[str, str]]:
    """The elements that run, or show things from elsewhere."""
    assert {meta.get("content") for meta in page.all("meta") if "http-equiv" in meta} <= AGAIN
    loaded = ("script", "link", "img", "image", "use", "video", "audio", "source", "template")
    return [attributes for tag, attributes in page.elements if tag in loaded]
