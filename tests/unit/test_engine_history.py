"""The engine folding a history again: actors that are gone, causes that are missing, remarks of the log itself."""

from __future__ import annotations

import msgspec
import pytest

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.engine import HistoryError
from pmagent.contracts.payload import encode
from pmagent.events.event import Event, LogRecovered
from tests.support.toys import Bench, Echoed, Poked, Toy, WorkRequested, refolded, worker


def test_decisions_of_an_actor_that_is_gone_are_read_over() -> None:
    actors: list[AnyActor] = [worker(Echoed(n=1, depth=1), name="gone"), worker(WorkRequested(n=2))]
    bench = Bench(actors)
    bench.fact(Poked(n=1))
    bench.fact(Poked(n=2))
    again = refolded(actors[1:], bench.history)
    assert again.complete(bench.now).events == []
    assert again.states["worker"] == bench.engine.states["worker"]


def test_a_decision_without_its_cause_cannot_be_folded() -> None:
    bench = Bench([worker(Echoed(n=1, depth=1))])
    bench.fact(Poked(n=1))
    bench.fact(Poked(n=2))
    late = msgspec.structs.replace(bench.history[1], position=4, causation=1)
    with pytest.raises(HistoryError, match="cause 1"):
        refolded(bench.actors, [*bench.history, late])


def test_history_that_an_actor_cannot_take_any_more_is_refused_with_actor_and_position() -> None:
    bench = Bench([Toy("toy", [Poked])])
    for n in range(1, 4):
        bench.fact(Poked(n=n))
    with pytest.raises(HistoryError, match="actor toy cannot take the event at position 1"):
        refolded([Toy("toy", [Poked], evolve_fails=[1])], bench.history).complete(bench.now)


def test_the_logs_own_remarks_are_heard_by_nobody_and_do_not_end_a_reaction() -> None:
    bench = Bench([worker(Echoed(n=1, depth=1), Echoed(n=2, depth=1))])
    bench.fact(Poked(n=1))
    data = LogRecovered(segment="s", offset=0, cut_bytes=1, kept_as="k", reason="r")
    remark = Event(3, bench.now, "log.recovered:x", "fact", "log", "log.recovered", "", 0, data, encode(data))
    engine = refolded(bench.actors, [*bench.history[:2], remark])
    assert [(event.id, event.position) for event in engine.complete(bench.now).events] == [("1.worker.1", 4)]
