"""Any line, any device, any operator, a brain that proposes what it is told and an actor that forges: nothing is typed
that nobody approved, nothing twice, nothing after a kill, and what cannot be known is said.

The laws are those of the simulation; here the device is a model, and what happens is drawn and shrinks when one fails.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.pla.hid import actor as hid
from pmagent.actors.pla.hid import arming as hid_arming
from pmagent.actors.pla.hid import execution as hid_execution
from pmagent.actors.pla.warden import actor as warden
from pmagent.actors.pla.warden import approvals, modes
from pmagent.contracts.effect import EffectRefused
from pmagent.contracts.hid import HidCommitRequested, HidOutcomeUnknown, HidPrepareRequested
from pmagent.contracts.oa import OaPermitGranted
from pmagent.contracts.pla import digest
from pmagent.contracts.pla_events import PlaExecuted, PlaProposalClosed, PlaSessionEnded
from pmagent.replay.areas.invariants_pla import check_pla, check_pla_ended, check_pla_idle
from pmagent.replay.replayer import replay_log
from pmagent.replay.simulation.world import Violation, require
from tests.support.effort import examples, rounds, some
from tests.support.pla_random import BREAKABLE, FAILURES, STEPS, WAYS, Press
from tests.support.planted import Planted, plant_all
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


def test_the_laws_hold_for_many_histories() -> None:
    all_rest(range(rounds(300, 100)))


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
    for seed in range(rounds(160, 60)):
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

AGAIN = """case HidSilent(request=request):
            order = HidCommitRequested(
                permit=request, boot_id=execution.boot_id, execution_id=execution.execution_id,
                digest=execution.digest, action_class=execution.action_class,
            )
            yield Correlated(order, execution.session_id)
        case HidSilent(sent=False, """
"""A lost answer to the order, and it is given once more."""

PLANTED: Planted = {
    "changed bytes": ("the operator decided otherwise", [
        (approvals, "_differs", "if asked.digest == view.proposed.digest:", "if True:"),
    ]),
    "approved twice": ("it is decided", [
        (approvals, "_stands", 'if view.stands != "open" and view.outcome != "expired":', "if False:",
         'if view.stands != "open" or', "if"),
    ]),
    "the link believes the warden": ("is of other bytes", [
        (hid_execution, "_unapproved", "if not asked.masked and digest(asked.action) != asked.digest:", "if False:"),
    ]),
    "an approval does not expire": ("the approval has expired", [
        (hid_execution, "_lapsed", "if now >= execution.expires_at:", "if False:"),
    ]),
    "ordered again": ("ordered twice", [
        (hid_execution, "_on_commit", "case HidSilent(sent=False, ", AGAIN),
    ]),
    "unknown is not executed": ("not_executed, and typed 1 times", [
        (hid_execution, "_unknown", "yield Correlated(unknown, execution.session_id)",
         'yield not_executed(state, "reset", why)'),
    ]),
    "running is done": ("done, and the device said ABORTED", [
        (hid_execution, "_over", 'outcome="done" if whole else "aborted"', 'outcome="done"'),
    ]),
    "a kill is nothing": ("the kill switch was hit", [
        (owner, "tripped", 'if state.mode != "OBSERVE":', 'if code == "killed":\n        return\n    else:')
        for owner in (hid, hid_arming, hid_execution)
    ]),
    "the mode never falls": ("and the mode is EXECUTE", [
        (modes, "lowered", "if MODES.index(state.mode) <= MODES.index(to):", "if True:"),
    ]),
    "two steps up": ("it skips a mode", [
        (modes, "_objections", "if MODES.index(to) > MODES.index(state.mode) + 1:", "if False:"),
    ]),
    "a pause is nothing": ("effects are paused", [(modes, "_objections", "if state.paused_by:", "if False:")]),
    "credentials are nothing": ("nobody acknowledged the credentials", [
        (approvals, "_approving", "if proposed.credential_warning:", "if False:"),
    ]),
    "one person is two": ("by who asked for it", [
        (approvals, "_approving", '(proposed.two_persons or asked.channel == "console") and', "False and"),
    ]),
    "the end is forgotten": ("is not closed", [(warden, "_concluded", "view is not None and view.ended", "False")]),
    "nobody is answered": ("the HID link waits for something", [
        (hid_arming, "on_disarmed", "if correlation is None:", "if True:"),
    ]),
}
"""A bug, and the law that it breaks."""


@pytest.mark.parametrize("bug", some(list(PLANTED), 6))
def test_a_planted_bug_is_caught_by_its_law(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    law, exchanges = PLANTED[bug]
    plant_all(monkeypatch, exchanges)
    with pytest.raises(Violation, match=law):
        all_rest(range(400))
