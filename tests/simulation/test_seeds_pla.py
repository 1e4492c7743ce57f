"""Seeds of the PLA's world: invariants hold, every fault is met, equal seeds have equal histories."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.replay.areas.pla.faults import ENDING_CHANCES, PLA_CHANCES
from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.runner import Load, play, run_seeds, simulate
from tests.support.covering import not_met, played
from tests.support.effort import examples, rounds
from tests.support.simulated import RUNS, TYPINGS, Redrawn, documents

ROOT = Path(__file__).resolve().parents[2]

HISTORIES = """
import sys
sys.path.insert(0, sys.argv[1])
from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.runner import Load, simulate
print(*(simulate(seed, load=Load(0, 0, 0, 0, 0, 2, 6)).history for seed in range(40, 42)))
"""


@pytest.mark.slow
def test_nothing_is_typed_that_nobody_approved_and_every_fault_strikes() -> None:
    failures, struck = played("pla")
    assert failures == []
    assert not_met("pla", struck) == []


def test_session_logs_violations_and_jobs_are_what_the_log_says() -> None:
    assert run_seeds(1, rounds(12, 5), load=TYPINGS, documents=documents).failures == []


def test_the_pla_gets_along_with_everything_else() -> None:
    everything = Load(demands=5, thoughts=3, runs=3, checks=2, audits=1, changes=4, typings=3)
    assert run_seeds(1, rounds(6, 2), load=everything, documents=documents).failures == []


def test_without_faults_whatever_is_wished_for_is_typed() -> None:
    result = simulate(3, load=TYPINGS, only=frozenset())
    assert result.struck["pla: typed"] >= 2
    assert "pla: outcome unknown" not in result.struck
    assert not [name for name in PLA_CHANCES if result.struck.get(name)]


def test_a_seed_has_one_history() -> None:
    assert simulate(5, load=TYPINGS) == simulate(5, load=TYPINGS)
    assert simulate(5, load=TYPINGS).history != simulate(6, load=TYPINGS).history


def test_a_seed_has_one_history_in_every_process() -> None:
    found = set()
    for hash_seed in ("0", "4711"):
        done = subprocess.run(
            [sys.executable, "-P", "-c", HISTORIES, str(ROOT)], env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True, text=True, check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1


def test_what_has_nothing_to_do_with_the_pla_takes_no_part_in_its_chance() -> None:
    one = play(Chance(4), load=RUNS)
    assert play(Redrawn(4, "pla:", *PLA_CHANCES), load=RUNS) == one


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 2**32), st.integers(0, 4), st.integers(1, 4))
def test_nothing_is_typed_unapproved_in_any_world(one: int, other: int, changes: int, typings: int) -> None:
    load = Load(0, 0, 0, 0, 0, changes, typings)
    play(Redrawn(one, "pla:", *PLA_CHANCES, *ENDING_CHANCES, other=other), load=load)
