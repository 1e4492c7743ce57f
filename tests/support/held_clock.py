"""A time limit that begins when a test says so: a machine that is slow starts what it is to end no later than that."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import Limits, Outcome
from tests.support.sandboxes import spec_for


def held_clock(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Callable[[], None]:
    """Time limits of just so many seconds (``anyio.move_on_after``) do not run, until what is returned is called on the
    event loop: from then on they have all of their time."""
    scopes: list[anyio.CancelScope] = []
    move_on_after = anyio.move_on_after

    def held(delay: float | None, shield: bool = False) -> anyio.CancelScope:
        scope = move_on_after(delay, shield=shield)
        if delay == seconds:
            scope.deadline = math.inf
            scopes.append(scope)
        return scope

    def begin() -> None:
        for scope in scopes:
            scope.deadline = anyio.current_time() + seconds

    monkeypatch.setattr(anyio, "move_on_after", held)
    return begin


def timed_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, limits: Limits) -> Outcome:
    """A run in a sandbox whose time begins when ``code`` has said something: TERM finds its handlers in place, however
    busy the machine is."""
    begin = held_clock(monkeypatch, limits.seconds)
    outcome = anyio.run(run, spec_for(tmp_path / "artifacts", code, limits=limits), lambda *_: begin())
    assert outcome.timed_out
    return outcome
