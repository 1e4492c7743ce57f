"""Events full of hostile text: the log's page, each event's page, and what is made of them in an address."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from pmagent.console.pages.reading.lines import rows
from pmagent.console.pages.reading.outputs import decoded, marked
from pmagent.events.event import StoredEvent
from pmagent.log.source import line_runs
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.commands import pmagent
from tests.support.console_pages import Page, Reader, assert_harmless, reading
from tests.support.effort import some
from tests.support.hostile import CORPUS, FAKE, hostile_log
from tests.support.logged import note, write_log


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a log of hostile events."""
    made = tmp_path_factory.mktemp("hostile")
    hostile_log(made)
    return made


@pytest.fixture(scope="module")
def events(workspace: Path) -> list[StoredEvent]:
    """All of them."""
    with closing(Layout(workspace).store.reader()) as storage:
        return [event for run, _ in line_runs(storage) for event in run]


@pytest.fixture(scope="module")
def browser(workspace: Path) -> Iterator[Reader]:
    """Somebody who looks at it."""
    with reading(workspace) as made:
        yield made


def test_each_event_is_one_row_that_does_nothing(events: list[StoredEvent]) -> None:
    page = Page(f"<table><tbody>{rows(events)}</tbody></table>")
    assert_harmless(page)
    assert [row["id"] for row in page.all("tr")] == [f"e{event.position}" for event in events]
    assert {len([1 for tag, _ in Page(str(rows([event]))).elements if tag in ("td", "th")]) for event in events} == {6}


def test_the_pages_of_hostile_events_do_nothing(browser: Reader, events: list[StoredEvent]) -> None:
    page = browser.page("/log?n=1000&newest=last")
    assert len([row for row in page.all("tr") if "id" in row]) == len(events)
    for event in events[1::4]:
        browser.page(f"/log/{event.position}")


def test_hostile_names_of_files_beside_the_segments_do_nothing(tmp_path: Path) -> None:
    folder = hostile_log(tmp_path)
    for name in (b"\xff\x1b[31m<img src=x onerror=alert(1)>", "\u202egnp.jsonl\u2066".encode(), b"\xc3\x28\n\n"):
        Path(f"{folder}/{os.fsdecode(name)}").write_bytes(b"")
    with reading(tmp_path) as browser:
        assert "<img src=x onerror=alert(1)>" in browser.page("/integrity").text


@each("name", some(list(CORPUS), 6))
def test_hostile_text_in_an_address_does_nothing(browser: Reader, name: str) -> None:
    text = quote(CORPUS[name][:1000].encode("utf-8", "surrogatepass"), safe="")
    page = browser.page(f"/log?type={text}&actor={text}&correlation={text}&field=kind%3D{text}&newest=last")
    assert "kind=" in page.source
    browser.page(f"/log?grep={text}&since={text}&n={text}&{text}=1", 400)
    browser.page(f"/log/find?id={text}", 404)


@each("name", list(CORPUS))
def test_marked_text_shows_all_of_it(name: str) -> None:
    text = CORPUS[name][:5_000]
    shown = Page(str(marked(text)))
    assert_harmless(shown)
    assert not any(line.startswith(FAKE) for line in shown.text.split("\n"))
    if text.isascii() and text.isprintable():
        assert str(marked(text)) == text


def test_bytes_that_are_no_text_are_shown_as_what_they_are() -> None:
    assert str(marked(decoded(b"a\xff\xc3\xa9\x1b<"))) == (
        'a\\xff\u00e9<span class="mark" title="U+001B">U+001B</span>&lt;'
    )
    assert "\\x80" in str(marked("\udc80"))


def test_what_is_nested_deeper_than_programs_recurse_is_shown_in_short(tmp_path: Path) -> None:
    lists: object = "end"
    texts: object = "end"
    for _ in range(400):
        lists, texts = [lists], {"text": texts}
    write_log(tmp_path, [note(1, lists), note(2, texts), note(3, {"n": lists})])
    with reading(tmp_path) as browser:
        assert browser.page("/log").text.count("…") >= 3
        for position in (2, 3, 4):
            browser.page(f"/log/{position}")
    done = pmagent(tmp_path, "log", "tail", "-n", "all")
    assert (done.code, len(done.lines)) == (0, 4)
