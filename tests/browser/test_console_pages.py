"""Every page of the console in a real browser: for everybody, on paper, without scripts, and full of hostile text."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from pmagent.events.unseen import UNSEEN
from tests.browser.conftest import Enter
from tests.support.effort import some
from tests.support.furnished import Furnished
from tests.support.sandboxes import OBSTACLE
from tests.support.screens import NARROW, SIZE
from tests.support.stations import APPROVING, LOOKING, Station

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("screens")]

AXE = (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RULES = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": TAGS}}
COLOURS = {"resultTypes": ["violations"], "runOnly": {"type": "rule", "values": ["color-contrast"]}}
HIDING = re.compile(f"[{UNSEEN}]")
"""Characters that hide or reorder text; no page has any of them, nor in a title or a field."""
OBEYING = """() => Array.from(document.querySelectorAll('*')).filter((one) =>
    one.matches('[style], [srcdoc], iframe, object, embed')
    || Array.from(one.attributes).some((attribute) => attribute.name.startsWith('on'))
    || one.matches('[href], [src], [action]')
    && !new URL(one.href?.baseVal ?? one.href ?? one.src ?? one.action, location).href
        .startsWith(location.origin + '/')
).map((one) => one.outerHTML.slice(0, 200))"""
"""Elements that lead elsewhere, or carry a style, a document or a script of their own."""
PRINTED = """() => [getComputedStyle(document.documentElement).backgroundColor,
    getComputedStyle(document.querySelector('h1')).color.match(/\\d+/g).every((part) => Number(part) < 100)]"""
"""The background of a page on paper, and whether its heading is dark."""


WATCHED = """() => {
  window.stops = [];
  document.addEventListener("keydown", ({ key, target }) => {
    if (key !== "Tab" || target === document.body) return;
    const box = target.getBoundingClientRect(), style = getComputedStyle(target);
    const xs = [0.1, 0.5, 0.9].map((part) => box.left + box.width * part);
    const ys = [0.1, 0.5, 0.9].map((part) => box.top + box.height * part);
    const seen = xs.some((x) => ys.some((y) => {
      const there = document.elementFromPoint(x, y);
      return there && (target.contains(there) || there.contains(target));
    }));
    const inside = target.closest("svg") ? Array.from(target.querySelectorAll("rect, text")) : [];
    const drawn = inside.map((one) => getComputedStyle(one));
    const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2
      || drawn.some((one) => parseFloat(one.strokeWidth) >= 3 || one.textDecorationLine === "underline");
    const block = target.closest("td, th, li, dd, p, form, nav, header, section, main");
    const place = { left: box.left, top: box.top + scrollY, bottom: box.bottom + scrollY };
    window.stops.push({ target, seen, ring, block, box: place });
  }, true);
}"""
"""Keeps for each stop of the Tab key whether it was in sight, with a ring, and where it stood."""
STOPS = """() => {
  const wrong = [], told = (one) => one.target.outerHTML.slice(0, 120), all = window.stops;
  for (const one of all) {
    if (!one.seen) wrong.push(["out of sight", told(one)]);
    if (!one.ring) wrong.push(["no ring", told(one)]);
    if (one.target.tabIndex > 0) wrong.push(["an order of its own", told(one)]);
  }
  for (let at = 1; at < all.length; at += 1) {
    const [before, one] = [all[at - 1], all[at]];
    const after = before.target.compareDocumentPosition(one.target);
    if (!(after & Node.DOCUMENT_POSITION_FOLLOWING)) wrong.push(["before what it follows", told(one)]);
    const many = one.target.getClientRects().length > 1 || one.target.closest("svg");
    if (one.block !== before.block || many) continue; // links of several lines and nodes of graphs
    const above = one.box.bottom <= before.box.top + 1, level = Math.abs(one.box.top - before.box.top) < 4;
    if (above || level && one.box.left < before.box.left) wrong.push(["against the reading", told(one)]);
  }
  return [all.length, new Set(all.map((one) => one.target)).size, wrong.slice(0, 5)];
}"""
"""How many stops there were, how many of them different, and what is wrong with some: out of sight, without a ring, or
in another order than one reads."""
STOPS_MAX = 400

FORMS = (
    "/approvals?stands=closed", "/?why=yes", "/alerts", "/agents", "/policy", "/passkeys", "/?change=handover",
    "/?change=end", "/?change=mode", "/policy/edit?layer=project", "/approvals/propose",
)  # fmt: skip
"""Pages beside those that are furnished."""

PLAIN = 24
"""So many of the pages came about before anything hostile did."""

Theme = Literal["light", "dark"]


@pytest.fixture(scope="module")
def pages(station: Station) -> list[str]:
    """The addresses of all pages, with something on each of them, some of it hostile."""
    if OBSTACLE:
        pytest.skip(OBSTACLE)
    furnished = Furnished(station)
    furnished.everything()
    plain = furnished.pages()
    assert len(plain) == PLAIN
    furnished.hostile()
    return [*plain, *(address for address in furnished.pages() if address not in plain)]


def violations(page: Page, rules: dict[str, Any]) -> list[Any]:
    """The findings of axe: rule, and some of the elements that break it."""
    found: list[Any] = page.evaluate(
        "async (rules) => (await axe.run(document, rules)).violations"
        ".map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160))])",
        rules,
    )
    return found


@pytest.mark.parametrize(
    ("theme", "other", "size"), [("light", "dark", SIZE), ("dark", "light", NARROW)], ids=["wide", "narrow"]
)
def test_every_page_is_for_everybody(
    enter: Enter, pages: list[str], theme: Theme, other: Theme, size: tuple[int, int]
) -> None:
    visit = enter(APPROVING, color_scheme=theme, size=size)
    page = visit.page
    broken = {}
    for address in some([*pages[:PLAIN], *FORMS], 6):
        visit.go(address)
        page.evaluate(AXE)
        found = violations(page, RULES)
        page.emulate_media(color_scheme=other)
        if found := found + violations(page, COLOURS):
            broken[address] = found
        page.emulate_media(color_scheme=theme)
    assert broken == {}


def test_each_page_fits_its_window_obeys_nothing_hostile_and_prints_on_white(enter: Enter, pages: list[str]) -> None:
    """A visit that asked for anything elsewhere, or had a dialog or an error, fails at its end."""
    visit = enter(APPROVING, color_scheme="dark")
    page = visit.page
    for address in some(pages, 12):
        visit.go(address)
        page.wait_for_load_state("load")  # a sheet for paper is loaded last
        assert not HIDING.findall(page.content().replace("\n", "")), address
        assert not page.title().startswith("owned")
        assert not page.evaluate(OBEYING), address
        for width, height in (NARROW, SIZE):
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (address, width)
        page.emulate_media(media="print", color_scheme="dark")
        assert page.locator("button:visible, nav:visible, .filters:visible").count() == 0, address
        assert page.evaluate(PRINTED) == ["rgb(255, 255, 255)", True], address
        page.emulate_media(media="screen", color_scheme="dark")


@pytest.mark.parametrize("size", [SIZE, NARROW], ids=["wide", "narrow"])
def test_the_tab_key_goes_as_one_reads_is_always_in_sight_and_is_caught_nowhere(
    enter: Enter, pages: list[str], size: tuple[int, int]
) -> None:
    page = (visit := enter(APPROVING, size=size)).page
    broken = {}
    for address in some([*pages[:PLAIN], *FORMS], 6):
        visit.go(address)
        page.wait_for_load_state("load")
        page.evaluate(WATCHED)
        page.keyboard.press("Tab")
        first = page.evaluate("document.querySelector('[autofocus]') ? 'skip' : document.activeElement.className")
        for _ in range(STOPS_MAX):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.matches('body, .skip')"):
                break
        count, different, wrong = page.evaluate(STOPS)
        if wrong or count != different or not 5 < count < STOPS_MAX or first != "skip":
            broken[address] = (count, different, first, wrong)
    assert broken == {}


def test_the_skip_link_leads_to_the_content_and_dialogs_give_the_focus_back(enter: Enter) -> None:
    visit = enter(LOOKING)
    page = visit.page
    visit.go("/runs")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")
    was = page.evaluate_handle("document.activeElement")
    for keys, name in (("?", "Keys"), ("Control+k", "Search everything")):
        page.evaluate("document.activeElement.blur()")
        was.as_element().focus()  # type: ignore[union-attr]
        page.keyboard.press(keys)
        dialog = page.get_by_role("dialog", name=name)
        expect(dialog).to_be_visible()
        for _ in range(4):
            page.keyboard.press("Tab")
            assert page.evaluate("!document.activeElement.closest('main')"), "the page behind is out of reach"
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        assert page.evaluate("(was) => document.activeElement === was", was), name


def test_hostile_text_is_shown_as_it_was_written(enter: Enter, station: Station, pages: list[str]) -> None:
    visit = enter(APPROVING)
    run = station.document("runs")["runs"][0]["run_id"]
    visit.go(f"/runs/{run}")
    expect(visit.page.locator("main")).to_contain_text("<script>document.title='owned';")
    expect(visit.page.locator("main")).to_contain_text("{{ 7*7 }}")
    assert pages


@pytest.mark.parametrize("operator", some([APPROVING, LOOKING], 1))
def test_every_page_is_whole_without_scripts(enter: Enter, pages: list[str], operator: str) -> None:
    visit = enter(operator, java_script_enabled=False)
    for address in some(pages, 6):
        status = visit.go(address)
        page = visit.page
        assert status == (404 if address == "/no-such-page" else 200), address
        expect(page.get_by_role("main")).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        expect(page.get_by_role("navigation", name="Sections")).to_be_visible()
        stop = page.locator("#standing").get_by_role("button", name="Stop")
        expect(stop).to_have_count(1)


def test_a_theme_is_chosen_without_scripts_and_kept(enter: Enter) -> None:
    visit = enter(LOOKING, java_script_enabled=False, color_scheme="light")
    page = visit.page
    visit.go("/help?from=here")
    page.locator(".menu > summary").click()
    page.get_by_role("button", name="Dark").click()
    assert page.url.endswith("/help?from=here")
    for address in ("/help", "/log"):
        visit.go(address)
        expect(page.locator("body")).to_have_css("color-scheme", "dark")
    page.locator(".menu > summary").click()
    page.get_by_role("button", name="System").click()
    expect(page.locator("body")).to_have_css("color-scheme", "light dark")
