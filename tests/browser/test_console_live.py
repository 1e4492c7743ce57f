"""The console while things happen: pages follow by themselves, come back after the daemon did, and stay quick."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import CDPSession, Page, Response, expect

from benchmarks.console_load import Child
from tests.browser.conftest import Enter
from tests.conftest import fresh_example
from tests.support.effort import by_night, rounds, some
from tests.support.screens import NARROW, SIZE, Screens, Visit, require_chromium
from tests.support.started import in_workspace, started
from tests.support.stations import APPROVING, ASKING, LOOKING, Station, employ, entrance

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("screens")]

LIVE = re.compile(r"live · \d+")
STALE = re.compile(r"stale since \d\d:\d\d")
UNDELIVERED = "Stop could not be delivered. Hit the switch on the device."

LIVE_LOG = "/live/log?"

RATE = 1_000
SECONDS = rounds(5, 2)

LONGEST = 0.5
"""Seconds of a processor; who presses a key waits for no task of the page's that takes longer."""

SHOW = """
(times) => {
  const rows = document.querySelector("tbody#events");
  const table = rows.closest("table").cloneNode(false);
  document.body.append(table);
  for (let n = 0; n < times; n += 1) {
    const parsed = new DOMParser().parseFromString(`<table>${rows.outerHTML}</table>`, "text/html");
    table.replaceChildren(document.adoptNode(parsed.querySelector("tbody")));
    table.getBoundingClientRect();
  }
  table.remove();
}
"""
"""Shows the rows that are there so often anew, and does nothing else: what that costs, it costs on this machine."""


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    """One without a device: it is quicker, and nothing here is typed."""
    require_chromium()
    made = Station(tmp_path_factory.mktemp("live"), device=False)
    yield made
    made.close()


def positions(page: Page) -> list[int]:
    """Of the rows of the log that the page shows, from above."""
    rows = page.locator("tbody#events tr")
    found: list[int] = rows.evaluate_all("rows => rows.map((row) => Number(row.id.slice(1)))")
    return found


def is_fresh(page: Page, end: int) -> None:
    """Return when the page shows the log up to ``end``."""
    expect(page.locator("#connection")).to_have_text(f"live · {end}")
    expect(page.locator(f"tbody#events #e{end}")).to_have_count(1)


def mark(page: Page) -> None:
    """Set a mark that is gone when the page is loaded anew."""
    page.evaluate("window.mine = true")


def is_the_same(page: Page) -> bool:
    """Whether it was not loaded anew since ``mark``."""
    found: bool = page.evaluate("window.mine === true")
    return found


def test_now_follows_by_itself(enter: Enter, station: Station) -> None:
    station.mode("OBSERVE")
    page = enter(APPROVING).page
    expect(page.locator("#connection")).to_have_text(LIVE)
    mark(page)
    station.mode("SUGGEST")
    expect(page.get_by_role("main")).to_contain_text("SUGGEST")
    station.pmagent("pause", "--operator", APPROVING, "--reason", "somebody is at the bench")
    expect(page.locator("#standing")).to_contain_text("paused")
    expect(page.get_by_role("main")).to_contain_text("somebody is at the bench")
    station.pmagent("resume", "--operator", APPROVING)
    expect(page.locator("#standing")).to_contain_text("running")
    assert is_the_same(page)


def test_stop_is_one_press_wherever_one_is_and_going_on_is_another(enter: Enter, station: Station) -> None:
    visit = enter(APPROVING)
    visit.go("/help")
    visit.page.locator("#standing").get_by_role("button", name="Stop").click()
    expect(visit.page.locator("#standing")).to_contain_text("paused")
    assert station.document("status")["paused"]["operator_id"] == APPROVING
    visit.go("/")
    visit.page.get_by_role("button", name="Resume").click()
    expect(visit.page.locator("#standing")).to_contain_text("running")
    assert station.document("status")["paused"] is None


def test_a_daemon_that_hangs_is_told_on_every_page_and_a_stop_too(enter: Enter, station: Station) -> None:
    visit = enter(APPROVING)
    page, others = visit.page, [visit.window() for _ in range(5)]  # more than are live at once
    for address, window in zip(("/", "/log", "/help", "/runs", "/approvals"), others, strict=True):
        window.goto(address)
    visit.go("/help")
    fresh = enter(LOOKING, java_script_enabled=False).page
    expect(page.locator("#standing")).to_contain_text("running")
    told = page.get_by_role("alert").filter(has_text="The daemon has not answered since")
    expect(told).to_have_count(0)
    with station.hung():
        for window in (page, *others):
            expect(window.get_by_role("alert").filter(has_text="hit the switch on the device")).to_be_visible()
            expect(window.locator("body[data-lost]")).to_have_count(1)
        assert colour(page, "#standing .state") == "rgb(93, 100, 111)", "nothing is shown as well"
        expect(page.locator("#connection")).to_have_text(re.compile(r"as of \d+"))
        stop = page.locator("#standing").get_by_role("button", name="Stop")
        with page.expect_response("**/control/pause"):
            stop.click()
            expect(page.get_by_role("alert").first).to_contain_text(UNDELIVERED)
        expect(stop).not_to_have_attribute("aria-busy", "true")
        expect(page.get_by_role("alert").first).to_contain_text(UNDELIVERED)
        assert page.get_by_role("heading", name="Help", level=1).is_visible(), "the page stays"
        fresh.reload()
        expect(fresh.get_by_role("alert")).to_contain_text("The daemon does not answer")
        expect(fresh.locator("#standing").get_by_role("button", name="Stop")).to_be_visible()
    for window in others:
        expect(window.locator("body[data-lost]")).to_have_count(0)
    station.until("control.paused")
    station.pmagent("resume", "--operator", APPROVING)


def test_a_console_that_hangs_is_noticed_and_the_page_goes_on_when_it_does(enter: Enter, station: Station) -> None:
    visit = enter(APPROVING)
    page = visit.page
    expect(page.locator("#connection")).to_have_text(LIVE)
    mark(page)
    with station.hung(console=True):
        expect(page.get_by_role("alert")).to_contain_text(re.compile(r"pmagent has not answered since \d\d:\d\d:\d\d"))
        page.locator("#standing").get_by_role("button", name="Stop").click()
        expect(page.get_by_role("alert")).to_contain_text(UNDELIVERED)
    expect(page.locator("#standing")).to_contain_text("paused")
    assert is_the_same(page)
    station.until("control.paused")
    station.pmagent("resume", "--operator", APPROVING)


def colour(page: Page, selector: str) -> str:
    """The colour in which the text of an element is drawn."""
    drawn: str = page.locator(selector).first.evaluate("one => getComputedStyle(one).color")
    return drawn


def test_what_is_asked_for_appears_is_told_and_counted(enter: Enter, station: Station) -> None:
    station.mode("OBSERVE", "SUGGEST")
    visit = enter(APPROVING)
    visit.go("/approvals")
    page = visit.page
    expect(page.locator("#connection")).to_have_text(LIVE)
    mark(page)
    proposal = station.proposed("type: echo news")
    expect(page.locator("#open").get_by_role("link")).to_have_attribute("href", f"/approvals/{proposal['proposal_id']}")
    expect(page).to_have_title(re.compile(r"^\(1\) Approvals"))
    expect(page.locator("#announce")).to_have_text("An approval is asked for.")
    station.pmagent("pla", "reject", "--operator", APPROVING, "--reason", "seen")
    expect(page.locator("#open")).to_contain_text("Nothing waits for a decision.")
    expect(page).to_have_title(re.compile("^Approvals"))
    assert is_the_same(page)


def test_what_somebody_writes_stays_while_things_happen(enter: Enter, station: Station) -> None:
    station.mode("OBSERVE", "SUGGEST")
    proposal = station.proposed("type: echo draft")
    page = enter(APPROVING).page
    page.goto(f"/approvals/{proposal['proposal_id']}?decide=reject")
    expect(page.locator("#connection")).to_have_text(LIVE)
    field = page.get_by_role("textbox", name="Why not?")
    field.fill("half a sen")
    station.pmagent("oa", "snapshot")
    station.mode("SUGGEST")
    expect(page.locator("#connection")).to_have_text(f"live · {station.position()}")
    expect(field).to_have_value("half a sen")
    expect(field).to_be_focused()
    page.get_by_role("button", name="Reject it").click()
    expect(page.locator("#stands")).to_contain_text("rejected")


def test_the_log_goes_on_where_it_was_when_the_daemon_comes_back(enter: Enter, station: Station) -> None:
    visit = enter(APPROVING)
    page = visit.page
    answers: list[Response] = []

    def heard(answer: Response) -> None:  # a method of a list is none that a browser calls
        answers.append(answer)

    page.on("response", heard)
    visit.go("/log?n=200")
    is_fresh(page, station.position())
    mark(page)
    for _ in range(2):
        station.pmagent("oa", "snapshot")
        is_fresh(page, station.position())
        station.kill()
        expect(page.locator("#connection")).to_have_text(STALE)
        station.start()
        station.pmagent("oa", "snapshot")
        is_fresh(page, station.position())
    found = positions(page)
    assert found == list(range(found[0], found[0] - len(found), -1)), "nothing is missed, nothing doubled"
    assert found[0] == station.position()
    assert is_the_same(page)
    codings = [answer.headers.get("content-encoding") for answer in answers if LIVE_LOG in answer.url]
    assert codings
    assert set(codings) == {"deflate"}, "it is packed for this browser"


@pytest.mark.parametrize("size", some([SIZE, NARROW], 1), ids=str)
def test_times_are_the_reader_s_rows_open_words_explain_themselves_and_little_lies_above_the_page(
    enter: Enter, station: Station, size: tuple[int, int]
) -> None:
    station.mode("OBSERVE", "SUGGEST")
    station.proposed("type: ls", "--why", "the first\nline and the second")
    visit, plain = enter(LOOKING, timezone_id="Asia/Tokyo", size=size), enter(LOOKING, java_script_enabled=False)
    page = visit.page
    written = page.locator("#log time").first
    expect(written).to_contain_text(" ago")
    there = datetime.fromisoformat(str(written.get_attribute("datetime"))).astimezone(ZoneInfo("Asia/Tokyo"))
    expect(written).to_contain_text(f"{there:%H:%M:}")
    expect(written).to_have_attribute("title", re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ UTC$"))
    expect(plain.page.locator("#log time").first).to_have_text(re.compile(r"^\d+ [A-Z][a-z]{2} \d\d:\d\d:\d\d UTC$"))
    word = page.locator("#pla-title dfn")
    word.focus()
    expect(word.get_by_role("tooltip")).to_have_text(
        "the lab assistant that types on another machine through a USB device"
    )
    main = page.get_by_role("main").bounding_box()
    assert main
    assert main["y"] < 110, "no more than a bar and a line of sections"
    visit.go("/log?type=pla.proposed&text=second")
    row = page.get_by_role("row").filter(has_text="pla.proposed").first
    link = row.get_by_role("link").first.bounding_box()
    assert link
    assert link["height"] >= 24
    with page.context.expect_page() as beside:
        row.click(modifiers=["Control"])
    expect(beside.value.get_by_role("heading", name="The line as it is stored")).to_be_visible()
    beside.value.close()
    row.click()
    expect(page.get_by_role("heading", name="The line as it is stored")).to_be_visible()
    plain.go("/log?type=pla.proposed")
    plain.page.get_by_role("row").filter(has_text="pla.proposed").first.click()
    expect(plain.page.get_by_role("heading", name="The line as it is stored")).to_be_visible()
    expect(page.get_by_role("main")).not_to_contain_text("␊")
    assert visit.go("/runs/none") == 404
    expect(page.get_by_role("main").get_by_role("link", name="Runs")).to_be_visible()
    station.pmagent("pla", "reject", "--operator", APPROVING, "--reason", "seen")


def test_keys_move_and_decide_nothing(enter: Enter, station: Station) -> None:
    visit = enter(ASKING)
    visit.stop_clock()  # g and the key behind it belong together for a second and a half
    visit.go("/log")
    page = visit.page
    end = station.position()
    for keys in ("j", "j", "k"):
        page.keyboard.press(keys)
    focused = page.evaluate("document.activeElement.closest('tr').id")
    assert focused == f"e{positions(page)[0]}"
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("i")  # in a dialog keys do nothing
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    page.keyboard.press("/")
    page.keyboard.type("gijk?")
    assert page.evaluate("document.activeElement.value") == "gijk?"
    assert page.url.endswith("/log")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body"), "out of the field"
    for key, address in (("i", "/integrity"), ("h", "/help"), ("s", "/sessions"), ("u", "/audits"), ("n", "/")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"{visit.home}{address}")
    for key in "abcdefhilmoprtuvwxyz0123456789 ":
        page.keyboard.press(key)
    types = {line["type"] for line in station.lines(after=end)}
    assert types <= {"console.signed_in"}, types
    caused = next(line["position"] for line in reversed(station.lines(after=0)) if line.get("causation"))
    visit.go(f"/log/{caused}")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.closest('.causes li') !== null"), "through causes, too"


def test_a_page_that_is_held_stays_as_it_is_until_one_goes_on(enter: Enter, station: Station) -> None:
    visit = enter(APPROVING)
    visit.go("/log?n=50")
    page = visit.page
    is_fresh(page, station.position())
    held = page.get_by_role("button", name="Hold")
    held.click()
    expect(held).to_have_attribute("aria-pressed", "true")
    before = positions(page)
    station.pmagent("oa", "snapshot")
    expect(page.locator("#connection")).to_have_text(f"held · {station.position()}")
    assert positions(page) == before
    held.click()
    is_fresh(page, station.position())


def test_what_is_read_in_the_log_stays_where_it_is_while_events_come(enter: Enter, station: Station) -> None:
    while station.position() < 120:
        station.pmagent("oa", "snapshot")
    visit = enter(APPROVING)
    visit.go("/log?n=100")
    page = visit.page
    is_fresh(page, station.position())
    page.evaluate("scrollTo(0, 700)")
    read = page.evaluate(
        "window.read = Array.from(document.querySelectorAll('#events tr')).find("
        "(row) => row.getBoundingClientRect().top > 300), window.read.getBoundingClientRect().top"
    )
    before = page.locator("#events tr").count()
    for _ in range(5):
        station.pmagent("oa", "snapshot")
    is_fresh(page, station.position())
    rows = page.locator("#events tr").count()
    assert rows >= before + 10
    assert abs(page.evaluate("window.read.getBoundingClientRect().top") - read) < 60
    assert page.locator("#shown").inner_text() == f"{rows} events"
    assert page.locator("#looked").inner_text().endswith(f"to {station.position()} of {station.position()}")


def test_a_job_that_ends_while_it_is_looked_at_offers_no_cancelling_any_more(enter: Enter, station: Station) -> None:
    tasks = [{"task_id": "nap", "intent": "Wait", "tools": ["sleep"], "inputs": {"args": ["600"]}}]
    plan = in_workspace(station.workspace, json.dumps(tasks)) / "plan.yaml"
    end = station.position()
    with started(station.workspace, "run", "Wait", "--plan", str(plan)):
        station.until("task.attempt_requested", after=end)
        run_id = station.document("runs")["runs"][0]["run_id"]
        visit = enter(APPROVING)
        visit.go(f"/runs/{run_id}")
        expect(visit.page.locator("#cancel")).to_be_visible()
        station.pmagent("cancel", run_id)
        expect(visit.page.locator("#run-state")).to_contain_text("cancelled")
        expect(visit.page.locator("#cancel")).to_be_hidden()


@pytest.fixture
def flooded(screens: Screens, tmp_path: Path) -> Iterator[tuple[Child, Visit]]:
    """A daemon that appends as it is told, and somebody on the page of its log."""
    workspace = fresh_example(tmp_path / "workspace")
    employ(workspace)
    daemon = Child("console_daemon", str(workspace))
    try:
        daemon.answer()
        address = screens.do(lambda: entrance(workspace, APPROVING))
        visit = screens.do(lambda: Visit(screens.browser, address.partition("/enter")[0]))
        screens.do(lambda: visit.page.goto(address))
        yield daemon, visit
        screens.do(visit.close)
    finally:
        daemon.close()
        assert daemon.process.stdout is not None, "made with a pipe"
        daemon.process.stdout.close()


@by_night
def test_a_thousand_events_a_second_do_not_freeze_the_page(screens: Screens, flooded: tuple[Child, Visit]) -> None:
    daemon, visit = flooded
    page = visit.page
    visit.go("/log?newest=last")
    expect(page.locator("#connection")).to_have_text(LIVE)
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = busy(tools)
    screens.browser.start_tracing(page=page, categories=["toplevel", "disabled-by-default-devtools.timeline"])
    told: dict[str, Any] = daemon.ask(offer=RATE * SECONDS, rate=RATE)
    is_fresh(page, told["position"])
    took = busy(tools) - before
    tasks = main_thread_tasks(screens.browser.stop_tracing())
    rows = positions(page)
    assert rows == list(range(rows[0], told["position"] + 1)), "nothing is missed, nothing doubled"
    assert len(rows) <= 2_000, "so many are kept as somebody may look at"
    before = busy(tools)
    page.evaluate(SHOW, RATE * SECONDS // len(rows))
    bare = busy(tools) - before
    free = "its thread is free for the person who looks for more than half of the time"
    assert took < max(0.5 * SECONDS, 20 * bare), f"{free}, if the machine is not slow"
    assert len(tasks) > 4 * SECONDS
    assert max(tasks) < LONGEST
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()


def busy(tools: CDPSession) -> float:
    """Seconds of a processor that the page's main thread has taken, whatever else the machine does."""
    metrics = tools.send("Performance.getMetrics")["metrics"]
    return next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


def main_thread_tasks(trace: bytes) -> list[float]:
    """Seconds of a processor that each task of a page's main thread took, whatever else the machine did meanwhile."""
    events = json.loads(trace)["traceEvents"]
    named = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["name"] == "thread_name"}
    return [
        one.get("tdur", 0) / 1e6 for one in events
        if one["name"] == "RunTask" and named.get((one["pid"], one["tid"])) == "CrRendererMain"
    ]  # fmt: skip
