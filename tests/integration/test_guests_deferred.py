"""``claude -p`` puts a call off that is alone in its turn, and goes on with it once an operator has approved it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.guest_models import prompt
from tests.support.guests import Place, Ran, installed, place

pytestmark = [installed, pytest.mark.slow]

RAN = "echo hi > ran.txt"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    with place(tmp_path) as made:
        yield made


def deferred(here: Place, *turns: Any) -> tuple[Ran, Any]:
    """How a session of ``claude -p`` ended, whose calls nobody answers, and what it says of that."""
    here.policy("allow Agent")
    here.start()
    here.connect("claude", wait=1)
    done = here.run("claude", *turns)
    return done, json.loads(done.out)


def test_a_call_alone_in_its_turn_is_deferred_and_runs_when_it_is_approved(here: Place) -> None:
    _, said = deferred(here, [here.shell("claude", RAN)], "done")
    assert said["deferred_tool_use"]["input"]["command"] == RAN
    ended, = here.events("guest.wait_ended")
    assert ended.deferred
    number = here.events("guest.approval_asked")[0].approval
    assert here.document("approvals", "show", str(number))["resume"] == f"claude -p --resume {said['session_id']}"
    assert not (here.workspace / "ran.txt").exists()
    again = json.loads(here.resume(said["session_id"]).out)
    assert again["deferred_tool_use"] == said["deferred_tool_use"]  # nobody has approved it yet
    here.decide("approve", number)
    assert "deferred_tool_use" not in json.loads(here.resume(said["session_id"]).out)
    assert (here.workspace / "ran.txt").exists()
    assert [one.answer for one in here.events("guest.call_decided")] == ["ask", "ask", "allow"]


def test_calls_that_claude_would_forget_are_refused_and_not_deferred(here: Place) -> None:
    """Of two in a turn only the last is asked about again; a subagent's is not at all."""
    inner = prompt([here.shell("claude", RAN)], "done")
    agent = ["Agent", {"description": "d", "prompt": inner, "subagent_type": "general-purpose"}]
    two = [here.shell("claude", RAN), here.shell("claude", "touch other")]
    done, said = deferred(here, two, [agent], "done")
    assert "deferred_tool_use" not in said
    assert "pmagent approvals show" in done.results[0]
    assert not any(one.deferred for one in here.events("guest.wait_ended"))
    assert len(here.events("guest.wait_ended")) == 3
    assert not (here.workspace / "ran.txt").exists()
