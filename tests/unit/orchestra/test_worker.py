"""L3: attempts, pauses between them, and one result for each assignment, whoever ends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

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
from tests.support.orchestra import RUN, Yard, config, exited, plan


def one(**limits: Any) -> Yard:
    """A run of one task, whose attempts have no end yet."""
    yard = Yard()
    yard.tool = lambda _: None
    yard.request({"a": []}, config=config(**limits))
    return yard


def attempt(yard: Yard) -> Event:
    """The attempt that is open."""
    (event,) = yard.open(TaskAttemptRequested)
    return event


def end(yard: Yard, code: int | None = 0, **more: Any) -> None:
    """Let the attempt end so."""
    yard.end(attempt(yard), exited(attempt(yard), code, **more))


def result(yard: Yard) -> TaskFinished:
    """The task's only result."""
    (finished,) = yard.of(TaskFinished)
    return finished


def pauses(yard: Yard) -> list[float]:
    """How long the worker's timers wait."""
    return [
        (parse_time(event.data.at) - parse_time(event.time)).total_seconds()
        for event in yard.events(TimerRequested) if event.actor == "worker"
    ]


def test_what_ends_well_is_done_with_what_it_left_and_took() -> None:
    yard = one()
    left = Artifact(path="f", size_bytes=3, checksum="0" * 64)
    end(yard, artifacts=[left])
    told = result(yard)
    assert (told.attempts, told.reason, told.security) == (1, "", False)
    assert msgspec.to_builtins(told.result) == {
        "task_id": attempt_of(yard), "state": "done", "logs": [], "artifacts": [msgspec.to_builtins(left)],
        "metrics": {"duration_ms": 250, "exit_code": 0, "tokens_used": None},
    }


def attempt_of(yard: Yard) -> str:
    """The task that was attempted."""
    return str(yard.of(TaskAttemptRequested)[0].task_id)


def test_attempts_are_one_and_the_retries_with_pauses_that_grow_by_the_base() -> None:
    yard = one(retries=3, base=3)
    for number in range(4):
        end(yard, 1, last_lines=["broken"])
        if number < 3:
            assert yard.open(TaskAttemptRequested) == []
            assert yard.wake()
    assert pauses(yard) == pytest.approx([3, 9, 27])
    told = result(yard)
    assert (told.attempts, told.reason, told.result.state) == (4, "exit code 1: broken", "failed")
    assert [entry.message for entry in told.result.logs] == [f"attempt {n}: exit code 1: broken" for n in (1, 2, 3, 4)]
    assert told.result.metrics.duration_ms == 4 * 250


def test_a_later_attempt_may_end_well() -> None:
    yard = one(retries=1)
    end(yard, None, signal=11)
    assert yard.wake()
    end(yard)
    told = result(yard)
    assert (told.attempts, told.result.state) == (2, "done")
    assert [entry.message for entry in told.result.logs] == ["attempt 1: killed by signal SEGV"]


def test_each_failed_attempt_says_when_the_next_begins() -> None:
    yard = one(retries=1, base=2)
    first = attempt(yard)
    end(yard, 1)
    yard.wake()
    end(yard, 1)
    (timer,) = (event.data for event in yard.events(TimerRequested) if event.actor == "worker")
    told = [(one.request, one.attempt, one.retry_at) for one in yard.of(TaskAttemptFailed)]
    assert told == [(first.position, 1, timer.at), (yard.events(TaskAttemptRequested)[1].position, 2, "")]


@each("what", ["a violation", "a policy"])
def test_what_another_attempt_cannot_change_is_not_tried_again(what: str) -> None:
    yard = one(retries=3)
    asked = attempt(yard)
    if what == "a violation":
        end(yard, violations=["left its walls"])
    else:
        yard.end(asked, TaskUnstarted(
            request=asked.position, run_id=RUN, task_id=asked.data.task_id, attempt=1, reason="no", mend="do",
            security=True, again=False,
        ))  # fmt: skip
    told = result(yard)
    assert (told.attempts, told.security, told.result.state) == (1, True, "failed")
    assert told.reason == ("security violation: left its walls" if what == "a violation" else "no (mend: do)")


def test_an_attempt_that_the_gate_refuses_is_not_made_again() -> None:
    yard = Yard()
    yard.tool = lambda _: None
    yard.request({"a": []}, config=config(retries=3, total=10))
    end(yard, 1)
    yard.seconds += 1_000.0  # nothing runs so long: neither the run's time nor its permit is watched meanwhile
    timer = next(event for event in yard.open(TimerRequested) if event.actor == "worker")
    yard.end(timer, TimerFired(request=timer.position, name=timer.data.name))
    told = result(yard)
    assert told.reason.startswith("not permitted: ")
    assert (told.attempts, told.result.state) == (2, "failed")


@each("length, told", [(1_000, "x" * 1_000), (1_001, "x" * 999 + "…")])
def test_a_reason_that_is_too_long_is_cut(length: int, told: str) -> None:
    yard = one()
    asked = attempt(yard)
    yard.end(asked, TaskUnstarted(
        request=asked.position, run_id=RUN, task_id=asked.data.task_id, attempt=1, reason="x" * length, mend="",
        security=False, again=False,
    ))  # fmt: skip
    assert result(yard).reason == told
    assert result(yard).security is False


# --- ends of processes ----------------------------------------------------------------------------------------------


@each("reason, left", [("crash", 1), ("stop", 2)])
def test_an_attempt_that_was_cut_off_is_repeated_at_the_next_start_and_counts_if_a_crash_did_it(
    reason: str, left: int
) -> None:
    yard = one(retries=2, base=0.1)
    yard.end(attempt(yard), EffectInterrupted(request=attempt(yard).position, reason=reason))
    assert [one.retry_at for one in yard.of(TaskAttemptFailed)] == ["next start"]
    assert yard.open(TaskAttemptRequested) == []
    for surface, attempts in (("oa.status", 0), ("daemon", 1)):
        yard.start(surface)
        yard.observe("NORMAL")
        assert len(yard.open(TaskAttemptRequested)) == attempts, surface
    for _ in range(left):
        end(yard, 1)
        assert yard.wake()
    end(yard, 1)
    assert result(yard).attempts == 2 + left


def test_what_a_crash_cut_off_fails_when_no_retry_is_left() -> None:
    yard = one(retries=0)
    yard.end(attempt(yard), EffectInterrupted(request=attempt(yard).position, reason="crash"))
    assert (result(yard).reason, result(yard).result.state) == ("interrupted (crash)", "failed")


def test_a_pause_that_ends_while_a_command_runs_waits_for_the_next_start() -> None:
    yard = one(retries=1)
    end(yard, 1)
    yard.start("oa.status")
    yard.observe("NORMAL")
    assert yard.wake()
    assert yard.open(TaskAttemptRequested) == []
    yard.start("orchestra.run")
    assert attempt(yard).data.attempt == 2


def test_a_timer_that_fails_has_fired() -> None:
    yard = one(retries=1)
    end(yard, 1)
    timer = next(event for event in yard.open(TimerRequested) if event.actor == "worker")
    yard.end(timer, EffectFailed(request=timer.position, error="OSError", place="toy"))
    assert attempt(yard).data.attempt == 2


# --- runs that are to end -------------------------------------------------------------------------------------------


def test_an_attempt_of_a_run_that_is_to_end_is_cancelled_and_waited_for() -> None:
    yard = one()
    asked = attempt(yard)
    yard.tell(RunCancelRequested(run_id=RUN, reason="enough"))
    assert asked.position in [told.request for told in yard.of(EffectCancelRequested)]
    assert yard.of(TaskFinished) == []
    yard.end(asked, EffectCancelled(request=asked.position, reason="cancel_requested"))
    assert (result(yard).reason, result(yard).result.state) == ("stopped (cancel_requested)", "failed")


def test_what_ends_well_although_it_is_to_be_stopped_is_done() -> None:
    yard = one()
    asked = attempt(yard)
    yard.tell(RunCancelRequested(run_id=RUN))
    yard.end(asked, exited(asked))
    assert result(yard).result.state == "done"
    (over,) = yard.of(RunEnded)
    assert (over.state, over.done) == ("cancelled", 1)


def test_a_pause_of_a_run_that_is_to_end_is_over_and_its_timer_taken_back() -> None:
    yard = one(retries=1)
    end(yard, 1)
    timer = next(event for event in yard.open(TimerRequested) if event.actor == "worker")
    yard.tell(RunCancelRequested(run_id=RUN, reason="enough"))
    assert timer.position in yard.engine.effects.cancelled
    assert (result(yard).reason, result(yard).attempts) == ("enough", 1)


def test_what_is_assigned_in_a_run_that_is_to_end_is_not_attempted() -> None:
    """One reading of the surfaces can grant a permit and, as they are BLOCKED, take it back."""
    yard = Yard("NORMAL")
    yard.start()  # now nobody knows the mode; the permit waits for the reading
    yard.request({"a": [], "b": ["a"]}, action="diagnostic")
    yard.observe("BLOCKED")
    (over,) = yard.of(RunEnded)
    assert (over.state, over.failed) == ("stopped", 2)
    assert yard.of(TaskAttemptRequested) == []
    assert yard.engine.states["worker"].stopping == {}


def test_a_dry_run_says_so_to_who_performs() -> None:
    yard = Yard()
    yard.request(plan({"a": []}), dry_run=True)
    assert yard.of(TaskAttemptRequested)[0].simulated
