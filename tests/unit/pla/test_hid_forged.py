"""What nobody approved, or was approved otherwise, is not begun."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pmagent.contracts.hid import HidCommitRequested, HidPrepareRequested
from pmagent.contracts.payload import Payload
from pmagent.contracts.pla import TypeText, digest
from pmagent.contracts.pla_events import (
    PlaExecuted,
    PlaExecutionRequested,
    PlaViolation,
)
from pmagent.events.event import Event
from tests.support.orchestra import kernel
from tests.support.pla import ALICE, BOOT, TEXT, Brain, Desk
from tests.support.toys import Poked


class Forger:
    """Asks the link for executions that nobody approved."""

    name = "forger"
    hears: frozenset[type[msgspec.Struct]] = frozenset((Poked, PlaExecutionRequested))

    def initial(self) -> Poked:
        """Nothing."""
        return Poked(n=0)

    def evolve(self, state: Poked, _: Event) -> Poked:
        """Nothing."""
        return state

    def decide(self, _: Poked, event: Event) -> Iterable[Payload]:
        """Forge."""
        if isinstance(event.data, Poked):
            yield PlaExecutionRequested(
                session_id="s",
                proposal_id="prop-forged-1",
                execution_id="exec-forged-1",
                approval=1,
                digest=digest(TEXT),
                action=TEXT,
                masked=False,
                operator_id=ALICE,
                decided_at="now",
            )
            yield HidPrepareRequested(
                boot_id=BOOT,
                execution_id="exec-forged-1",
                proposal_id="p",
                digest=digest(TEXT),
                action=TEXT,
                masked=False,
                operator_id=ALICE,
                decided_at="now",
            )
            yield HidCommitRequested(
                permit=1, boot_id=BOOT, execution_id="exec-forged-1", digest=digest(TEXT), action_class="feature_work"
            )
        elif event.data.execution_id != "exec-forged-1":  # a second execution of what the warden asks for
            yield event.data


def test_what_nobody_approved_is_a_violation_and_is_not_begun() -> None:
    desk = Desk([Brain(), Forger()]).ready()
    desk.fact(Poked(n=1))
    desk.go()
    told = desk.last(PlaViolation)
    assert (told.kind, told.severity) == ("missing_approval", "error")
    assert [event.actor for event in desk.of(HidPrepareRequested)] == ["forger"]
    (order,) = desk.of(HidCommitRequested)
    assert not desk.engine.effects.is_open(order.position)
    assert "effect.refused" in desk.types(), "the gate stood in its way"
    assert desk.of(PlaExecuted) == []


def test_an_execution_that_is_asked_for_again_by_another_is_a_violation() -> None:
    desk = Desk([Brain(), Forger()]).ready()
    desk.decide(desk.propose())
    assert [event.data.kind for event in desk.of(PlaViolation)] == ["missing_approval"]
    assert len(desk.of(HidCommitRequested)) == 1
    assert desk.last(PlaExecuted).outcome == "done"


def test_a_masked_action_is_bound_by_its_digest_alone() -> None:
    desk = Desk().ready()
    proposed = desk.propose(
        TypeText(text="token ***REDACTED***"), masked=True, digest="ab" * 32, findings=["token"], policy="acknowledge"
    )
    desk.advance(6)
    desk.decide(proposed, acknowledged=True)
    assert desk.last(HidPrepareRequested).digest == "ab" * 32
    assert desk.last(HidPrepareRequested).masked


def test_a_proposal_that_lies_about_its_digest_is_not_executed() -> None:
    desk = Desk().ready()
    desk.decide(desk.propose(digest="ab" * 32))
    assert desk.last(PlaExecuted).code == "missing_approval"
    assert desk.last(PlaViolation).text == "the action is not the one that was approved"
    assert desk.of(HidPrepareRequested) == []


def test_a_permit_that_is_refused_ends_the_execution() -> None:
    desk = Desk().ready()
    held: list[Event] = []
    obedient = desk.device

    def hold(event: Event) -> msgspec.Struct | None:
        if isinstance(event.data, HidPrepareRequested):
            held.append(event)
            return None
        return obedient(event)

    desk.device = hold
    desk.decide(desk.propose())
    desk.fact(kernel("DEGRADED"))
    assert desk.warden.mode == "EXECUTE", "only BLOCKED lowers it"
    desk.finish(held[0].position, obedient(held[0]) or Poked(n=1))
    ended = desk.last(PlaExecuted)
    assert (ended.outcome, ended.code) == ("not_executed", "not_permitted")
    assert desk.of(HidCommitRequested) == []
