"""Replay: reproduces what was decided, and names what was altered, even when the chain was computed anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
import pytest

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.integrity import ENGINE
from pmagent.contracts.payload import Correlated, Payload, encode
from pmagent.events.blobs import BlobStore
from pmagent.events.commit import Committer
from pmagent.events.disk import RealDisk
from pmagent.events.errors import CorruptLog
from pmagent.events.event import Draft, Event
from pmagent.events.segment_store import SegmentStorage
from pmagent.replay.divergence import LISTED_MAX, Divergence
from pmagent.replay.replayer import fold_log, replay_log
from tests.support.cases import each
from tests.support.memory_storage import MemoryStorage
from tests.support.recorded import altered_log, inserted_log, stored_log
from tests.support.toys import (
    Asked,
    Bench,
    Echoed,
    Grantor,
    Poked,
    Toy,
    ToyState,
    permit_for,
    refolded,
)


def toys() -> list[AnyActor]:
    """Actors that echo, work, ask for permits and fail on 13."""
    return [Grantor(), Toy("ada", decide_fails=[13]), Toy("bob")]


@pytest.fixture(scope="module")
def bench() -> Bench:
    """A run of fifty facts."""
    bench = Bench(toys())
    for n in range(50):
        if n % 5 == 0:
            bench.fact(permit_for("bob", uses=2))
        bench.fact(Asked(n=n) if n % 10 == 3 else Poked(n=n))
    return bench


@pytest.fixture(scope="module")
def log(bench: Bench) -> MemoryStorage:
    """Its log."""
    return stored_log(bench.history)


def decision(bench: Bench, actor: str, type: str = "", at: int = 3) -> Event:
    """The ``at``-th decision of ``actor``."""
    found = [e for e in bench.history if e.kind == "decision" and e.actor == actor and e.type.startswith(type)]
    return found[min(at, len(found) - 1)]


def changed_data(event: Event) -> Event:
    """The event with another number in its data."""
    data = msgspec.json.decode(event.raw)
    key = next(key for key, value in data.items() if isinstance(value, int))
    return msgspec.structs.replace(event, raw=msgspec.json.encode({**data, key: data[key] + 1}))


def only(divergences: Sequence[Divergence]) -> Divergence:
    """The one there is."""
    assert len(divergences) == 1
    return divergences[0]


def test_a_log_is_reproduced(bench: Bench, log: MemoryStorage) -> None:
    result = replay_log(log, toys())
    assert result.equal
    assert result.events == result.position == len(bench.history)
    assert result.decisions == sum(event.kind == "decision" for event in bench.history)
    assert result.unfinished == 0


def test_folding_gives_the_states_that_the_run_had(bench: Bench, log: MemoryStorage) -> None:
    engine = refolded(toys(), [])
    assert fold_log(log, engine) == len(bench.history)
    assert engine.complete(bench.now).events == []
    assert engine.states == bench.engine.states


@each("actor", ["ada", "bob", "oa"])
def test_an_altered_decision_is_found_and_shown(bench: Bench, log: MemoryStorage, actor: str) -> None:
    target = decision(bench, actor)
    found = only(replay_log(altered_log(log, {target.position: changed_data}), toys()).divergences)
    assert (found.kind, found.position, found.about) == ("changed", target.position, actor)
    lines = found.lines()
    assert f"position {target.position}" in lines[0]
    assert actor in lines[0]
    assert any(line.startswith("-") and not line.startswith("---") for line in lines)
    assert any(line.startswith("+") and not line.startswith("+++") for line in lines)


@each("change", [
    lambda event: msgspec.structs.replace(event, id=event.id + "0"),
    lambda event: msgspec.structs.replace(event, actor="bob"),
    lambda event: msgspec.structs.replace(event, type="toy.poked"),
    lambda event: msgspec.structs.replace(event, type="toy.invented"),
    lambda event: msgspec.structs.replace(event, correlation="other"),
    lambda event: msgspec.structs.replace(event, raw=event.raw.replace(b",", b", ")),
    lambda event: msgspec.structs.replace(event, raw=b'{"n":"not a number"}'),
])
def test_each_part_of_a_decision_counts(bench: Bench, log: MemoryStorage, change: Callable[[Event], Event]) -> None:
    target = decision(bench, "ada", "toy.echoed")
    result = replay_log(altered_log(log, {target.position: change}), toys())
    assert not result.equal
    assert result.divergences[0].shown.causation == target.causation


def test_a_decision_left_out_is_missing(bench: Bench, log: MemoryStorage) -> None:
    leaf = next(
        event for event in bench.history[5:]
        if event.type == "toy.echoed" and not any(other.causation == event.position for other in bench.history)
    )
    found = only(replay_log(altered_log(log, {leaf.position: lambda _: None}), toys()).divergences)
    assert (found.kind, found.position) == ("missing", leaf.position)
    assert found.expected == leaf
    assert found.recorded is None
    assert "was not recorded" in found.lines()[0]


def test_a_decision_put_in_is_extra(bench: Bench, log: MemoryStorage) -> None:
    end = next(
        index for index, event in enumerate(bench.history[1:], 1)
        if event.kind == "fact" and bench.history[index - 1].kind == "decision"
    )

    def make(event: Event) -> Event:
        return msgspec.structs.replace(
            event, id=f"{event.causation}.bob.77", actor="bob", type="toy.echoed", raw=encode(Echoed(n=1, depth=9))
        )

    altered = inserted_log(log, end, make)
    assert replay_log(altered, toys(), until=end).equal
    found = only(replay_log(altered, toys()).divergences)
    assert (found.kind, found.position, found.about) == ("extra", end + 1, "bob")
    assert "is not decided now" in found.lines()[0]


def test_the_gates_and_the_engines_decisions_are_compared_too(bench: Bench, log: MemoryStorage) -> None:
    for actor, about in (("gate", "gate"), (ENGINE, "ada")):
        target = decision(bench, actor)
        found = replay_log(altered_log(log, {target.position: changed_data}), toys()).divergences[0]
        assert (found.position, found.shown.actor) == (target.position, actor)
        assert found.about in (about, "")


def test_a_halt_that_would_not_happen_now_is_found(bench: Bench, log: MemoryStorage) -> None:
    halt = next(event for event in bench.history if event.type == "actor.halted")
    found = replay_log(log, [Grantor(), Toy("ada"), Toy("bob")], what_if=True).divergences[:2]
    assert {divergence.shown.causation for divergence in found} == {halt.causation}
    assert ("extra", "ada") in {(divergence.kind, divergence.about) for divergence in found}


@each("back", range(1, 12))
def test_the_end_of_the_log_inside_a_reaction_is_no_divergence(bench: Bench, back: int) -> None:
    history = bench.history[:-back]
    result = replay_log(stored_log(history), toys())
    assert result.equal
    assert result.unfinished == len(refolded(toys(), history).complete(bench.now).events)


def test_until_leaves_the_rest_unread(bench: Bench, log: MemoryStorage) -> None:
    target = decision(bench, "bob", "toy.", 8)
    altered = altered_log(log, {target.position: changed_data})
    assert not replay_log(altered, toys()).equal
    result = replay_log(altered, toys(), until=target.position - 1)
    assert result.equal
    assert result.position == target.position - 1
    assert not replay_log(altered, toys(), until=target.position).equal


def test_only_one_actor_is_compared_when_asked(bench: Bench, log: MemoryStorage) -> None:
    target = decision(bench, "ada", "toy.echoed")
    altered = altered_log(log, {target.position: changed_data})
    result = replay_log(altered, toys(), actor="oa")
    assert result.equal
    assert 0 < result.decisions < replay_log(log, toys()).decisions
    assert only(replay_log(altered, toys(), actor="ada").divergences).position == target.position


class Louder(Toy):
    """Today's code decides one thing more, and is one number off."""

    def decide(self, state: ToyState, event: Event) -> Iterable[Payload | Correlated]:
        """See the class."""
        for payload in super().decide(state, event):
            yield msgspec.structs.replace(payload, n=payload.n + 1) if isinstance(payload, Echoed) else payload
        yield Echoed(n=0, depth=99)


def test_what_if_goes_on_with_the_recorded_decisions_and_counts(bench: Bench, log: MemoryStorage) -> None:
    result = replay_log(log, [Grantor(), Toy("ada", decide_fails=[13]), Louder("bob")], what_if=True)
    assert result.position == len(bench.history)
    counts = {(count.actor, count.type, count.kind): count.count for count in result.counts}
    assert set(counts) == {("bob", "toy.echoed", "changed"), ("bob", "toy.echoed", "missing")}
    echoes = sum(event.actor == "bob" and event.type == "toy.echoed" for event in bench.history)
    assert counts["bob", "toy.echoed", "changed"] == echoes
    assert len(result.divergences) == sum(counts.values())
    strict = replay_log(log, [Grantor(), Toy("ada", decide_fails=[13]), Louder("bob")])
    assert strict.divergences == result.divergences[:1]


def test_what_if_keeps_a_bounded_list() -> None:
    bench = Bench([Toy("bob")])
    for n in range(2 * LISTED_MAX):
        bench.fact(Poked(n=n))
    result = replay_log(stored_log(bench.history), [Louder("bob")], what_if=True)
    assert len(result.divergences) == LISTED_MAX
    assert sum(count.count for count in result.counts) >= 2 * LISTED_MAX


def test_a_decision_on_nothing_stops_the_replay_with_a_reason(bench: Bench, log: MemoryStorage) -> None:
    target = decision(bench, "bob", "toy.", 20)
    altered = altered_log(log, {target.position: lambda event: msgspec.structs.replace(event, causation=1)})
    for what_if in (False, True):
        result = replay_log(altered, toys(), what_if=what_if)
        assert not result.equal
        assert result.divergences or result.stopped


def test_an_actor_that_cannot_take_what_it_took_differs(log: MemoryStorage) -> None:
    actors: list[AnyActor] = [
        Grantor(), Toy("ada", evolve_fails=[20], decide_fails=[13]), Toy("bob", evolve_fails=[21]),
    ]
    result = replay_log(log, actors)
    found = only(result.divergences)
    assert found.about == "bob"
    assert found.expected is not None
    assert found.expected.type == "actor.halted"


def test_a_log_folder_is_read_with_the_blobs_beside_it(tmp_path: Path) -> None:
    disk = RealDisk()
    storage = SegmentStorage(disk, str(tmp_path / "log"), "0" * 32)
    name = BlobStore(disk, str(tmp_path / "blobs")).put(encode(Poked(n=4)))
    reference = msgspec.json.encode({"blob": {"sha256": name, "size": 7, "media_type": "application/json"}})
    bench = Bench(toys())
    created = Event(1, bench.now, "c", "fact", "log", "log.created", "", 0, None, b'{"log_id":"%b"}' % (b"0" * 32))
    bench.engine.fold(created)
    bench.engine.complete(bench.now)
    accepted = bench.engine.accept(Draft("toy.poked", Poked(n=4), reference, "large", "tests"), bench.now)
    assert accepted is not None
    committer = Committer(storage)
    committer.submit([created, *accepted.events])
    committer.commit()
    storage.close()
    assert replay_log(tmp_path / "log", toys()).equal
    (tmp_path / "blobs" / name[:2] / name).unlink()
    with pytest.raises(CorruptLog) as gone:
        replay_log(tmp_path / "log", toys())
    assert gone.value.position == accepted.events[0].position
