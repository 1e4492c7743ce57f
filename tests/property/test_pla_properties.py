"""Any line, any device, any operator, a brain that proposes what it is told and an actor that forges: nothing is typed
that nobody approved, nothing twice, nothing after a kill, and what cannot be known is said.

The laws are those of the simulation; here the device is a model, and what happens is drawn and shrinks when one fails.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.pla.hid import actor as hid
from pmagent.actors.pla.hid import arming as hid_arming
from pmagent.actors.pla.hid import execution as hid_execution
from pmagent.actors.pla.hid import tripping
from pmagent.actors.pla.hid.state import HidState
from pmagent.actors.pla.warden import actor as warden
from pmagent.actors.pla.warden import approvals, modes
from pmagent.actors.pla.warden.state import WardenState
from pmagent.contracts.effect import EffectRefused
from pmagent.contracts.hid import HidCommitRequested, HidOutcomeUnknown, HidPrepareRequested
from pmagent.contracts.oa import OaPermitGranted
from pmagent.contracts.payload import Correlated
from pmagent.contracts.pla import digest
from pmagent.contracts.pla_events import PlaExecuted, PlaProposalClosed, PlaSessionEnded
from pmagent.events.event import Event
from pmagent.replay.areas.invariants_pla import check_pla, check_pla_ended, check_pla_idle
from pmagent.replay.replayer import replay_log
from pmagent.replay.simulation.world import Violation, require
from tests.support.cases import each
from tests.support.effort import examples
from tests.support.pla_random import BREAKABLE, FAILURES, STEPS, WAYS, Press
from tests.support.recorded import stored_log

OFTEN = [*STEPS, *["type"] * 6, *["ready", "propose", "approve", "wait"] * 2]
LENGTHS = [0, 0, 0, 1, 2, 5]
Step = tuple[str, int, list[str]]

steps = st.lists(
    st.tuples(st.sampled_from(OFTEN), st.integers(0, 999), st.lists(st.sampled_from(WAYS), max_size=5)),
    min_size=1, max_size=20,
)  # fmt: skip


def pressed(taken: list[Step]) -> Press:
    """The desk after these steps, held to the laws."""
    press = Press()
    for what, number, ways in taken:
        press.ways += ways
        press.do(what, number)
    check(press)
    return press


def check(press: Press) -> None:
    """Every law holds of the history so far. Raises Violation."""
    check_pla(press.history)
    check_typed(press)


def check_typed(press: Press) -> None:
    """The device typed what the link ordered, once, and the link ordered what was permitted. Raises Violation."""
    every = press.of(HidCommitRequested)
    orders = {event.data.execution_id: event.data for event in every if event.actor == "hid"}
    require(len(orders) == sum(event.actor == "hid" for event in every), "an execution was ordered twice")
    refused = {event.data.request for event in press.of(EffectRefused)}
    require({event.position for event in every if event.actor != "hid"} <= refused, "a forged order was let through")
    for name, order in orders.items():
        grant = press.history[order.permit - 1].data
        require(isinstance(grant, OaPermitGranted), f"{name} was ordered without a permit")
        permitted = (grant.subject, grant.uses, grant.holder) == (f"hid:{name}:{order.digest}", 1, "hid")
        require(permitted, f"{name} was ordered with the permit of another")
    for event in press.of(HidPrepareRequested):
        asked = event.data
        require(asked.masked or digest(asked.action) == asked.digest, f"{asked.execution_id} is of other bytes")
    typed = Counter(one.execution_id for one in press.pretended.typed)
    for one in press.pretended.typed:
        order = orders[one.execution_id]
        require((order.digest, order.boot_id) == (one.digest, one.boot), f"{one.execution_id} was typed otherwise")
        require(typed[one.execution_id] == 1, f"{one.execution_id} was typed twice")
    for event in press.of(PlaExecuted):
        name, outcome = event.data.execution_id, event.data.outcome
        require((outcome != "not_executed") == (name in typed), f"{name}: {outcome}, and typed {typed[name]} times")


def check_rest(press: Press) -> None:
    """Everything has come to its end, and that end is told. Raises Violation."""
    check(press)
    check_pla_ended(press.history)
    check_idle(press)


def check_idle(press: Press) -> None:
    """Nobody waits for anything. Raises Violation."""
    check_pla_idle(press.engine.states)
    require(not press.engine.effects.open, "an effect has no end")


def all_rest(seeds: range) -> None:
    """Every law holds of these histories, to their ends. Raises Violation."""
    for seed in seeds:
        press = pressed(drawn(seed))
        press.rest()
        check_rest(press)


def drawn(seed: int) -> list[Step]:
    """Steps without Hypothesis, where many are needed fast."""
    chance = random.Random(seed)
    return [
        (chance.choice(OFTEN), chance.randrange(1000), [chance.choice(WAYS) for _ in range(chance.choice(LENGTHS))])
        for _ in range(20)
    ]


@given(steps)
@settings(max_examples=examples(150), deadline=None)
def test_whatever_happens_only_what_was_approved_is_typed_and_its_end_is_told(taken: list[Step]) -> None:
    press = pressed(taken)
    press.rest()
    check_rest(press)
    replayed = replay_log(stored_log(press.history), press.actors)
    assert (replayed.stopped, replayed.divergences) == ("", [])


@each("seeds", [range(150), range(150, 300)])
def test_the_laws_hold_for_many_histories(seeds: range) -> None:
    all_rest(seeds)


def test_what_is_drawn_leads_to_every_kind_of_end() -> None:
    """It is not all refused at the door."""
    ends: set[str] = set()
    typed = forged = 0
    for seed in range(60):
        press = pressed(drawn(seed))
        ends |= {event.data.outcome for event in press.of(PlaExecuted) + press.of(PlaProposalClosed)}
        ends |= {"unknown" for _ in press.of(HidOutcomeUnknown)}
        typed += len(press.pretended.typed)
        forged += sum(event.actor == "hand" for event in press.of(HidCommitRequested))
    assert ends >= {
        "done", "aborted", "not_executed", "unknown", "executed", "rejected", "expired", "withdrawn", "recorded"
    }  # fmt: skip
    assert typed > 50
    assert forged > 3


def test_actors_that_fail_let_nothing_be_typed_that_was_not_approved_and_come_to_rest() -> None:
    """Each may be halted on anything, and is let go on some time later."""
    for seed in range(160):
        press, chance = Press(), random.Random(seed)
        for what, number, ways in drawn(seed):
            press.ways += ways
            press.do(what, number)
            if chance.randrange(3) == 0:
                press.do(chance.choice([*FAILURES]), chance.randrange(1000))
        press.rest()
        check_typed(press)
        check_idle(press)


def test_what_ends_while_the_warden_is_halted_is_told_when_it_goes_on() -> None:
    press = Press()
    press.mute = {HidCommitRequested}
    press.do("type", 4)
    press.do("end", 0)
    press.do("break", BREAKABLE.index("warden"))
    press.do("observe", 0)
    press.mute = set()
    press.go()
    assert "warden" in press.engine.halted
    assert [event.data.outcome for event in press.of(PlaExecuted)] == ["not_executed"]  # it was disarmed before
    assert not press.of(PlaProposalClosed)
    press.do("resume", 0)
    assert [event.data.outcome for event in press.of(PlaProposalClosed)] == ["not_executed"]
    assert [event.data.reason for event in press.of(PlaSessionEnded)] == ["ended by alice"]


# --- the laws can fail ---------------------------------------------------------------------------------------------

Plant = Callable[[pytest.MonkeyPatch], None]


def _changed_bytes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(approvals, "_differs", lambda *_: None)


def _approved_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(approvals, "_stands", lambda *_: None)


def _believes_the_warden(patch: pytest.MonkeyPatch) -> None:
    """Whatever action stands in the request is typed."""
    patch.setattr(hid_execution, "digest", lambda _: "")
    real = hid_execution._unapproved
    patch.setattr(
        hid_execution, "_unapproved",
        lambda asked, approved, now: "" if "not the one" in (told := real(asked, approved, now)) else told,
    )  # fmt: skip


def _expiry_is_nothing(patch: pytest.MonkeyPatch) -> None:
    def lapsed(state: HidState, execution: Any, now: str) -> str:
        return real(state, execution, min(now, execution.expires_at[:-1]))

    real = hid_execution._lapsed
    patch.setattr(hid_execution, "_lapsed", lapsed)


def _orders_again(patch: pytest.MonkeyPatch) -> None:
    """A lost answer to the order, and it is given once more."""

    def on_commit(state: HidState, event: Event, execution: Any) -> Any:
        if event.type == "hid.silent":
            order = HidCommitRequested(
                permit=event.data.request, boot_id=execution.boot_id, execution_id=execution.execution_id,
                digest=execution.digest, action_class=execution.action_class,
            )  # fmt: skip
            return iter([Correlated(order, execution.session_id)])
        return real(state, event, execution)

    real = hid_execution._on_commit
    patch.setattr(hid_execution, "_on_commit", on_commit)


def _unknown_is_not_executed(patch: pytest.MonkeyPatch) -> None:
    def unknown(state: HidState, _: Any, why: str) -> Any:
        return iter([tripping.not_executed(state, "gone", why)])

    patch.setattr(hid_execution, "_unknown", unknown)


def _running_is_done(patch: pytest.MonkeyPatch) -> None:
    def over(execution: Any, _: bool, done: int, of: int, code: str) -> Any:
        return real(execution, whole=True, done=done, of=of, code=code)

    real = hid_execution._over
    patch.setattr(hid_execution, "_over", over)


def _kill_is_nothing(patch: pytest.MonkeyPatch) -> None:
    def tripped(state: HidState, code: str, text: str) -> Any:
        return iter(()) if code == "killed" else real(state, code, text)

    real = tripping.tripped
    for module in (hid, hid_arming, hid_execution):
        patch.setattr(module, "tripped", tripped)


def _mode_never_falls(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(modes, "lowered", lambda *_, **__: iter(()))


def _two_steps_up(patch: pytest.MonkeyPatch) -> None:
    def objections(state: WardenState, to: Any) -> list[tuple[str, str]]:
        return [] if to == "EXECUTE" and state.device is not None and state.mode == "OBSERVE" else real(state, to)

    real = modes._objections
    patch.setattr(modes, "_objections", objections)


def _a_pause_is_nothing(patch: pytest.MonkeyPatch) -> None:
    def objections(state: WardenState, to: Any) -> list[tuple[str, str]]:
        return real(msgspec.structs.replace(state, paused_by=""), to)

    real = modes._objections
    patch.setattr(modes, "_objections", objections)


def _credentials_are_nothing(patch: pytest.MonkeyPatch) -> None:
    def approving(state: WardenState, event: Event, view: Any, asked: Any) -> Any:
        plain = msgspec.structs.replace(view.proposed, credential_warning=False)
        return real(state, event, msgspec.structs.replace(view, proposed=plain), asked)

    real = approvals._approving
    patch.setattr(approvals, "_approving", approving)


def _one_person_is_two(patch: pytest.MonkeyPatch) -> None:
    def approving(state: WardenState, event: Event, view: Any, asked: Any) -> Any:
        plain = msgspec.structs.replace(view.proposed, two_persons=False)
        return real(state, event, msgspec.structs.replace(view, proposed=plain), asked)

    real = approvals._approving
    patch.setattr(approvals, "_approving", approving)


def _forgets_the_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(warden, "_concluded", lambda *_: iter(()))


def _answers_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(hid_arming, "on_disarmed", lambda *_: iter(()))


PLANTS: list[tuple[Plant, str]] = [
    (_changed_bytes, "the operator decided otherwise"),
    (_approved_twice, "it is decided"),
    (_believes_the_warden, "is of other bytes"),
    (_expiry_is_nothing, "the approval has expired"),
    (_orders_again, "ordered twice"),
    (_unknown_is_not_executed, "not_executed, and typed 1 times"),
    (_running_is_done, "done, and the device said ABORTED"),
    (_kill_is_nothing, "the kill switch was hit"),
    (_mode_never_falls, "and the mode is EXECUTE"),
    (_two_steps_up, "it skips a mode"),
    (_a_pause_is_nothing, "effects are paused"),
    (_credentials_are_nothing, "nobody acknowledged the credentials"),
    (_one_person_is_two, "by who asked for it"),
    (_forgets_the_end, "is not closed"),
    (_answers_nothing, "the HID link waits for something"),
]
"""A bug, and the law that it breaks."""


@pytest.mark.parametrize(("plant", "law"), PLANTS, ids=[plant.__name__.strip("_") for plant, _ in PLANTS])
def test_a_planted_bug_is_caught_by_its_law(plant: Plant, law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(Violation, match=law):
        all_rest(range(400))
