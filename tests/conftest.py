"""Fixtures for tests of several areas: the surfaces of the example workspace, and observations made of them."""

from __future__ import annotations

import copy
import gc
import hashlib
import inspect
import json
import os
import shutil
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from pmagent.actors.kernel.reader import parse
from pmagent.actors.kernel.surfaces import NAMES, PATHS, REQUIRED
from pmagent.cli import console
from pmagent.contracts.kernel import KernelObserved, SurfaceReading
from pmagent.service import liveness
from pmagent.workspace.trust import accept
from tests.support import own_state
from tests.support.bugs import bugs
from tests.support.cases import on_loop
from tests.support.effort import FULL, NIGHT, by_night, costly, examples, named_by_night

if TYPE_CHECKING:
    from tests.support.gateway import GatewayBench
    from tests.support.memory_disk import MemoryDisk
    from tests.support.orchestra import Harness

__all__ = ["own_state"]

pytest_plugins = ["tests.support.costs"] if "PMAGENT_COSTS" in os.environ else []

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "workspace"
EXAMPLE_DATE = "2026-11-21T18:00:00"
"""When the example's surfaces say that they were written."""
REAL = ROOT.parent / "shared" / "data" / "oa"

Contents = dict[str, Any]
Observe = Callable[..., KernelObserved]

# How long an example takes says more of the machine, and of who else works on it, than of the code.
settings.register_profile(
    "unhurried", deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unhurried")
# So does how long a daemon may be silent before it is said to hang, and how long its console takes to start (it gives
# way to everything else); tests of that say how long themselves.
liveness.SILENT_SECONDS = 30.0  # type: ignore[misc]
console.READY_SECONDS = 600.0  # type: ignore[misc]


def pytest_xdist_auto_num_workers() -> int:
    """Two for each processor: half of the time a test waits for a disk or for another process."""
    return min(2 * len(os.sched_getaffinity(0)), 16)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Keep the garbage collector off the tests while they are collected, and afterwards: they live until the end. A
    full round over fifteen thousand tests costs a third of a second, and each daemon inside a test begins with one."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what costs much, unless it is asked for by name, or by a planted bug."""
    if NIGHT:
        return
    night = set(named_by_night())
    for item in items:
        if night & {item.nodeid, item.nodeid.partition("[")[0]}:
            item.add_marker(by_night)
    if FULL or any("::" in argument for argument in config.args):
        return
    left_out = set(costly())
    planted = {bug.test for bug in bugs()}
    late = [
        item
        for item in items
        if item.nodeid in left_out and not planted & {item.nodeid, item.nodeid.partition("[")[0]}
    ]
    config.hook.pytest_deselected(items=late)
    items[:] = [item for item in items if item not in set(late)]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test on the event loop that the daemon uses."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    on_loop(pyfuncitem.obj)(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames})
    return True


def observed(contents: Contents, *, request: int = 0, existing: list[str] | None = None) -> KernelObserved:
    """An observation of surfaces with these contents (bytes: a file's own); one that is left out is missing."""
    readings = []
    for name in NAMES:
        blank = SurfaceReading(name=name, path=PATHS[name], required=name in REQUIRED, status="missing")
        if name in contents:
            content = contents[name]
            raw = content if isinstance(content, bytes) else json.dumps(content).encode()
            status, detail, value = parse(name, raw)
            blank = SurfaceReading(
                name=name, path=PATHS[name], required=name in REQUIRED, status=status, detail=detail, content=value,
                size=len(raw), sha256=hashlib.sha256(raw).hexdigest(),
            )
        readings.append(blank)
    return KernelObserved(surfaces=readings, existing=existing or [], request=request)


@pytest.fixture(scope="session")
def example_contents() -> Contents:
    """Surface name -> content in the example workspace. Not to be changed."""
    return {name: json.loads((EXAMPLE / path).read_text()) for name, path in PATHS.items()}


@pytest.fixture
def green(example_contents: Contents) -> Contents:
    """The example's surfaces, for a test to change as it likes."""
    return copy.deepcopy(example_contents)


@pytest.fixture(scope="session")
def observe() -> Observe:
    """Makes an observation of contents; see ``observed``."""
    return observed


@pytest.fixture
def harness() -> Harness:
    """L1, L2 and L3 with nothing asked of them yet."""
    from tests.support.orchestra import Harness

    return Harness()


@pytest.fixture
def bench() -> GatewayBench:
    """A gateway with no question yet."""
    from tests.support.gateway import GatewayBench

    return GatewayBench()


@pytest.fixture
def disk() -> MemoryDisk:
    """An empty disk in memory."""
    from tests.support.memory_disk import MemoryDisk

    return MemoryDisk()


def fresh_example(folder: Path) -> Path:
    """A copy of the example workspace in ``folder``, its surfaces dated as if they had been written just now: evidence
    that is half a day old is an answer's condition. Its configuration is accepted."""
    shutil.copytree(EXAMPLE, folder)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    for path in (folder / "share").rglob("*.json"):
        path.write_text(path.read_text().replace(EXAMPLE_DATE, now))
    accept(folder)
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A copy of the example workspace, as files."""
    return fresh_example(tmp_path / "workspace")


@pytest.fixture(params=["coherent_green", "coherent_red", "incoherent_bootstrap"])
def real_workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of one of the real workspaces; the test is skipped where they are not at hand."""
    source = REAL / request.param
    if not source.is_dir():
        pytest.skip("the real workspaces are not here")
    mine = tmp_path / str(request.param)
    shutil.copytree(source, mine)
    for path in (mine, *mine.rglob("*")):  # they lie there read-only, which only root may ignore
        path.chmod(0o755 if path.is_dir() else 0o644)
    accept(mine)
    return mine
