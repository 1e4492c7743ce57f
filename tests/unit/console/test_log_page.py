"""The page Log: the same events as ``pmagent log tail``, with the same filters, page by page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from pmagent.console.pages.reading.log_address import LogPageQuery
from pmagent.console.pages.views import log as log_view
from pmagent.log import find
from pmagent.workspace.layout import Layout
from tests.support.cases import each
from tests.support.commands import pmagent
from tests.support.console_pages import Page, Reader, reading
from tests.support.logged import fill_log, flip, note, segments, write_log

EVENTS = 31


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose log holds log.created and 30 events of some kinds."""
    made = tmp_path_factory.mktemp("logged")
    drafts = [
        note(
            n, {"n": n, "deep": {"words": ["zero", f"w{n}"]}, "even": n % 2 == 0}, actor=("ann", "bob")[n % 2],
            type=("a.done", "a.failed", "b.done")[n % 3], correlation=f"run-{n // 10}",
        )
        for n in range(30)
    ]  # fmt: skip
    write_log(made, drafts)
    return made


@pytest.fixture(scope="module")
def browser(workspace: Path) -> Iterator[Reader]:
    """Somebody who looks at it."""
    with reading(workspace) as made:
        yield made


def positions(page: Page) -> list[int]:
    """The positions of the rows, from top to bottom."""
    return [int(row["id"].removeprefix("e")) for row in page.all("tr") if "id" in row]


def followed(page: Page, word: str) -> str:
    """Where a page's link with this ``rel`` leads; "" where there is none."""
    found = page.all("a", rel=word)
    return found[0]["href"] if found else ""


def test_the_newest_stand_first_and_the_whole_log_is_there(browser: Reader) -> None:
    page = browser.page("/log")
    assert positions(page) == list(range(31, 0, -1))
    assert page.one("a", aria_current="page")["href"] == "/log"


def test_the_newest_may_stand_last(browser: Reader) -> None:
    page = browser.page("/log?newest=last&n=3")
    assert positions(page) == [29, 30, 31]
    assert page.one("tbody")["data-newest"] == "bottom"


@each(
    "address",
    [
        "?n=5", "?type=a.*&n=4", "?type=a.done&type=b.*", "?type=a.*&exclude=*.failed", "?actor=ann",
        "?actor=ann&actor=bob&correlation=run-1", "?field=kind%3Dfact&field=data.even%3Dtrue", "?field=position%3D7",
        "?grep=w1%5Cd%5Cb", "?until=pos:11", "?since=pos:11&n=3", "?after=11&n=7", "?after=11&n=100",
        "?since=1h&until=now", "?until=2000-01-01", "?before=12&n=4", "?before=12&until=pos:20",
        "?since=pos:3&before=9", "?after=3&until=pos:9&n=2", "?type=x", "?after=31", "?after=900",
    ],
)  # fmt: skip
def test_the_command_that_is_copied_shows_the_same_events(workspace: Path, browser: Reader, address: str) -> None:
    page = browser.page(f"/log{address}")
    command = shlex.split(page.copied[0])
    assert command[0] == "pmagent"
    done = pmagent(workspace, *command[1:])
    assert done.code == 0, done.errors
    assert [int(line.split()[0]) for line in done.lines] == sorted(positions(page))


def test_pages_lead_to_every_event_and_back(browser: Reader) -> None:
    address, seen, pages = "/log?type=a.*&n=4", list[int](), 0
    while address and pages < 9:
        page = browser.page(address)
        seen += positions(page)
        address, pages = followed(page, "next"), pages + 1
    assert seen == [n + 2 for n in range(29, -1, -1) if n % 3 != 2]
    assert pages == 6, "five of four, and one where looking further back found nothing more"
    back = list[int]()
    address = followed(page, "prev")
    while address and len(back) < 99:
        page = browser.page(address)
        back = positions(page) + back
        address = followed(page, "prev")
    assert back == seen


def test_what_is_followed_begins_where_the_page_ends_and_has_its_filters(browser: Reader) -> None:
    page = browser.page("/log?type=a.*&grep=w1&n=2&since=1h")
    assert page.one("tbody")["data-tail"] == "/live/log?type=a.%2A&grep=w1"
    assert page.one("body")["data-position"] == str(EVENTS)
    for ended in ("?until=pos:9", "?before=9", "?after=2&n=3", "?until=now"):
        assert "data-tail" not in browser.page(f"/log{ended}").one("tbody")


def test_a_page_shows_nothing_that_came_after_its_position(workspace: Path) -> None:
    found = log_view.look(Layout(workspace).store, LogPageQuery(count=5), 20).found
    assert [event.position for event in found.events] == [16, 17, 18, 19, 20]


@each(
    "address, field, words",
    [
        ("?field=x%3D1", "field", "events have no field"), ("?field=no", "field", "is not FIELD=VALUE"),
        ("?grep=(", "grep", "grep"), ("?grep=" + "(" * 3000, "grep", "grep"), ("?grep=a{99999999999}", "grep", "grep"),
        ("?since=soon", "since", "is not a time"), ("?until=pos:0", "until", "names no position"),
        ("?until=pos:%C2%B2", "until", "names no position"), ("?since=pos:" + "9" * 5000, "since", "names no position"),
        ("?n=0", "n", "1 to 1000"), ("?n=1001", "n", "1 to 1000"), ("?n=few", "n", "1 to 1000"),
        ("?after=-1", "after", "a whole number"), ("?after=" + "9" * 5000, "after", "a whole number"),
        ("?before=0", "before", "a whole number"), ("?newest=up", "newest", "first or last"),
        ("?typ=a", "typ", "did you mean type?"), ("?grep=a&grep=b", "grep", "once"),
        ("?" + "&".join(f"type=t{n}" for n in range(33)), "type", "at most 32"),
        ("?%1b%5b31m=x", "", "there is no filter"), ("?grep=%5B%5Ba", "grep", "grep"),
    ],
)  # fmt: skip
def test_a_filter_that_is_not_understood_is_told_at_its_field(
    browser: Reader, address: str, field: str, words: str
) -> None:
    page = browser.page(f"/log{address}", 400)
    assert words in page.text
    assert not positions(page)
    assert not page.copied, "what is not understood is no command"
    marked = [found["name"] for found in page.all("input", aria_invalid="true")]
    if field in ("field", "grep", "since", "until", "n", "type"):
        assert set(marked) == {field}


def test_a_command_that_would_not_be_copied_as_it_is_is_not_offered(browser: Reader) -> None:
    assert browser.page("/log?grep=%C3%A9+%22x%22").copied == ["pmagent log tail -n 100 --grep '\u00e9 \"x\"'"]
    for text in ("a%09b", "a%0Ab", "%E2%80%AE", "%1b"):
        assert browser.page(f"/log?grep={text}").copied == []


def test_what_was_given_stands_in_the_form(browser: Reader) -> None:
    page = browser.page("/log?type=a.*&type=b%22%3E%3Cscript%3E&grep=x&n=7")
    assert [found["value"] for found in page.all("input", name="type")] == ["a.*", 'b"><script>', ""]
    assert page.one("input", name="n")["value"] == "7"


def test_an_event_is_found_by_its_position_and_by_its_id(browser: Reader) -> None:
    for named, position in (("7", 7), ("f5", 7), ("id:f5", 7), (" f5 ", 7)):
        assert browser.client.get("/log/find", params={"id": named}).headers["location"] == f"/log/{position}"
    assert browser.get("/log/find?id=").headers["location"] == "/log"
    assert browser.get("/log/find?id=99").status_code == 404
    assert "the log has no event" in browser.page("/log/find?id=nobody%1b", 404).text


def test_without_a_log_the_page_says_what_begins_one(tmp_path: Path) -> None:
    with reading(tmp_path) as browser:
        assert "There is no log yet." in browser.page("/log").text


def test_a_corrupt_log_is_shown_as_far_as_it_is_intact(tmp_path: Path) -> None:
    fill_log(tmp_path, [note(n) for n in range(1200)])
    (segment,) = segments(tmp_path)
    lines = segment.read_bytes().split(b"\n")
    flip(segment, sum(len(line) + 1 for line in lines[:99]) + 60)
    with reading(tmp_path) as browser:
        assert len(positions(browser.page("/log"))) == 100, "the newest are intact"
        page = browser.page("/log?type=none")
        assert "position 100" in page.text
        assert page.links("/integrity")
        page = browser.page("/log?after=90&n=50")
        assert positions(page) == list(range(99, 90, -1))
        assert "position 100" in page.text


def test_a_log_whose_end_is_not_known_is_told_of(tmp_path: Path) -> None:
    write_log(tmp_path, [note(0)])
    head = Layout(tmp_path).log / "HEAD"
    head.write_bytes(b"x" * 1024)
    with reading(tmp_path) as browser:
        assert "both slots are damaged" in browser.page("/log").text
        head.unlink()
        for address, status in (("/log", 200), ("/log/1", 500), ("/sessions", 500), ("/log/find?id=f0", 500)):
            page = browser.page(address, status)
            assert "HEAD, byte 0: it is missing" in page.text, address
            assert "no log yet" not in page.text


def test_where_there_was_no_time_the_page_goes_on_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rare = [note(n, {"text": "x" * 500}, type="rare.one" if n == 3 else "toy.noted") for n in range(1500)]
    fill_log(tmp_path, rare)
    monkeypatch.setattr(log_view, "LOOK_SECONDS", 0.0)
    with reading(tmp_path) as browser:
        address, looks = "/log?type=rare.*", 0
        while not positions(page := browser.page(address)):
            assert "There was no time" in page.text
            address, looks = page.links("/log?type=rare.%2A&before=")[0], looks + 1
            assert looks < 9, address
        assert positions(page) == [5]
        assert looks == 2
        page = browser.page("/log?type=rare.*&after=700")
        assert "There was no time" in page.text
        assert page.links("/log?type=rare.%2A&after=")


def test_an_expression_that_takes_for_ever_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_log(tmp_path, [note(0, {"text": "a" * 60})])
    monkeypatch.setattr("pmagent.console.pages.reading.searching.TEXTS_SECONDS", 0.2)
    with reading(tmp_path) as browser:
        page = browser.page("/log?grep=(a%2B)%2B%24x")
        assert "takes too long" in page.text
        assert "data-tail" not in page.one("tbody")


def test_an_id_is_looked_for_by_one_request_after_the_other_until_it_is_found(
    browser: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_view, "LOOK_SECONDS", 0.0)  # one piece a request
    monkeypatch.setattr(find, "_CHUNK_BYTES", 1500)
    address, seen = "/log/find?id=f29", []
    while address.startswith("/log/find"):
        seen.append(address)
        answer = browser.get(address)
        assert answer.status_code == 303
        address = answer.headers["location"]
    assert address == "/log/31"
    assert 3 < len(seen) < log_view.STEPS_MAX
    monkeypatch.setattr(log_view, "STEPS_MAX", 2)
    assert browser.get(seen[1]).status_code == 303
    assert "before position" in browser.page(seen[2], 404).text
    for wrong in ("from=0", "from=x", "step=-1"):
        assert browser.get(f"/log/find?id=f29&{wrong}").status_code == 400
