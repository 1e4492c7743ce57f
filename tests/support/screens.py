"""A real browser for tests: Chromium, driven from a thread of its own.

Playwright keeps an event loop running in the thread that uses it, in which no other can be started; so tests with a
browser run in that thread (see tests/browser/conftest.py), and the rest of pytest never notices.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Playwright,
    Request,
    expect,
    sync_playwright,
)

T = TypeVar("T")

CHROMIUM: Final = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), ""
)  # fmt: skip
"""The shell without a window costs a third of the whole browser's processor time."""
SECONDS: Final = 300.0
"""Nothing that a page is waited for takes so long."""
SIZE: Final = (1440, 900)
NARROW: Final = (390, 844)


def require_chromium() -> str:
    """The browser's path. Skips the test where none is installed, but never on a machine that builds."""
    if not CHROMIUM:
        why = "Chromium is not installed (Debian's package chromium-headless-shell)"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    return CHROMIUM


class Screens:
    """The thread, and the browser in it."""

    def __init__(self, executable: str) -> None:
        self._thread = ThreadPoolExecutor(1, "browser")
        self._playwright: Playwright
        self.browser: Browser
        self.do(self._open, executable)

    def do(self, call: Callable[..., T], *arguments: Any) -> T:
        """Call it in the browser's thread. Raises what it raises."""
        return self._thread.submit(call, *arguments).result()

    def close(self) -> None:
        """Close the browser."""
        self.do(self._close)
        self._thread.shutdown()

    def _open(self, executable: str) -> None:
        self._playwright = sync_playwright().start()
        expect.set_options(timeout=SECONDS * 1000)
        options = ["--disable-dev-shm-usage"]  # it is small in containers
        if os.geteuid() == 0:
            options.append("--no-sandbox")
        self.browser = self._playwright.chromium.launch(executable_path=executable, args=options)

    def _close(self) -> None:
        self.browser.close()
        self._playwright.stop()


class Visit:
    """One person's browser, and what it did that no page of ours should make it do. To be used in its thread."""

    page: Page

    def __init__(self, browser: Browser, home: str, **options: Any) -> None:
        width, height = options.pop("size", SIZE)
        self.home = home
        self._refreshes = not options.get("java_script_enabled", True)
        self.context: BrowserContext = browser.new_context(
            base_url=home, viewport={"width": width, "height": height}, reduced_motion="reduce", **options
        )
        self.context.set_default_timeout(SECONDS * 1000)
        self.strays: list[str] = []
        """Addresses elsewhere that it asked for."""
        self.faults: list[str] = []
        """Dialogs, errors of scripts, and what the content policy had to forbid."""
        self.context.on("request", self._asked)
        self.context.on("page", self._watch)
        self.page = self.context.new_page()

    def window(self) -> Page:
        """Another window of the same browser."""
        return self.context.new_page()

    def go(self, path: str) -> int:
        """Open a page; its status."""
        if self._refreshes:  # a page without scripts loads itself again; not while this one comes
            self.page.goto("about:blank")
        answer = self.page.goto(path, wait_until="domcontentloaded")
        assert answer is not None, path
        return answer.status

    def stop_clock(self) -> None:
        """For the pages that are opened from now on no time passes between two keys, however busy the machine is."""
        self.context.clock.set_fixed_time(datetime.now(UTC))

    def close(self) -> None:
        """Close it. Raises AssertionError when something happened that should not."""
        self.context.close()
        assert not self.strays, f"asked for: {self.strays}"
        assert not self.faults, self.faults

    def _watch(self, page: Page) -> None:
        page.on("dialog", self._interrupted)
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        page.on("console", self._said)

    def _interrupted(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.faults.append(f"console: {message.text}")

    def _asked(self, request: Request) -> None:
        if urlsplit(request.url)[:2] != urlsplit(self.home)[:2]:
            self.strays.append(request.url)
