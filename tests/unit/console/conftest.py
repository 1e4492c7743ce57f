"""A live host for a module, and who uses its console: who may set things, and who may only look."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import fresh_example
from tests.support.approving import APPROVING, LOOKING, configure
from tests.support.consoles import Console, LiveHost, console, live_host


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
