"""The permits that count: the authority that one actor of an engine bears."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.authority import NOBODY, authority_of
from pmagent.actors.oa.policy import AUTHORITY
from pmagent.actors.registry import all_actors
from pmagent.contracts.effect import EffectRefused
from pmagent.contracts.oa import OaPermitGranted, OaPermitRequested
from pmagent.contracts.payload import Payload
from pmagent.events.event import Event
from tests.support.toys import Bench, Grantor, GrantorState, Poked, SendRequested, Toy, ToyState, permit_for, worker


class Usurper(Toy):
    """Grants each permit that is asked for, in its own name."""

    def decide(self, _: ToyState, event: Event) -> Iterable[Payload]:
        return Grantor().decide(GrantorState(), event)


def test_a_permit_that_another_than_the_grantor_grants_is_none() -> None:
    usurper = Usurper("usurper", [OaPermitRequested])
    several: list[list[AnyActor]] = [[usurper], [usurper, Grantor()]]
    for actors in several:
        bench = Bench(actors)
        bench.fact(permit_for("worker"))
        granted = [event.position for event in bench.of(OaPermitGranted) if event.actor == "oa"]
        assert len(bench.of(OaPermitGranted)) == len(actors)
        assert [*bench.engine.states["gate"].permits] == granted


def test_without_a_grantor_nothing_outward_starts() -> None:
    bench = Bench([worker(SendRequested(n=1, permit=1))])
    assert bench.fact(Poked(n=1)).starts == []
    assert len(bench.of(EffectRefused)) == 1
    assert authority_of(bench.actors) is NOBODY


def test_one_actor_grants_and_in_its_own_name() -> None:
    class Other(Grantor):
        name = "other"

    for actors in ([Other()], [Grantor(), Other()], [Grantor(), Grantor()]):
        with pytest.raises(ValueError, match="grants permits"):
            Bench(actors)


def test_the_oa_grants() -> None:
    assert authority_of(all_actors()) is AUTHORITY
