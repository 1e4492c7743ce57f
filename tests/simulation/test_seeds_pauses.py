"""Seeds with pauses: invariants hold, every fault of the stop switch is met, and worlds without it are as before."""

from __future__ import annotations

import pytest

from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.runner import Load, play, run_seeds, simulate
from tests.support.covering import TYPED, not_met, played
from tests.support.simulated import DEMANDS, PAUSES, Redrawn, documents


@pytest.mark.slow
def test_nothing_outward_starts_in_a_pause_and_every_fault_strikes() -> None:
    failures, struck = played("pauses")
    assert failures == []
    assert not_met("pauses", struck) == []
    assert not set(struck) & set(TYPED)


@pytest.mark.slow
def test_nothing_is_typed_in_a_pause_nor_after_it_what_was_approved_before() -> None:
    failures, struck = played("pauses of typing")
    assert failures == []
    assert not_met("pauses of typing", struck) == []


def test_documents_are_what_the_log_says_through_pauses() -> None:
    everything = Load(demands=8, thoughts=3, runs=4, checks=2, audits=1, changes=4, typings=1, pauses=4)
    assert run_seeds(1, 4, load=everything, documents=documents).failures == []


def test_a_seed_with_pauses_has_one_history() -> None:
    assert simulate(5, load=PAUSES) == simulate(5, load=PAUSES)
    assert simulate(5, load=PAUSES).history != simulate(6, load=PAUSES).history


def test_what_has_nothing_to_do_with_pauses_takes_no_part_in_their_chance() -> None:
    one = play(Chance(4), load=DEMANDS)
    assert play(Redrawn(4, "pause", "resume", "switch"), load=DEMANDS) == one


def test_without_faults_what_was_held_is_done_when_the_pause_is_over() -> None:
    only = frozenset({"pause: in the midst of much work", "pause: much is asked for in it"})
    results = [simulate(seed, load=PAUSES, only=only) for seed in range(1, 9)]
    assert {result.starts for result in results} == {1}
    assert sum(result.struck.get("pause: held effects released", 0) for result in results) > 3
    assert not [name for result in results for name in result.struck if name.startswith("effect: cut off")]
