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
    for address in some([*pages[:PLAIN], "/approvals?stands=closed", "/?why=yes"], 4):
        visit.go(address)
        page.evaluate(AXE)
        found = violations(page, RULES)
        page.emulate_media(color_scheme=other)
        if found := found + violations(page, COLOURS):
            broken[address] = found
        page.emulate_media(color_scheme=theme)
    assert not broken


def test_each_page_fits_its_window_obeys_nothing_hostile_and_prints_on_white(enter: Enter, pages: list[str]) -> None:
    """A visit that asked for anything elsewhere, or had a dialog or an error, fails at its end."""
    visit = enter(APPROVING, color_scheme="dark")
    page = visit.page
    for address in pages:
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
