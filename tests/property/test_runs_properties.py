"""Any plan, under any outcomes, interrupted at any moment: what must hold of runs does, and what is read back is equal.

The invariants are those that the simulation is held to; here what happens is drawn, and shrinks when one fails.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pmagent.actors.orchestra.running.task_state import PAUSE_SECONDS_MAX, failure_of, pause_seconds
from pmagent.contracts.effect import EffectCancelled, EffectFailed, EffectInterrupted, EffectRefused, EffectTimedOut
from pmagent.contracts.orchestra_config import BACKOFF_SECONDS_MAX, RETRIES_MAX
from pmagent.contracts.orchestra_events import REASON_CHARS_MAX, RunEnded, TaskExited, TaskUnstarted
from tests.support.cases import each
from tests.support.effort import examples
from tests.support.milling import ANSWERS, OUTCOMES, Mill
from tests.support.orchestra import NOTHING, config, plan

STEPS = (*OUTCOMES, *ANSWERS, *("wake", "wake", "wait", "crash", "stop", "cancel", "BLOCKED", "DEGRADED", "NORMAL"))
steps = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 999)), min_size=1, max_size=25)


@st.composite
def runs(draw: st.DrawFn) -> dict[str, Any]:
    """A request for a run: mostly of a plan with joins, now and then of a planner's."""
    workers, retries = draw(st.integers(1, 4)), draw(st.integers(0, 2))
    count = draw(st.integers(1, 7))
    names = [f"t{number}" for number in range(count)]
    waits = {
        name: draw(st.lists(st.sampled_from(names[:place]), unique=True, max_size=3)) if place else []
        for place, name in enumerate(names)
    }
    limits = {
        name: {"constraints": {
            "concurrency": draw(st.integers(1, workers)), "max_retries": draw(st.integers(0, retries)),
        }}
        for name in names
    }
    given_plan = plan({name: waits[name] for name in draw(st.permutations(names))}, **limits)
    return {
        "given": given_plan if draw(st.integers(0, 3)) else None,
        "config": config(
            workers=workers, retries=retries, base=draw(st.sampled_from([0.01, 1.5, 3])),
            total=draw(st.sampled_from([0.5, 20, 500])),
        ),
        "replans": draw(st.integers(0, 2)),
        "plan_only": draw(st.integers(0, 9)) == 0,
        "action": draw(st.sampled_from(["feature_work", "feature_work", "remediation", "diagnostic"])),
    }


def milled(asked: list[dict[str, Any]], taken: list[tuple[str, int]]) -> Mill:
    """These runs, each asked for in its place among the steps."""
    mill = Mill()
    for number, (what, how) in enumerate(taken):
        if number % 8 == 0 and number // 8 < len(asked):
            mill.ask(**asked[number // 8])
        mill.do(what, how)
    return mill


@given(st.lists(runs(), min_size=1, max_size=3), steps)
@settings(max_examples=examples(300), deadline=None)
def test_the_laws_of_runs_hold_whatever_happens(asked: list[dict[str, Any]], taken: list[tuple[str, int]]) -> None:
    mill = milled(asked, taken)
    mill.check()
    mill.finish()
    mill.check_ended()
    mill.check_replay()


@given(runs(), st.lists(st.sampled_from(["done", "done", "code", "wake", "cancel"]), max_size=8))
@settings(max_examples=examples(30), deadline=None)
def test_a_process_that_ends_at_any_event_changes_none_of_it(asked: dict[str, Any], taken: list[str]) -> None:
    mill = Mill()
    mill.ask(**asked)
    for number, what in enumerate(taken):
        mill.do(what, number)
    whole = list(mill.history)
    for kept in range(1, len(whole) + 1, max(1, len(whole) // 8)):
        mill.history = list(whole)
        mill.crash(kept)
        mill.check()
        mill.finish()
        mill.check_ended()
        mill.check_replay()


@given(st.floats(0.001, BACKOFF_SECONDS_MAX), st.integers(0, RETRIES_MAX))
@example(BACKOFF_SECONDS_MAX, RETRIES_MAX)
def test_a_pause_is_the_base_to_the_power_of_the_retry_and_a_day_at_most(base: float, retry: int) -> None:
    assert pause_seconds(base, retry) == pytest.approx(min(base**retry, PAUSE_SECONDS_MAX))


lines = st.lists(st.text(max_size=300), max_size=3)


@given(
    st.none() | st.integers(0, 255), st.none() | st.integers(1, 64), st.booleans(), st.sampled_from(["", "memory"]),
    lines, lines,
)
def test_only_a_program_that_ended_well_within_its_walls_has_not_failed(
    code: int | None, signal: int | None, timed_out: bool, exceeded: str, last: list[str], violations: list[str]
) -> None:
    end = TaskExited(
        request=9, run_id="r", task_id="t", attempt=1, exit_code=code, signal=signal, timed_out=timed_out,
        exceeded=exceeded, duration_ms=2, stdout=NOTHING, stderr=NOTHING, last_lines=last, artifacts=[],
        violations=violations,
    )
    failure = failure_of(end)
    well = code == 0 and not timed_out and not exceeded and not violations
    assert (failure is None) == well
    if failure is not None:
        assert (failure.again, failure.security) == (not violations, bool(violations))
        assert failure.counts
        assert 0 < len(failure.reason) <= REASON_CHARS_MAX


@each(
    "end, reason, again, counts",
    [
        (EffectTimedOut(request=1, limit_s=2.0), "stopped after 2 s", True, True),
        (EffectInterrupted(request=1, reason="crash"), "interrupted (crash)", True, True),
        (EffectInterrupted(request=1, reason="stop"), "interrupted (stop)", True, False),
        (EffectFailed(request=1, error="OSError", place="m:f"), "could not be run (OSError in m:f)", True, True),
        (EffectRefused(request=1, reasons=["a", "b"]), "not permitted: a; b", False, True),
        (EffectCancelled(request=1, reason="permit_revoked"), "stopped (permit_revoked)", False, True),
        (
            TaskUnstarted(request=1, run_id="r", task_id="t", attempt=1, reason="no bwrap", mend="install it",
                          security=False, again=True),
            "no bwrap (mend: install it)", True, True,
        ),
        (
            TaskUnstarted(request=1, run_id="r", task_id="t", attempt=1, reason="x" * 2000, mend="", security=True,
                          again=False),
            "x" * (REASON_CHARS_MAX - 1) + "…", False, True,
        ),
    ],
)  # fmt: skip
def test_each_other_end_says_why_it_is_one_and_whether_another_attempt_may_help(
    end: Any, reason: str, again: bool, counts: bool
) -> None:
    failure = failure_of(end)
    assert failure is not None
    assert (failure.reason, failure.again, failure.counts) == (reason, again, counts)


def test_the_steps_lead_to_every_kind_of_end() -> None:
    """The steps drawn above are not all refused at the door."""
    seen = set()
    for what in ("done", "code", "cancel", "BLOCKED", "never"):
        mill = Mill()
        mill.ask({"a": [], "b": ["a"]}, config=config(total=60, retries=0))
        mill.do(what, 1)
        if what == "never":
            mill.wake()
        mill.finish()
        mill.check_ended()
        seen |= {end.state for end in mill.of(RunEnded)}
    assert seen == {"done", "failed", "cancelled", "stopped", "timed_out"}
