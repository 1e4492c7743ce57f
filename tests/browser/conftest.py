"""Real browsers on real daemons. A test that has a fixture of these runs in the browser's thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.screens import Screens, Visit, require_chromium
from tests.support.stations import APPROVING, Station

Enter = Callable[..., Visit]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run the test in the browser's thread, if it has one."""
    screens = pyfuncitem.funcargs.get("screens")
    if not isinstance(screens, Screens):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    screens.do(lambda: pyfuncitem.obj(**given))
    return True


@pytest.fixture(scope="module")
def screens() -> Iterator[Screens]:
    """One browser for a module: none idles while other tests run."""
    opened = Screens(require_chromium())
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    """A station for the tests of a module; each leaves it in order."""
    require_chromium()
    made = Station(tmp_path_factory.mktemp("station"))
    yield made
    made.close()


@pytest.fixture
def enter(screens: Screens, station: Station) -> Iterator[Enter]:
    """Signs somebody in, in a browser of their own: ``enter(operator, size=…, java_script_enabled=…)``."""
    visits: list[Visit] = []

    def signed_in(operator: str = APPROVING, **options: Any) -> Visit:
        address = station.entrance(operator)
        visit = Visit(screens.browser, address.partition("/enter")[0], **options)
        visits.append(visit)
        visit.page.goto(address)
        return visit

    yield signed_in
    for visit in visits:
        screens.do(visit.close)
