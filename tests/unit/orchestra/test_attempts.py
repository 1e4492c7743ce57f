"""The report of an attempt is bounded, whatever its tool did."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import pytest

from pmagent.actors.core.actor import StoredBlob
from pmagent.actors.orchestra.running import effects
from pmagent.actors.orchestra.running.effects import VIOLATIONS_MAX, Attempts
from pmagent.actors.sandbox.spec import Outcome
from pmagent.contracts.orchestra import Artifact, NetContact
from pmagent.contracts.orchestra_events import TaskAttemptRequested, TaskExited, TaskUnstarted
from pmagent.events.event import Event
from tests.support.cases import each
from tests.support.orchestra import Harness, exited, plan


class Stream:
    """A stream into nothing."""

    def __init__(self) -> None:
        self.content = b""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        traceback: TracebackType | None) -> None:
        return None

    async def write(self, chunk: bytes) -> None:
        self.content += chunk

    async def finish(self) -> StoredBlob:
        size = len(self.content)
        return StoredBlob(sha256=sha256(self.content).hexdigest(), size=size, total=size, cut=False)


class World:
    """An ``Io`` with a workspace and a history."""

    def __init__(self, workspace: Path, history: list[Event]) -> None:
        self.workspace = workspace
        self._history = history

    def masked(self, text: str) -> str:
        return text

    async def blob(self, _: str) -> bytes:
        return b""

    async def event(self, position: int) -> Event:
        return self._history[position - 1]

    def store_stream(self, limit: int = 0) -> Stream:  # noqa: ARG002 - a stand-in's signature
        return Stream()


def attempted(monkeypatch: pytest.MonkeyPatch, workspace: Path, planted: int) -> TaskExited:
    """An attempt whose tool made so many things that it may not."""

    async def run(rights: Any) -> Outcome:
        rights()
        return Outcome(
            exit_code=0, signal=None, timed_out=False, exceeded="", stdout=b"", stderr=b"", stdout_bytes=0,
            stderr_bytes=0, seconds=0.25, planted=tuple(f"/w/{number}/.git" for number in range(planted)),
            unenforced=(),
        )

    monkeypatch.setattr(effects, "run", run)
    harness = Harness()
    harness.tool = lambda _: None
    harness.request({"a": []})
    (request,) = harness.open(TaskAttemptRequested)
    world: Any = World(workspace, harness.history)
    outcome = anyio.run(Attempts(), request, world)
    assert isinstance(outcome, TaskExited)
    assert not list((workspace / effects.FOLDER).iterdir())
    return outcome


@each("planted", [0, 1, VIOLATIONS_MAX])
def test_what_a_tool_made_and_may_not_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, planted: int) -> None:
    found = attempted(monkeypatch, tmp_path, planted)
    assert found.violations == [f"it made /w/{number}/.git" for number in range(planted)]


def test_of_many_things_that_a_tool_made_and_may_not_the_others_are_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = attempted(monkeypatch, tmp_path, 100_000)
    assert len(found.violations) == VIOLATIONS_MAX + 1
    assert found.violations[-1] == f"it made {100_000 - VIOLATIONS_MAX} more"


@each("gap, allowed, runs", [(0, False, True), (5, False, False), (5, True, True)])
def test_a_task_does_not_start_on_an_input_that_was_cut_unless_its_plan_allows_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gap: int, allowed: bool, runs: bool
) -> None:
    started: list[Any] = []

    async def run(spec: Any) -> Outcome:
        started.append(spec())
        return Outcome(
            exit_code=0, signal=None, timed_out=False, exceeded="", stdout=b"", stderr=b"", stdout_bytes=0,
            stderr_bytes=0, seconds=0.25, planted=(), unenforced=(),
        )

    monkeypatch.setattr(effects, "run", run)
    harness = Harness()
    left = Artifact(path="stdout", size_bytes=0, checksum=sha256(b"").hexdigest(), gap_bytes=gap)
    harness.tool = lambda event: exited(event, artifacts=[left]) if event.data.task_id == first else None
    given = plan({"a": [], "b": ["a"]}, b={"inputs": {"allow_cut": True}} if allowed else {})
    harness.request(given)
    first = harness.open(TaskAttemptRequested)[0].data.task_id
    while harness.step():
        pass
    (request,) = harness.open(TaskAttemptRequested)
    world: Any = World(tmp_path, harness.history)
    outcome = anyio.run(Attempts(), request, world)
    assert isinstance(outcome, TaskExited if runs else TaskUnstarted)
    assert bool(started) is runs
    if isinstance(outcome, TaskUnstarted):
        assert "a/stdout" in outcome.reason
        assert "allow_cut" in outcome.mend
        assert not outcome.again


def test_the_reasons_of_the_proxy_are_told_once_and_name_the_host() -> None:
    def contact(host: str, reason: str, verdict: Any = "refused") -> NetContact:
        return NetContact(host=host, port=443, address="", verdict=verdict, reason=reason, bytes_out=0, bytes_in=0)

    contacts = (
        contact("a.example", "cut", "allowed"), contact("a.example", "a.example is not allowed"),
        contact("a.example", "a.example is not allowed"), contact("b.example", "port 8080 is not allowed"),
        contact("", "no request came in time"), contact("c.example", "c.example is not allowed"),
    )
    assert effects._refusals(contacts) == [
        "a.example is not allowed", "b.example:443: port 8080 is not allowed", "no request came in time",
    ]
