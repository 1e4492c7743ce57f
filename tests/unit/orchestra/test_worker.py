"""L3: attempts, pauses between them, and one result for each assignment, whoever ends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pmagent.actors.core.lines import line
from pmagent.actors.orchestra.lines import LINES
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.effect import EffectCancelled, EffectCancelRequested, EffectFailed, EffectInterrupted
from pmagent.contracts.orchestra import Artifact
from pmagent.contracts.orchestra_events import (
    RunCancelRequested,
    RunEnded,
    TaskAttemptFailed,
    TaskAttemptRequested,
    TaskFinished,
    TaskUnstarted,
)
from pmagent.events.event import Event, parse_time
from tests.support.cases import each
from tests.support.orchestra import RUN, Harness, config, exited, plan


def one(**limits: Any) -> Harness:
    """A run of one task, whose attempts have no end yet."""
    harness = Harness()
    harness.tool = lambda _: None
    harness.request({"a": []}, config=config(**limits))
    return harness


def attempt(harness: Harness) -> Event:
    """The attempt that is open."""
    (event,) = harness.open(TaskAttemptRequested)
    return event


def end(harness: Harness, code: int | None = 0, **more: Any) -> None:
    """Let the attempt end so."""
    harness.end(attempt(harness), exited(attempt(harness), code, **more))


def result(harness: Harness) -> TaskFinished:
    """The task's only result."""
    (finished,) = harness.of(TaskFinished)
    return finished


def pauses(harness: Harness) -> list[float]:
    """How long the worker's timers wait."""
    return [
        (parse_time(event.data.at) - parse_time(event.time)).total_seconds()
        for event in harness.events(TimerRequested) if event.actor == "worker"
    ]


def test_what_ends_well_is_done_with_what_it_left_and_took() -> None:
    harness = one()
    left = Artifact(path="f", size_bytes=3, checksum="0" * 64)
    end(harness, artifacts=[left])
    told = result(harness)
    assert (told.attempts, told.reason, told.security) == (1, "", False)
    assert msgspec.to_builtins(told.result) == {
        "task_id": attempt_of(harness), "state": "done", "logs": [], "artifacts": [msgspec.to_builtins(left)],
        "metrics": {"duration_ms": 250, "exit_code": 0, "tokens_used": None},
    }


def attempt_of(harness: Harness) -> str:
    """The task that was attempted."""
    return str(harness.of(TaskAttemptRequested)[0].task_id)


def test_attempts_are_one_and_the_retries_with_pauses_that_grow_by_the_base() -> None:
    harness = one(retries=3, base=3)
    for number in range(4):
        end(harness, 1, last_lines=["broken"])
        if number < 3:
            assert harness.open(TaskAttemptRequested) == []
            assert harness.wake()
    assert pauses(harness) == pytest.approx([3, 9, 27])
    told = result(harness)
    assert (told.attempts, told.reason, told.result.state) == (4, "exit code 1: broken", "failed")
    assert [entry.message for entry in told.result.logs] == [f"attempt {n}: exit code 1: broken" for n in (1, 2, 3, 4)]
    assert told.result.metrics.duration_ms == 4 * 250


def test_what_another_attempt_cannot_change_is_not_tried_again_and_says_what_helps() -> None:
    harness = one(retries=3)
    end(harness, 127, last_lines=["env: x: not found"], again=False, mend="allow it")
    told = result(harness)
    assert (told.attempts, told.reason) == (1, "exit code 127: env: x: not found (mend: allow it)")
    assert pauses(harness) == []


def test_a_later_attempt_may_end_well() -> None:
    harness = one(retries=1)
    end(harness, None, signal=11)
    assert harness.wake()
    end(harness)
    told = result(harness)
    assert (told.attempts, told.result.state) == (2, "done")
    assert [entry.message for entry in told.result.logs] == ["attempt 1: killed by signal SEGV"]


def test_each_failed_attempt_says_when_the_next_begins() -> None:
    harness = one(retries=1, base=2)
    first = attempt(harness)
    end(harness, 1)
    harness.wake()
    end(harness, 1)
    (timer,) = (event.data for event in harness.events(TimerRequested) if event.actor == "worker")
    told = [(one.request, one.attempt, one.retry_at) for one in harness.of(TaskAttemptFailed)]
    assert told == [(first.position, 1, timer.at), (harness.events(TaskAttemptRequested)[1].position, 2, "")]


@each("what", ["a violation", "a policy"])
def test_what_another_attempt_cannot_change_is_not_tried_again(what: str) -> None:
    harness = one(retries=3)
    asked = attempt(harness)
    if what == "a violation":
        end(harness, violations=["left its walls"])
    else:
        harness.end(asked, TaskUnstarted(
            request=asked.position, run_id=RUN, task_id=asked.data.task_id, attempt=1, reason="no", mend="do",
            security=True, again=False,
        ))  # fmt: skip
    told = result(harness)
    assert (told.attempts, told.security, told.result.state) == (1, True, "failed")
    assert told.reason == ("security violation: left its walls" if what == "a violation" else "no (mend: do)")


def test_an_attempt_that_the_gate_refuses_is_not_made_again(harness: Harness) -> None:
    harness.tool = lambda _: None
    harness.request({"a": []}, config=config(retries=3, total=10))
    end(harness, 1)
    harness.seconds += 1_000.0  # nothing runs so long: neither the run's time nor its permit is watched meanwhile
    timer = next(event for event in harness.open(TimerRequested) if event.actor == "worker")
    harness.end(timer, TimerFired(request=timer.position, name=timer.data.name))
    told = result(harness)
    assert told.reason.startswith("not permitted: ")
    assert (told.attempts, told.result.state) == (2, "failed")


@each("length, told", [(1_000, "x" * 1_000), (1_001, "x" * 999 + "…")])
def test_a_reason_that_is_too_long_is_cut(length: int, told: str) -> None:
    harness = one()
    asked = attempt(harness)
    harness.end(asked, TaskUnstarted(
        request=asked.position, run_id=RUN, task_id=asked.data.task_id, attempt=1, reason="x" * length, mend="",
        security=False, again=False,
    ))  # fmt: skip
    assert result(harness).reason == told
    assert result(harness).security is False


# --- ends of processes ----------------------------------------------------------------------------------------------


@each("reason, left", [("crash", 1), ("stop", 2)])
def test_an_attempt_that_was_cut_off_is_repeated_at_the_next_start_and_counts_if_a_crash_did_it(
    reason: str, left: int
) -> None:
    harness = one(retries=2, base=0.1)
    harness.end(attempt(harness), EffectInterrupted(request=attempt(harness).position, reason=reason))
    assert [one.retry_at for one in harness.of(TaskAttemptFailed)] == ["next start"]
    assert harness.open(TaskAttemptRequested) == []
    for surface, attempts in (("oa.status", 0), ("daemon", 1)):
        harness.start(surface)
        harness.observe("NORMAL")
        assert len(harness.open(TaskAttemptRequested)) == attempts, surface
    for _ in range(left):
        end(harness, 1)
        assert harness.wake()
    end(harness, 1)
    assert result(harness).attempts == 2 + left


def test_what_a_crash_cut_off_fails_when_no_retry_is_left() -> None:
    harness = one(retries=0)
    harness.end(attempt(harness), EffectInterrupted(request=attempt(harness).position, reason="crash"))
    assert (result(harness).reason, result(harness).result.state) == ("interrupted (crash)", "failed")


def test_a_pause_that_ends_while_a_command_runs_waits_for_the_next_start() -> None:
    harness = one(retries=1)
    end(harness, 1)
    harness.start("oa.status")
    harness.observe("NORMAL")
    assert harness.wake()
    assert harness.open(TaskAttemptRequested) == []
    harness.start("orchestra.run")
    assert attempt(harness).data.attempt == 2


def test_a_timer_that_fails_has_fired() -> None:
    harness = one(retries=1)
    end(harness, 1)
    timer = next(event for event in harness.open(TimerRequested) if event.actor == "worker")
    harness.end(timer, EffectFailed(request=timer.position, error="OSError", place="toy"))
    assert attempt(harness).data.attempt == 2


# --- runs that are to end -------------------------------------------------------------------------------------------


def test_an_attempt_of_a_run_that_is_to_end_is_cancelled_and_waited_for() -> None:
    harness = one()
    asked = attempt(harness)
    harness.tell(RunCancelRequested(run_id=RUN, reason="enough"))
    assert asked.position in [told.request for told in harness.of(EffectCancelRequested)]
    assert harness.of(TaskFinished) == []
    harness.end(asked, EffectCancelled(request=asked.position, reason="cancel_requested"))
    assert (result(harness).reason, result(harness).result.state) == ("stopped (cancel_requested)", "failed")


def test_what_ends_well_although_it_is_to_be_stopped_is_done() -> None:
    harness = one()
    asked = attempt(harness)
    harness.tell(RunCancelRequested(run_id=RUN))
    harness.end(asked, exited(asked))
    assert result(harness).result.state == "done"
    (over,) = harness.of(RunEnded)
    assert (over.state, over.done) == ("cancelled", 1)


def test_a_pause_of_a_run_that_is_to_end_is_over_and_its_timer_taken_back() -> None:
    harness = one(retries=1)
    end(harness, 1)
    timer = next(event for event in harness.open(TimerRequested) if event.actor == "worker")
    harness.tell(RunCancelRequested(run_id=RUN, reason="enough"))
    assert timer.position in harness.engine.effects.cancelled
    assert (result(harness).reason, result(harness).attempts) == ("enough", 1)


def test_what_is_assigned_in_a_run_that_is_to_end_is_not_attempted() -> None:
    """One reading of the surfaces can grant a permit and, as they are BLOCKED, take it back."""
    harness = Harness("NORMAL")
    harness.start()  # now nobody knows the mode; the permit waits for the reading
    harness.request({"a": [], "b": ["a"]}, action="diagnostic")
    harness.observe("BLOCKED")
    (over,) = harness.of(RunEnded)
    assert (over.state, over.failed) == ("stopped", 2)
    assert harness.of(TaskAttemptRequested) == []
    assert harness.engine.states["worker"].stopping == {}


def test_a_dry_run_says_so_to_who_performs(harness: Harness) -> None:
    harness.request(plan({"a": []}), dry_run=True)
    assert harness.of(TaskAttemptRequested)[0].simulated


@each("more, reason", [
    ({"code": 56, "last_lines": ["403"]}, "exit code 56, the proxy refused: x.example is not allowed; no: 403"),
    ({"code": None, "timed_out": True}, "timed out after 0.2 s, the proxy refused: x.example is not allowed; no"),
    ({"code": 0}, ""),
])
def test_a_failed_task_tells_why_the_proxy_refused(more: dict[str, Any], reason: str) -> None:
    harness = one(retries=0)
    ended = exited(attempt(harness), **more, refusals=["x.example is not allowed", "no"])
    harness.end(attempt(harness), ended)
    assert result(harness).reason == reason
    assert "the proxy refused: x.example is not allowed" in line(LINES["task.exited"], msgspec.to_builtins(ended))
