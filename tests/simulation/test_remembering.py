"""Tests stay as strong when results are computed once: decisions that follow from something hidden are found, and so
is a second run that comes to something else."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

import msgspec
import pytest

from pmagent.actors.audit.actor import Auditor
from pmagent.events.event import Event
from pmagent.replay.simulation.invariants import Watch
from pmagent.replay.simulation.remembering import AFRESH, Decided, Remembering, remembers_nothing
from pmagent.replay.simulation.runner import Rests, SimulationFailed, simulate
from tests.support.simulated import AUDITS, DEMANDS


@pytest.fixture
def moody(monkeypatch: pytest.MonkeyPatch) -> None:
    """An auditor that decides by how often it was asked before, which no log tells."""
    decide, asked = Auditor.decide, count()

    def hidden(self: Auditor, state: Any, event: Event) -> Iterable[Any]:
        decisions = list(decide(self, state, event))
        return decisions[::-1] if next(asked) % 5 == 0 else decisions

    monkeypatch.setattr(Auditor, "decide", hidden)


def outcome(seed: int, rests: Rests | None = None) -> str:
    """The history of a run, or why it failed."""
    try:
        return simulate(seed, load=AUDITS, rests=rests).history
    except SimulationFailed as failed:
        return failed.reason


def checked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each log that is checked at the end of a run."""
    check, done = Watch.check_log, list[int]()

    def noted(self: Watch, *arguments: Any) -> None:
        check(self, *arguments)
        done.append(len(self.history))

    monkeypatch.setattr(Watch, "check_log", noted)
    return done


@pytest.mark.usefixtures("moody")
def test_a_seed_that_remembers_nothing_finds_what_decides_by_something_hidden() -> None:
    seeds = range(AFRESH, 20 * AFRESH, AFRESH)
    assert all(map(remembers_nothing, seeds))
    assert any("replay differs" in outcome(seed) for seed in seeds)


@pytest.mark.usefixtures("moody")
def test_the_second_run_of_a_seed_finds_it_too() -> None:
    def histories(seed: int) -> set[str]:
        rests: Rests = {}
        return {outcome(seed, rests) for _ in range(2)}

    assert any(len(histories(seed)) == 2 for seed in range(1, 40) if not remembers_nothing(seed))


def test_a_state_that_differs_is_decided_on_anew() -> None:
    times = count(1)

    class Actor:
        name, hears, initial, evolve = "a", frozenset[type](), dict[str, int], None

        def decide(self, _: Any, __: Event) -> Iterable[Any]:
            yield next(times)

    event = Event(3, "", "a", "fact", "a", "a", "", 0, None, b"")
    decided: Decided = {}
    live: Any = Remembering(Actor(), decided)  # type: ignore[arg-type]
    replayed: Any = Remembering(Actor(), decided)  # type: ignore[arg-type]
    assert [*live.decide({"tries": 1}, event)] == [1]
    assert [*replayed.decide({"tries": 1}, event)] == [1]
    assert [*replayed.decide({"tries": 2}, event)] == [2]
    other = msgspec.structs.replace(event, id="b")
    assert [*replayed.decide({"tries": 2}, other)] == [3]


def test_a_second_run_with_the_same_rest_is_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    done, rests = checked(monkeypatch), Rests()
    first = simulate(3, load=DEMANDS, rests=rests)
    assert simulate(3, load=DEMANDS, rests=rests) == first
    assert len(done) == 1


def test_a_second_run_with_another_rest_is_a_failure() -> None:
    rests = Rests()
    simulate(3, load=DEMANDS, rests=rests)
    rests[3] = rests[3]._replace(sum=bytes(32))
    with pytest.raises(SimulationFailed, match="something else than the first"):
        simulate(3, load=DEMANDS, rests=rests)


def test_a_seed_that_remembers_nothing_is_checked_in_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    done, rests = checked(monkeypatch), Rests()
    assert simulate(AFRESH, load=DEMANDS, rests=rests) == simulate(AFRESH, load=DEMANDS, rests=rests)
    assert len(done) == 2
    assert not rests
