"""Machines that share a log: the laws hold in every seed, every fault is met, and a seed has one history."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pmagent.replay.machines.faults import CHANCES, CONSEQUENCES
from pmagent.replay.machines.runner import simulate
from pmagent.replay.simulation.runner import run_seeds
from tests.support.effort import rounds

ROOT = Path(__file__).resolve().parents[2]
LINES = (Path(__file__).parent / "seeds.txt").read_text().splitlines()
FOUND = [int(line.split()[1]) for line in LINES if line.startswith("machines ")]
HISTORIES = """
import sys
sys.path.insert(0, sys.argv[1])
from pmagent.replay.machines.runner import simulate
print(*(simulate(seed).history for seed in range(1, 9)))
"""


@pytest.mark.slow
def test_the_laws_hold_and_every_fault_strikes() -> None:
    summary = run_seeds(1, rounds(100_000, 1_000), one=simulate)
    assert summary.failures == []
    assert [name for name in (*CHANCES, *CONSEQUENCES) if not summary.struck.get(name)] == []


@pytest.mark.parametrize("seed", FOUND)
def test_seeds_that_found_something_are_run_for_ever(seed: int) -> None:
    assert simulate(seed).seed == seed


def test_a_seed_has_one_history_in_every_process() -> None:
    found = set()
    for hash_seed in ("0", "4711"):
        done = subprocess.run(
            [sys.executable, "-P", "-c", HISTORIES, str(ROOT)], env={"PYTHONHASHSEED": hash_seed},
            capture_output=True, text=True, check=True,
        )
        found.add(done.stdout)
    assert found == {" ".join(simulate(seed).history for seed in range(1, 9)) + "\n"}


def test_without_faults_nobody_takes_over_from_anybody() -> None:
    result = simulate(3, only=frozenset())
    assert set(result.struck) <= {"taken over: released", "attempt done", "two take-overs at once"}
