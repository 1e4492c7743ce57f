"""Seeds: invariants hold, equal seeds have equal histories in every process, and every fault has been met."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pmagent.events.disk import Status
from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.disk import SimDisk
from pmagent.replay.simulation.faults import CHANCES, FOREIGN_CHANCES, Faults
from pmagent.replay.simulation.machine import Machine
from pmagent.replay.simulation.runner import Load, SimResult, play, simulate
from tests.support.covering import not_met, played
from tests.support.effort import examples, rounds
from tests.support.simulated import TYPINGS, documents

MIXED = Load(demands=12, thoughts=4, runs=4, checks=2, audits=1, changes=4, pauses=1)
ROOT = Path(__file__).resolve().parents[2]
LINES = (Path(__file__).parent / "seeds.txt").read_text().splitlines()
SEEDS = [int(line.split()[0]) for line in LINES if line[:1].isdigit()]

HISTORIES = """
import sys
sys.path.insert(0, sys.argv[1])
from pmagent.projections.core.documents import Documents
from pmagent.projections.registry import all_projections
from pmagent.replay.simulation.runner import simulate
print(*(simulate(seed, documents=lambda: Documents(all_projections())).history for seed in range(40, 41)))
"""


class OneSource(Chance):
    """Everything is drawn from ``random``, which may be anything that chooses (Hypothesis)."""

    def __init__(self, random: Random) -> None:
        super().__init__(0)
        self._random = random

    def stream(self, name: str) -> Random:  # noqa: ARG002
        """See Chance."""
        return self._random

    def uniform(self, name: str) -> float:  # noqa: ARG002
        """See Chance."""
        return self._random.random()

    def drawn(self) -> str:
        """See Chance."""
        return repr(self._random.random())


@pytest.mark.slow
def test_invariants_hold_and_every_fault_strikes() -> None:
    failures, struck = played("all")
    assert failures == []
    assert not_met("all", struck) == []


@pytest.mark.slow
def test_nothing_is_acknowledged_after_somebody_else_changed_the_log() -> None:
    failures, struck = played("foreign")
    assert failures == []
    assert not_met("foreign", struck) == []
    changed = sum(struck[name] for name in FOREIGN_CHANCES)
    assert struck["log: foreign change noticed"] > changed / 2, "else the process ended before"


@pytest.mark.parametrize("what", FOREIGN_CHANCES)
def test_a_change_of_a_log_whose_newest_segment_is_empty_is_one_or_there_is_none(what: str) -> None:
    disk = SimDisk(Chance(0), Faults(Chance(0), "world", frozenset()))
    disk.make_folder("/log")
    paths = ["/log/HEAD", f"/log/{1:020}.jsonl"]
    for path in paths:
        disk.put(path, b"")

    def states() -> list[Status | None]:
        found = [disk.status(path) for path in ("/log", *paths)]
        return [state and state._replace(version=0) for state in found]

    before = states()
    undo = disk.change(what, "/log")
    assert (undo is None) is (states() == before)
    if undo is not None:
        undo()
    assert states() == before


@pytest.mark.parametrize("seed", SEEDS)
def test_seeds_that_once_found_something_pass(seed: int) -> None:
    simulate(seed, documents=documents)


def test_a_seed_has_one_history() -> None:
    found = simulate(20)
    assert found == simulate(20)
    assert found.history != simulate(21).history


def test_a_seed_has_one_history_in_every_process() -> None:
    found = set()
    for hash_seed in ("0", "4711"):
        done = subprocess.run(
            [sys.executable, "-P", "-c", HISTORIES, str(ROOT)], env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True, text=True, check=True,
        )
        found.add(done.stdout)
    assert len(found) == 1


@pytest.mark.parametrize("load", [MIXED, TYPINGS])
def test_longer_payloads_move_no_draw(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no segment is full sooner, a world with longer payloads goes as it went."""
    init, append = Machine.__init__, Machine.append
    more, sizes = "", list[int]()

    def one_segment(self: Machine, *arguments: Any) -> None:
        init(self, *arguments)
        self._segment_bytes = 100_000_000

    def longer(self: Machine, payload: msgspec.Struct, *arguments: Any) -> None:
        for field in ("text", "intent", "version", "reason", "goal"):
            if isinstance(value := getattr(payload, field, None), str) and value:
                payload = msgspec.structs.replace(payload, **{field: value + more})
        sizes.append(len(msgspec.json.encode(payload)))
        append(self, payload, *arguments)

    def told() -> list[SimResult]:
        return [msgspec.structs.replace(simulate(seed, load=load), history="") for seed in range(1, rounds(7, 4))]

    monkeypatch.setattr(Machine, "__init__", one_segment)
    monkeypatch.setattr(Machine, "append", longer)
    before, size = told(), sum(sizes)
    sizes.clear()
    more = "x" * 300
    assert told() == before
    assert sum(sizes) > size


def test_without_faults_nothing_is_lost_or_repeated() -> None:
    result = simulate(8, documents=documents, only=frozenset())
    assert result.starts == 1
    assert not [name for name in CHANCES if result.struck.get(name)]


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(0, 8))
def test_invariants_hold_whatever_is_chosen(random: Random, demands: int) -> None:
    """The same world with choices that Hypothesis makes, and shrinks when one fails."""
    load = Load(demands, demands // 2, demands // 2, demands // 3, demands // 4, demands)
    play(OneSource(random), documents=documents, load=load)
