"""Claude Code and Codex themselves, from npm, under the gate: what they do is up to a model server of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.guests import Place, installed, place

pytestmark = [installed, pytest.mark.slow]

HARNESSES = pytest.mark.parametrize("harness", ["claude", "codex"])
RAN = "echo hi > ran.txt"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    with place(tmp_path) as made:
        yield made


def ran(here: Place) -> bool:
    """Whether the shell's line was run."""
    return (here.workspace / "ran.txt").exists()


@HARNESSES
def test_what_is_allowed_runs_and_what_is_denied_does_not(here: Place, harness: str) -> None:
    here.policy("allow Bash(echo *)", "deny Bash(rm *)")
    here.start()
    here.connect(harness)
    kept = here.workspace / "kept.txt"
    kept.touch()
    done = here.run(harness, [here.shell(harness, RAN)], [here.shell(harness, "rm kept.txt")], "done")
    assert done.code == 0, done
    assert ran(here)
    assert kept.exists()
    assert "pmagent" in done.results[1]
    started, = here.events("guest.session_started")
    assert (started.harness, started.mode) == (harness, "enforce")
    assert [decided.answer for decided in here.events("guest.call_decided")] == ["allow", "deny"]
    closed, = here.events("guest.session_closed")
    assert (closed.asked, closed.allowed, closed.refused, closed.unknown) == (2, 1, 1, 0)


@HARNESSES
def test_observe_records_and_holds_nothing_up(here: Place, harness: str) -> None:
    """Without a daemon, too: what hooks leave in the spool is taken in at the next start."""
    here.policy("deny Bash(*)")
    here.connect(harness, "observe")
    assert here.run(harness, [here.shell(harness, RAN)], "done").code == 0
    assert ran(here)
    here.start()
    (here.workspace / "ran.txt").unlink()
    assert here.run(harness, [here.shell(harness, RAN)], "done").code == 0
    assert ran(here)
    asked = here.events("guest.call_asked")
    assert [(one.mode, one.source) for one in asked] == [("observe", "spool"), ("observe", "live")]


@HARNESSES
def test_without_a_daemon_nothing_runs(here: Place, harness: str) -> None:
    here.policy("allow Bash(*)")
    here.connect(harness)
    done = here.run(harness, [here.shell(harness, RAN)], "done")
    assert not ran(here)
    assert "pmagent up" in done.results[0]


@HARNESSES
def test_a_subagent_is_under_the_gate(here: Place, harness: str) -> None:
    from tests.support.guest_models import prompt

    here.policy("allow Agent", "allow spawn_agent", "allow Bash(sleep *)", "deny Bash(echo *)")
    here.start()
    here.connect(harness)
    inner = prompt([here.shell(harness, RAN)], "done")
    spawned: list[Any] = ["Agent", {"description": "d", "prompt": inner, "subagent_type": "general-purpose"}]
    if harness == "codex":
        spawned = ["multi_agent_v1.spawn_agent", {"message": inner}]
    done = here.run(harness, [spawned], [here.shell(harness, "sleep 3")], "done")
    assert done.code == 0, done
    assert not ran(here)
    asked = {one.facts.tool: one.facts for one in here.events("guest.call_asked") if one.facts.agent}
    assert asked["Bash"].agent_type
