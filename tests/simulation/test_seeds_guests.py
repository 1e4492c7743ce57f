"""Seeds with guests: laws hold, what was run was let through, and hooks, agents and operators do their worst."""

from __future__ import annotations

from collections import Counter

from pmagent.replay.areas.guests import GUEST_CHANCES, GUEST_CONSEQUENCES
from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.runner import Load, play, run_seeds, simulate
from tests.support.simulated import DEMANDS, Redrawn, documents

GUESTS = Load(demands=3, thoughts=0, runs=0, checks=0, audits=0, changes=1, pauses=1, guests=5)


def test_nothing_passes_without_a_rule_or_an_approval_whatever_hooks_do() -> None:
    met: Counter[str] = Counter()
    done = run_seeds(1, 60, load=GUESTS, report=lambda result: met.update(result.struck))
    assert done.failures == []
    assert [name for name in (*GUEST_CHANCES, *GUEST_CONSEQUENCES) if not met[name]] == []


def test_reports_are_what_the_log_says() -> None:
    assert run_seeds(100, 6, load=GUESTS, documents=documents).failures == []


def test_a_seed_with_guests_has_one_history_and_worlds_without_them_are_as_before() -> None:
    assert simulate(7, load=GUESTS) == simulate(7, load=GUESTS)
    assert play(Redrawn(4, "guest", "hook"), load=DEMANDS) == play(Chance(4), load=DEMANDS)
