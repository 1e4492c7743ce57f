"""Pictures of every page of the console, in both themes, wide and narrow, to look at.

    .venv/bin/python -m tests.support.tour FOLDER [hostile|docs]

``hostile``: of a workspace full of hostile text. ``docs``: the two pictures of docs/images, instead of all.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from tests.support import warm
from tests.support.commands import PMAGENT, SECONDS, clean_environment
from tests.support.furnished import Furnished
from tests.support.screens import CHROMIUM, NARROW, SIZE, Screens, Visit
from tests.support.started import in_workspace
from tests.support.stations import APPROVING, Station

THEMES = ("light", "dark")
SIZES = (SIZE, NARROW)


def enter(screens: Screens, station: Station, theme: str, size: tuple[int, int]) -> Visit:
    """Sign in, in a browser whose system has this theme."""
    address = station.entrance(APPROVING)
    visit = Visit(screens.browser, address.partition("/enter")[0], size=size, color_scheme=theme)
    visit.page.goto(address)
    return visit


def tour(screens: Screens, station: Station, pages: list[str], folder: Path) -> None:
    """Take every picture; says which page is wider than its window."""
    for theme, size in product(THEMES, SIZES):
        visit = enter(screens, station, theme, size)
        for address in pages:
            status = visit.go(address)
            name = address.strip("/").replace("/", "_").replace("?", "_") or "now"
            visit.page.screenshot(path=folder / f"{name[:60]}-{theme}-{size[0]}.png", full_page=True)
            width = visit.page.evaluate("document.documentElement.scrollWidth")
            sys.stdout.write(f"{status} {theme:5} {width:5} {address}{'  TOO WIDE' if width > size[0] else ''}\n")
        visit.context.close()
        for fault in (*visit.strays, *visit.faults):
            sys.stdout.write(f"      {fault[:300]}\n")


def pictures(screens: Screens, station: Station, pages: list[str], folder: Path) -> None:
    """Take the two of docs/images."""
    visit = enter(screens, station, "light", SIZE)
    for name, address, height in (("console-now", "/", 1060), ("console-approval", f"{pages[2]}?decide=approve", 1020)):
        visit.page.set_viewport_size({"width": SIZE[0], "height": height})
        visit.go(address)
        visit.page.wait_for_selector('#connection[data-state="live"]')
        visit.page.screenshot(path=folder / f"{name}.png")
    visit.close()


@contextmanager
def at_work(station: Station) -> Iterator[None]:
    """A run goes on meanwhile."""
    tasks = [
        {"task_id": "collect", "intent": "Collect the notes", "tools": ["ls"], "inputs": {"args": ["docs"]}},
        {"task_id": "soak", "intent": "Let it run for a while", "tools": ["sleep"], "inputs": {"args": ["600"]}},
    ]
    plan = in_workspace(station.workspace, json.dumps(tasks)) / "plan.yaml"
    command = [*PMAGENT, "run", "Soak test of the bench", "--plan", str(plan)]
    run = warm.Popen(command, cwd=station.workspace, env=clean_environment(), stderr=subprocess.DEVNULL)
    try:
        station.until("task.attempt_requested", after=station.position() - 5)
        yield
    finally:
        run.terminate()
        run.wait(SECONDS)


def main(folder: Path, what: str) -> None:
    """See the module."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lab-") as scratch:
        screens = Screens(CHROMIUM)
        station = Station(Path(scratch))
        try:
            furnished = Furnished(station)
            furnished.everything()
            if what == "hostile":
                furnished.hostile()
            pages = furnished.pages()
            with at_work(station):
                screens.do(pictures if what == "docs" else tour, screens, station, pages, folder)
        finally:
            station.close()
            screens.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
