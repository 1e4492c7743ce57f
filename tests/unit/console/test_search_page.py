"""One search over everything: by id, by the beginning of one, by position, by text; also without a daemon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pmagent.console.pages.views import search
from pmagent.edges import SECTIONS
from tests.support.cases import each
from tests.support.console_pages import Reader, reading
from tests.support.furnished import MARKUP
from tests.support.logged import note, write_log
from tests.support.orchestra import RUN
from tests.support.pages import RunHarness, written


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A workspace with one run, which nobody writes."""
    harness = RunHarness()
    harness.request({"a": [], "b": ["a"]})
    harness.run()
    with reading(written(tmp_path_factory.mktemp("search"), harness.history, [])) as opened:
        yield opened


@each("asked", [RUN, RUN[:6], "DO IT"])
def test_a_run_is_found_by_its_id_by_its_beginning_and_by_its_intent(reader: Reader, asked: str) -> None:
    assert f"/runs/{RUN}" in reader.page(f"/search?q={asked}").links()


def test_a_position_leads_to_its_event_and_a_word_to_its_section(reader: Reader) -> None:
    assert "/log/3" in reader.page("/search?q=3").links()
    assert "/log/999999" not in reader.page("/search?q=999999").links("/log/")
    for section in SECTIONS:
        found = reader.page(f"/search?q={section.text}").source.partition('id="found"')[2]
        assert f'href="{section.address}"' in found


def test_events_are_found_by_any_text_and_the_log_goes_on_from_there(reader: Reader) -> None:
    page = reader.page("/search?q=tasks.planned")
    assert any(link.removeprefix("/log/").isdigit() for link in page.links("/log/"))
    assert "/log?text=tasks.planned" in page.links("/log")


def test_what_nothing_holds_is_said_and_nothing_asked_looks_for_nothing(reader: Reader) -> None:
    assert "Nothing holds qqqq-nowhere." in reader.page("/search?q=qqqq-nowhere").text
    assert "were looked through" not in reader.page("/search").text
    reader.page(f"/search?q={'x' * (search.TEXT_CHARS_MAX + 1)}", 400)


def test_hostile_text_is_shown_and_leads_nowhere(tmp_path: Path) -> None:
    write_log(tmp_path, [
        note(number, {"session_id": f"pla-x {text}"}, type="pla.session_began")
        for number, text in enumerate(MARKUP.values())
    ])  # fmt: skip
    with reading(tmp_path) as reader:
        page = reader.page("/search?q=pla-x")
        assert len(page.links("/sessions/pla-x")) == len(MARKUP)
    with reading(tmp_path / "empty") as reader:
        reader.page("/search?q=anything")
