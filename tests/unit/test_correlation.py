"""Which conversation a decision belongs to: its cause's, or the one that the actor says (docs/design.md §2.1)."""

from __future__ import annotations

from collections.abc import Iterable

from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import TEXT_BYTES_MAX, Event
from pmagent.replay.replayer import replay_log
from tests.support.recorded import stored_log
from tests.support.toys import Bench, Echoed, Poked, Toy, ToyState, refolded


class Answering(Toy):
    """Answers the first poke when the second comes, in the first one's conversation."""

    def __init__(self, correlation: str = "c-fact-1") -> None:
        super().__init__("answering", [Poked, Echoed])
        self._correlation = correlation

    def decide(self, state: ToyState, event: Event) -> Iterable[Payload | Correlated]:
        del state
        if isinstance(event.data, Poked) and event.data.n == 2:
            yield Correlated(Echoed(n=1, depth=9), self._correlation)
            yield Echoed(n=2, depth=9)


def test_a_decision_belongs_where_its_actor_says_and_else_to_its_cause() -> None:
    bench = Bench([Answering()])
    bench.fact(Poked(n=1))
    bench.fact(Poked(n=2))
    assert [(event.correlation, event.causation) for event in bench.of(Echoed)] == [("c-fact-1", 2), ("c-fact-2", 2)]
    assert replay_log(stored_log(bench.history), bench.actors).equal


def test_replay_finds_a_decision_in_another_conversation() -> None:
    bench = Bench([Answering()])
    bench.fact(Poked(n=1))
    bench.fact(Poked(n=2))
    assert not replay_log(stored_log(bench.history), [Answering("c-fact-2")]).equal


def test_recovery_completes_it_in_its_conversation() -> None:
    bench = Bench([Answering()])
    bench.fact(Poked(n=1))
    bench.fact(Poked(n=2))
    for cut in range(2, len(bench.history) + 1):
        completed = refolded(bench.actors, bench.history[:cut]).complete("").events
        assert [(event.id, event.correlation) for event in completed] == [
            (event.id, event.correlation) for event in bench.history[cut:]
        ]


def test_a_conversation_whose_name_is_too_long_for_a_line_halts_who_names_it() -> None:
    bench = Bench([Answering("x" * (TEXT_BYTES_MAX + 1))])
    bench.fact(Poked(n=2))
    assert bench.types() == ["toy.poked", "actor.halted"]
