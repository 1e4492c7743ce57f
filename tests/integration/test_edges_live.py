"""Any edge takes part in a host's life: its parts are made, told, waited for, shown and ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest

from pmagent.actors.core.runtime import Runtime
from pmagent.edge import Edge
from pmagent.edges import EDGES
from pmagent.events.event import Event
from pmagent.service import adoption, host, open_work, status
from pmagent.service.adoption import NotEnded
from pmagent.service.operations import call


class Heard:
    """A resource that listens."""

    def __init__(self) -> None:
        self.types: list[str] = []

    def hear(self, events: Sequence[Event], _sums: Sequence[str]) -> None:
        """Listener."""
        self.types += [event.type for event in events]


Add = Callable[..., None]
"""Names functions as the parts of one more edge."""


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Add:
    module = ModuleType("one_more")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def named(**parts: Any) -> None:
        for name, part in parts.items():
            setattr(module, name, part)
        fields: dict[str, Any] = {name: f"{module.__name__}:{name}" for name in parts}
        more = Edge(area="more", **fields)
        for user in (adoption, host, open_work, status):
            monkeypatch.setattr(user, "EDGES", (*EDGES, more))

    return named


async def test_a_host_has_what_each_edge_names(workspace: Path, add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, go, released = anyio.Event(), anyio.Event(), anyio.Event()
    swept: list[Sequence[str]] = []

    async def ready(_: host.Host) -> None:
        asked.set()
        await go.wait()

    release = Runtime.release_outward

    def spied(runtime: Runtime) -> None:
        released.set()
        release(runtime)

    monkeypatch.setattr(Runtime, "release_outward", spied)
    monkeypatch.setattr(host, "sweep", lambda _, *folders: swept.append(folders))
    add(
        resources=lambda _: (Heard(),), ready=ready, status=lambda _: {"more": 1}, open=lambda _: ["more work"],
    )  # fmt: skip
    async with host.open_host(workspace, "daemon") as live:
        await asked.wait()
        assert not released.is_set()
        go.set()
        await released.wait()
        assert {"daemon.started", "kernel.observed"} <= {*live.resources[Heard].types}
        engine = live.runtime.engine
        told = status.status_of(engine, live.storage.log_id(), live.tail, running=True)
        names = ["running", "daemon", "mode", "phase", "branch", "reasons", "sessions", "alerts", "guests", "more"]
        assert [*told][: len(names)] == names
        assert "more work" in open_work.open_work(engine, live.runtime.now())
    (folders,) = swept
    assert {*folders} == {".pmagent/audits", ".pmagent/checks", ".pmagent/tasks"}


async def test_a_caller_gives_resources_of_its_own(workspace: Path, add: Add) -> None:
    add(resources=lambda _: (Heard(),))
    own = Heard()
    async with host.open_host(workspace, "daemon", resources=[own]) as live:
        assert live.resources[Heard] is own
        assert "daemon.started" in own.types


def test_a_log_is_adopted_when_each_area_has_ended_its_work(workspace: Path, add: Add) -> None:
    assert call(workspace, "oa.snapshot").exit_code == 0
    work, enders = ["more work"], []

    async def ends(_: host.Host, operator: str) -> None:
        enders.append(operator)
        if operator == "eve":
            work.clear()

    add(open=lambda _: work, ends=ends)
    found = adoption.look(workspace)
    assert found.open == ["more work"]
    with pytest.raises(NotEnded, match="more work"):
        adoption.adopt(workspace, found, "bob")
    adoption.adopt(workspace, found, "eve")
    assert enders == ["bob", "eve"]
