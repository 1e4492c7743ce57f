"""The Log page's overview: events over time by bisection, counts of what stands in the newest, and saved filters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import QueryParams

from pmagent.console.pages.reading import explorer, saved
from pmagent.console.pages.reading.log_address import LogPageQuery, read
from pmagent.console.paths import ConsolePaths
from pmagent.events.errors import CorruptLog
from pmagent.log.query import Query
from pmagent.log.ranges import Range
from pmagent.workspace.layout import Layout
from tests.conftest import fresh_example
from tests.support.cases import each
from tests.support.console_pages import reading
from tests.support.consoles import Console, LiveHost, console, live_host
from tests.support.effort import some
from tests.support.hostile import CORPUS
from tests.support.logged import fill_log, note, write_log


def filled(workspace: Path, count: int = 60) -> Path:
    """A log of notes of two types and two actors."""
    fill_log(workspace, [
        note(number, type="toy.noted" if number % 3 else "toy.other", actor="ann" if number % 2 else "ben",
             correlation=f"run-{number % 4}")
        for number in range(count)
    ])  # fmt: skip
    return workspace


def seen(workspace: Path, asked: LogPageQuery, start: int = 1) -> explorer.Overview:
    """The overview of the whole log."""
    store = Layout(workspace).store
    return explorer.overview(store, asked, Range(start, None, ""), 10**9)


def columns(picture: str) -> list[tuple[int, int]]:
    """The first and the last position of each column that is a link."""
    return [(int(low), int(high)) for low, high in re.findall(r"since=pos%3A(\d+)&amp;until=pos%3A(\d+)", picture)]


def test_the_columns_hold_each_event_once_and_lead_to_just_these(tmp_path: Path) -> None:
    found = seen(filled(tmp_path), LogPageQuery(query=Query(types=["toy.*"])))
    ranges = columns(found.picture)
    assert ranges[0][0] == 1
    assert all(low <= high for low, high in ranges)
    assert all(before[1] + 1 == after[0] for before, after in pairwise(ranges))
    with reading(tmp_path) as reader:
        low, high = ranges[-1]
        page = reader.page(f"/log?since=pos:{low}&until=pos:{high}")
        assert page.all("tr", id=f"e{high}")
        assert not page.all("tr", id=f"e{low - 1}")


def test_a_log_without_time_between_its_events_has_no_picture(tmp_path: Path) -> None:
    write_log(tmp_path, [note(1)])
    assert not seen(tmp_path, LogPageQuery(), start=2).picture


def test_values_are_counted_as_the_filters_have_them_and_one_more_click_narrows(tmp_path: Path) -> None:
    found = seen(filled(tmp_path), LogPageQuery(query=Query(types=["toy.*"], actors=["ann"])))
    types = {value.name: value for value in found.facets["type"]}
    assert (types["toy.noted"].count, types["toy.other"].count) == (20, 10)
    assert (types["toy.*"].on, types["toy.*"].count) == (True, 30)
    narrowed, wrong = read(QueryParams(types["toy.other"].address.partition("?")[2]))
    assert not wrong
    assert (list(narrowed.query.types), list(narrowed.query.actors)) == (["toy.other"], ["ann"])
    widened, _ = read(QueryParams(found.facets["actor"][0].address.partition("?")[2]))
    assert list(widened.query.actors) == []


def test_only_the_newest_are_counted_and_the_page_says_how_far_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explorer, "FACET_EVENTS", 10)
    found = seen(filled(tmp_path), LogPageQuery())
    assert found.counted == 10
    with reading(tmp_path) as reader:
        assert f"Counted: 10 that fit, of {found.first} to {found.last}." in reader.page("/log").text


def test_counts_that_cannot_be_made_are_told_beside_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> explorer.Overview:
        raise CorruptLog("00.jsonl", 7, 3, "not an event")

    filled(tmp_path)
    monkeypatch.setattr("pmagent.console.pages.views.log.overview", fails)
    with reading(tmp_path) as reader:
        page = reader.page("/log")
        assert page.all("tr", id="e60")
        assert "Not everything could be looked at" in page.text
        assert "not an event" in page.text


@each("name", some(list(CORPUS), 6))
def test_hostile_values_are_values(tmp_path: Path, name: str) -> None:
    folder, value = tmp_path / name, CORPUS[name][:60].encode("utf-8", "replace").decode() or "x"
    folder.mkdir()
    write_log(folder, [note(1), note(2, correlation=value, actor=value)])
    with reading(folder) as reader:
        reader.page("/log")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHost]:
    """A live workspace."""
    with live_host(fresh_example(tmp_path_factory.mktemp("saved") / "workspace")) as lived:
        yield lived


@pytest.fixture(scope="module")
def ada(host: LiveHost) -> Iterator[Console]:
    """An operator who may approve."""
    with console(host.workspace, "ada") as made:
        yield made


def kept(host: LiveHost) -> list[Any]:
    """The saved filters."""
    return saved.saved(ConsolePaths(Layout(host.workspace)).saved_filters)


def test_a_filter_is_saved_for_all_under_a_name_and_removed(host: LiveHost, ada: Console) -> None:
    answer = ada.post("/saved-filters", name="Decisions <b>", query="type=oa.*&before=7&n=20")
    assert answer.headers["location"] == "/log?type=oa.%2A&before=7&n=20"
    assert [(one.name, one.operator) for one in kept(host)] == [("Decisions <b>", "ada")]
    with console(host.workspace, "vera", "view") as vera:
        page = vera.page("/log")
        assert "Decisions &lt;b&gt;" in page
        assert vera.post("/saved-filters", name="x", query="type=oa.*").status_code == 403
    ada.post("/saved-filters", name="Decisions <b>", query="type=pla.*")
    assert [one.query for one in kept(host)] == ["type=pla.%2A"], "one of a name"
    ada.post("/saved-filters", name="Decisions <b>", remove="yes")
    assert not kept(host)


@each("fields", [
    {"name": "", "query": "type=oa.*"}, {"name": "x" * 61, "query": "type=oa.*"}, {"name": "x", "query": "tpye=oa.*"},
    {"name": "x", "query": "type=" + "y" * 2000},
])  # fmt: skip
def test_what_is_no_filter_is_not_saved(host: LiveHost, ada: Console, fields: dict[str, str]) -> None:
    assert ada.post("/saved-filters", **fields).status_code == 400
    assert not kept(host)


def test_there_is_an_end_to_saved_filters_and_a_file_that_is_none_holds_none(tmp_path: Path) -> None:
    file = tmp_path / "filters.json"
    for number in range(saved.SAVED_MAX):
        saved.save(file, saved.Saved(f"n{number}", "type=oa.*", "ada"))
    with pytest.raises(saved.NotSaved):
        saved.save(file, saved.Saved("one more", "", "ada"))
    saved.save(file, saved.Saved("n3", "type=pla.*", "ada"))
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("{", "utf-8")
    assert not saved.saved(file)
