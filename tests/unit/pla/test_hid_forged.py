"""An action that nobody approved, or that was approved otherwise, is not begun."""

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
from tests.support.pla import ALICE, BOOT, TEXT, Brain, PlaHarness
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
                session_id="s", proposal_id="prop-forged-1", execution_id="exec-forged-1", approval=1,
                digest=digest(TEXT), action=TEXT, masked=False, operator_id=ALICE, decided_at="now",
            )
            yield HidPrepareRequested(
                boot_id=BOOT, execution_id="exec-forged-1", proposal_id="p", digest=digest(TEXT), action=TEXT,
                masked=False, operator_id=ALICE, decided_at="now",
            )
            yield HidCommitRequested(
                permit=1, boot_id=BOOT, execution_id="exec-forged-1", digest=digest(TEXT), action_class="feature_work"
            )
        elif event.data.execution_id != "exec-forged-1":  # a second execution of what the warden asks for
            yield event.data


def test_what_nobody_approved_is_a_violation_and_is_not_begun() -> None:
    harness = PlaHarness([Brain(), Forger()]).ready()
    harness.fact(Poked(n=1))
    harness.go()
    told = harness.last(PlaViolation)
    assert (told.kind, told.severity) == ("missing_approval", "error")
    assert [event.actor for event in harness.of(HidPrepareRequested)] == ["forger"]
    (order,) = harness.of(HidCommitRequested)
    assert not harness.engine.effects.is_open(order.position)
    assert "effect.refused" in harness.types(), "the gate stood in its way"
    assert harness.of(PlaExecuted) == []


def test_an_execution_that_is_asked_for_again_by_another_is_a_violation() -> None:
    harness = PlaHarness([Brain(), Forger()]).ready()
    harness.decide(harness.propose())
    assert [event.data.kind for event in harness.of(PlaViolation)] == ["missing_approval"]
    assert len(harness.of(HidCommitRequested)) == 1
    assert harness.last(PlaExecuted).outcome == "done"


def test_a_masked_action_is_bound_by_its_digest_alone() -> None:
    harness = PlaHarness().ready()
    proposed = harness.propose(
        TypeText(text="token ***REDACTED***"), masked=True, digest="ab" * 32, findings=["token"], policy="acknowledge"
    )
    harness.advance(6)
    harness.decide(proposed, acknowledged=True)
    assert harness.last(HidPrepareRequested).digest == "ab" * 32
    assert harness.last(HidPrepareRequested).masked


def test_a_proposal_that_lies_about_its_digest_is_not_executed() -> None:
    harness = PlaHarness().ready()
    harness.decide(harness.propose(digest="ab" * 32))
    assert harness.last(PlaExecuted).code == "missing_approval"
    assert harness.last(PlaViolation).text == "the action is not the one that was approved"
    assert harness.of(HidPrepareRequested) == []


def test_a_permit_that_is_refused_ends_the_execution() -> None:
    harness = PlaHarness().ready()
    held: list[Event] = []
    obedient = harness.device

    def hold(event: Event) -> msgspec.Struct | None:
        if isinstance(event.data, HidPrepareRequested):
            held.append(event)
            return None
        return obedient(event)

    harness.device = hold
    harness.decide(harness.propose())
    harness.fact(kernel("DEGRADED"))
    assert harness.warden.mode == "EXECUTE", "only BLOCKED lowers it"
    harness.finish(held[0].position, obedient(held[0]) or Poked(n=1))
    ended = harness.last(PlaExecuted)
    assert (ended.outcome, ended.code) == ("not_executed", "not_permitted")
    assert harness.of(HidCommitRequested) == []
