"""The core as a library: the example in the docs runs as it stands; a log outlives its process; no area is loaded."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from pmagent import core
from pmagent.actors.areas import AREAS
from pmagent.contracts.payload import Effect, event_type
from pmagent.core import Event, Io, Payload, events, live, log_in, replay_log
from pmagent.events.errors import LogLocked

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "core.md").read_text("utf-8")
SECONDS = 120.0
"""It takes one; what takes longer hangs."""
LINES_MAX = 40


@event_type("core_test.asked")
class Asked(Payload, frozen=True, kw_only=True):
    """Something is to be done."""

    n: int


@event_type("core_test.done")
class Done(Payload, frozen=True, kw_only=True):
    """It is done."""

    n: int


@event_type("core_test.wanted", effect=Effect(repeatable=True, outcomes=("core_test.done",)))
class Wanted(Payload, frozen=True, kw_only=True):
    """It is to be done again after a crash."""

    n: int


@event_type("core_test.wanted_once", effect=Effect(repeatable=False, outcomes=("core_test.done",)))
class WantedOnce(Payload, frozen=True, kw_only=True):
    """It must not be done again."""

    n: int


class Doer:
    """Wants both."""

    name = "doer"
    hears: frozenset[type] = frozenset((Asked,))

    def initial(self) -> int:
        """Nothing asked."""
        return 0

    def evolve(self, asked: int, event: Event) -> int:
        """Count."""
        del event
        return asked + 1

    def decide(self, asked: int, event: Event) -> list[Payload]:
        """See the class."""
        del asked
        return [Wanted(n=event.data.n), WantedOnce(n=event.data.n)]


async def do(event: Event, io: Io) -> Done:
    """Do it."""
    del io
    return Done(n=event.data.n)


def types(folder: Path) -> list[str]:
    """The types of a log's events."""
    with closing(log_in(folder).reader()) as reader:
        return [event.type for event in events(reader)]


def test_the_example_on_the_page_runs_and_says_what_the_page_says() -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(example.splitlines()) <= LINES_MAX
    code = f"{example}\nimport sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", code], capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert (done.returncode, done.stderr) == (0, "")
    types, equal, modules = done.stdout.splitlines()
    assert equal == "True"
    assert f"`{types}` and `{equal}`" in PAGE
    areas = {f"actors.{area.name}" for area in AREAS} | {module for area in AREAS for module in area.contracts}
    assert not {*modules.split()} & areas


def test_the_ten_names_are_on_the_page_and_there() -> None:
    rows = "".join(re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE))
    assert len(core.__all__) == 10
    assert {*re.findall(r"`(\w+)", rows)} == {*core.__all__}
    assert all(hasattr(core, name) for name in core.__all__)


KILLED = """
import os, sys
from pathlib import Path
import anyio
sys.path.insert(0, sys.argv[2])
from tests.integration.test_core_library import Asked, Doer, Wanted, WantedOnce, live, log_in

async def main():
    async def die(event, io):
        os.kill(os.getpid(), 9)
    async with live(log_in(Path(sys.argv[1])), [Doer()], {Wanted: die, WantedOnce: die}) as runtime:
        await runtime.append(Asked(n=1), "a", "tests")
        await anyio.sleep_forever()

anyio.run(main)
"""


def test_effects_that_a_killed_process_left_open_end_under_the_next_one(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    root = str(Path(__file__).resolve().parents[2])
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder), root], check=False, timeout=SECONDS)
    assert killed.returncode == -9
    assert types(folder) == ["log.created", "core_test.asked", "core_test.wanted", "core_test.wanted_once"]

    async def taken_up() -> None:
        ended: list[str] = []
        both = anyio.Event()

        def hear(found: Sequence[Event], _: Sequence[str]) -> None:
            ended.extend(event.type for event in found if event.causation in (3, 4))
            if len(ended) == 2:
                both.set()

        async with live(log_in(folder), [Doer()], {Wanted: do, WantedOnce: do}) as runtime:
            runtime.listen(hear)
            assert await runtime.append(Asked(n=1), "a", "tests") is None, "it was asked for before"
            await both.wait()
        assert sorted(ended) == ["core_test.done", "effect.interrupted"]

    anyio.run(taken_up)
    assert replay_log(folder, [Doer()]).equal
    assert log_in(folder).verify(decode=True).ok


async def test_a_log_has_one_writer(tmp_path: Path) -> None:
    async with live(log_in(tmp_path / "log"), [Doer()], {}):
        with pytest.raises(LogLocked):
            async with live(log_in(tmp_path / "log"), [Doer()], {}):
                raise AssertionError("another one has it")
