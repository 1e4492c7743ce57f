"""A live host for a module and the operators of its console; a console behind its guard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pmagent.console.auth.entrance import Entered
from tests.conftest import fresh_example
from tests.support.approving import APPROVING, LOOKING, configure
from tests.support.consoles import Console, LiveHost, console, live_host
from tests.support.entrances import GuardedConsole, unsynced


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHost]:
    """A live host."""
    workspace = fresh_example(tmp_path_factory.mktemp("console") / "workspace")
    with live_host(configure(workspace)) as live:
        yield live


@pytest.fixture(scope="module")
def bob(host: LiveHost) -> Iterator[Console]:
    """Somebody who may set things."""
    with console(host.workspace, APPROVING) as browser:
        yield browser


@pytest.fixture(scope="module")
def eve(host: LiveHost) -> Iterator[Console]:
    """Somebody who may only look."""
    with console(host.workspace, LOOKING, "view") as browser:
        yield browser


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GuardedConsole:
    """With Ada, who approves, and Vic, who views; behind the guard a page that notes what reaches it."""
    unsynced(monkeypatch)
    return GuardedConsole(tmp_path, ada="approve", vic="view")


@pytest.fixture
def ada(guarded: GuardedConsole) -> Entered:
    """Signed in."""
    return guarded.entered("ada")
