"""A live host for a module, and who decides on its proposals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import fresh_example
from tests.support.approving import APPROVING, ASKING, LOOKING, Approver, configure
from tests.support.consoles import LiveHost, console, live_host


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHost]:
    """A live host; each test makes a proposal of its own."""
    workspace = fresh_example(tmp_path_factory.mktemp("approvals") / "workspace")
    with live_host(configure(workspace, 'credentials = "acknowledge"')) as live:
        yield live


@pytest.fixture(scope="module")
def bob(host: LiveHost) -> Iterator[Approver]:
    """Somebody who may approve, and asks for nothing."""
    with console(host.workspace, APPROVING) as browser:
        yield Approver(browser)


@pytest.fixture(scope="module")
def ada(host: LiveHost) -> Iterator[Approver]:
    """Somebody who may approve, and asks for all of it."""
    with console(host.workspace, ASKING) as browser:
        yield Approver(browser)


@pytest.fixture(scope="module")
def eve(host: LiveHost) -> Iterator[Approver]:
    """Somebody who may only look."""
    with console(host.workspace, LOOKING, "view") as browser:
        yield Approver(browser)
