"""The status names what is open: runs and audits, what each does now, and which effects the stop switch holds."""

from __future__ import annotations

from typing import Any

import pytest

from pmagent.actors.core.gate import Permit
from pmagent.contracts.control import PauseRequested
from pmagent.contracts.oa import OaPermitRequested
from pmagent.events.event import Tail
from pmagent.events.log import LogClock
from pmagent.service.status import status_of
from tests.support.audits import AUDIT, Court
from tests.support.orchestra import RUN, Harness


def status(harness: Harness) -> dict[str, Any]:
    """The status of the harness's engine."""
    return status_of(harness.engine, "5a" * 16, Tail(), running=True)


def test_a_run_is_told_while_it_is_open(harness: Harness) -> None:
    harness.request(None, intent="build it " * 40)
    (job,) = status(harness)["jobs"]
    assert (job["kind"], job["id"], job["doing"]) == ("run", RUN, "planning")
    assert job["what"] == ("build it " * 40)[:200]
    assert harness.history[job["position"] - 1].type == "run.requested"
    harness.run()
    assert status(harness)["jobs"] == []


def test_an_audit_is_told_while_it_is_open_and_that_it_is_judged() -> None:
    court = Court()
    court.ask(engine="langchain", model="toy")
    doing = []
    while court.ended() is None:
        (job,) = status(court)["jobs"]
        assert (job["kind"], job["id"], job["what"]) == ("audit", AUDIT, "https://example.org/team/agent.git")
        doing.append(job["doing"])
        assert court.step() or court.wake()
    assert list(dict.fromkeys(doing)) == ["evidence", "judging"]
    assert status(court)["jobs"] == []


def test_what_the_stop_switch_holds_is_marked() -> None:
    court = Court()
    court.tell(PauseRequested(operator_id="ada", channel="cli"))
    court.ask()
    told = status(court)
    held = [effect for effect in told["open_effects"] if effect["held"]]
    assert told["paused"]["operator_id"] == "ada"
    assert len(held) == told["held"] > 0
    assert {effect["type"] for effect in held} == {"audit.clone_requested"}


def test_a_permit_that_is_used_up_is_not_told_as_live() -> None:
    court = Court()
    court.ask()
    while court.ended() is None:
        assert court.step() or court.wake()
    assert [permit.uses_left for permit in court.engine.states["gate"].permits.values()] == [0]
    assert status(court)["permits"] == 0


def test_permits_that_may_still_be_used_are_told_until_they_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    court = Court()
    (permit,) = _unused(court)
    for time, live in ((court.history[-1].time, 1), (permit.expires_at, 0)):
        monkeypatch.setattr(LogClock, "now", lambda _, time=time: time)
        assert status(court)["permits"] == live


def _unused(court: Court) -> list[Permit]:
    """The gate's permits once somebody was granted one and has not used it."""
    asked = OaPermitRequested(action="diagnostic", subject="x", holder="tester", uses=1, seconds=60)
    court.tell(asked)
    return list(court.engine.states["gate"].permits.values())
