"""The warden's memory of its own decisions and of others' words: of whose they are alone, of nobody else's."""

from __future__ import annotations

from typing import Any

from pmagent.actors.pla.warden.actor import Warden
from pmagent.actors.pla.warden.state import PROPOSALS_KEPT, WardenState, held
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.control import EffectsResumed
from pmagent.contracts.effect import ActorResumed, EffectCancelRequested
from pmagent.contracts.hid import HidLinked, HidOutcomeUnknown, HidPinged, HidReported
from pmagent.contracts.pla import TypeText, digest
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaArmAnswered,
    PlaEndRequested,
    PlaExecuted,
    PlaExecutionRequested,
    PlaModeChanged,
    PlaProposalClosed,
    PlaRejected,
    PlaSessionBegan,
    PlaSessionEnded,
)
from tests.support.cases import each
from tests.support.orchestra import kernel
from tests.support.warden_alone import (
    BOOT,
    BUSY,
    DEVICE,
    EMPTY,
    EXEC,
    EXECUTING,
    LOW,
    NAME,
    NOW,
    OPEN_TOO,
    OTHER_BOOT,
    PAUSED,
    PROPOSED,
    READY,
    SESSION,
    STARTED,
    TEXT,
    UNTIL,
    VIEW,
    halted,
    happened,
    kinds,
    made,
    remembered,
    replace,
)

# --- what is remembered of its own decisions ------------------------------------------------------------------------

APPROVAL = PlaApproved(
    request=41, session_id=SESSION, proposal_id=NAME, digest=digest(TEXT), operator_id="bob", channel="cli",
    expires_at=UNTIL, executes=True,
)  # fmt: skip
DECIDED = {"decided_by": "bob", "channel": "cli", "decided_at": NOW}
TAKEN = {**DECIDED, "approval": 41, "approval_expires_at": UNTIL, "outcome": "approved"}
ORDER = PlaExecutionRequested(
    session_id=SESSION, proposal_id=NAME, execution_id="exec-0002", approval=41, digest=digest(TEXT), action=TEXT,
    masked=False, operator_id="bob", decided_at=NOW,
)  # fmt: skip
REJECTION = PlaRejected(
    request=41, session_id=SESSION, proposal_id=NAME, digest=digest(TEXT), operator_id="bob", channel="cli", reason="x"
)
CLOSING = PlaProposalClosed(session_id=SESSION, proposal_id=NAME, digest="", outcome="rejected", why="x")


@each(
    "data, changes",
    [
        (APPROVAL, {**TAKEN, "stands": "executing"}),
        (replace(APPROVAL, executes=False), {**TAKEN, "stands": "open"}),
        (ORDER, {"execution_id": "exec-0002"}),
        (REJECTION, DECIDED),
        (CLOSING, {"stands": "closed", "outcome": "rejected", "why": "x", "closed_at": NOW}),
        (TimerRequested(at=UNTIL, name=NAME), {"timer": 41}),
    ],
)
def test_what_it_decided_on_a_proposal_stands(data: Any, changes: dict[str, Any]) -> None:
    assert remembered(READY, data).proposals == {NAME: replace(VIEW, **changes)}
    named = "name" if isinstance(data, TimerRequested) else "proposal_id"
    assert remembered(READY, replace(data, **{named: "prop-0002"})) == READY


def test_a_session_begins_anew_and_ends_whole() -> None:
    ending = replace(EMPTY, ending="x", ending_failed=True)
    began = remembered(ending, PlaSessionBegan(session_id="pla-2", operator_id="eve", mode="OBSERVE"))
    fresh = {"ending": "", "ending_failed": False}
    assert began == replace(EMPTY, session_id="pla-2", operator_id="eve", began_at=NOW, **fresh)
    ended = remembered(ending, PlaSessionEnded(session_id=SESSION, state="complete", reason="x"))
    assert ended == replace(EMPTY, session_id="", operator_id="", began_at="", **fresh)


def test_with_the_mode_changes_what_typing_counts_as() -> None:
    changed = PlaModeChanged(
        session_id=SESSION, previous="SUGGEST", mode="EXECUTE", who="ada", channel="cli", code="requested", why="x",
        action_class="migrations",
    )  # fmt: skip
    assert remembered(LOW, changed) == replace(LOW, mode="EXECUTE", action_class="migrations")


# --- what is remembered of others -----------------------------------------------------------------------------------

ARMED = PlaArmAnswered(request=40, session_id=SESSION, armed=True, accepted=True)
DONE = PlaExecuted(
    session_id=SESSION, proposal_id=NAME, execution_id=EXEC, action_type="TYPE_TEXT", outcome="done", done=4, of=4,
    code="DONE", why="x",
)  # fmt: skip
NOBODY_KNOWS = HidOutcomeUnknown(
    session_id=SESSION, proposal_id=NAME, execution_id=EXEC, action_type="TYPE_TEXT", of=4, why="x"
)
RESUMED = EffectsResumed(request=40, since=30, held=0, operator_id="bob", channel="console")
PAUSED_STATE = replace(EMPTY, paused_by="bob")


@each(
    "state, data, whose",
    [
        (EMPTY, PROPOSED, "brain"),
        (replace(EMPTY, armed=False), ARMED, "hid"),
        (BUSY, DONE, "hid"),
        (BUSY, NOBODY_KNOWS, "hid"),
        (EMPTY, PAUSED, "gate"),
        (PAUSED_STATE, RESUMED, "gate"),
        (EMPTY, PlaSessionBegan(session_id="pla-2", operator_id="ada", mode="OBSERVE"), "warden"),
        (EMPTY, PlaSessionEnded(session_id=SESSION, state="complete", reason="x"), "warden"),
        (LOW, PlaModeChanged(session_id=SESSION, previous="SUGGEST", mode="EXECUTE", who="ada", channel="cli",
                             code="requested", why="x"), "warden"),
        (READY, APPROVAL, "warden"),
        (BUSY, CLOSING, "warden"),
    ],
)  # fmt: skip
def test_each_word_is_believed_of_whose_it_is_alone(state: WardenState, data: Any, whose: str) -> None:
    assert remembered(state, data, whose) != state
    assert remembered(state, data, "intruder") == state
    assert remembered(state, data, whose, "fact") == state


@each("data", [DONE, NOBODY_KNOWS])
def test_only_of_the_link_an_execution_is_told_as_over(data: Any) -> None:
    assert PlaProposalClosed in kinds(BUSY, happened(data, "hid", "decision"))
    told_before = replace(BUSY, proposals={NAME: replace(EXECUTING, ended="executed")})
    for state in (BUSY, told_before):
        assert made(state, happened(data, "intruder", "decision")) == []


@each("changes", [{"proposal_id": "prop-0002"}, {"execution_id": "exec-0002"}])
@each("data", [DONE, NOBODY_KNOWS])
def test_the_end_of_another_execution_is_not_this_ones(data: Any, changes: Any) -> None:
    assert made(BUSY, happened(replace(data, **changes), "hid", "decision")) == []


def test_what_ended_while_the_warden_was_halted_is_concluded_and_what_did_not_is_not() -> None:
    resumed = happened(ActorResumed(name="warden"))
    over = replace(BUSY, proposals={NAME: replace(EXECUTING, ended="executed")}, mode="OBSERVE")
    assert kinds(over, resumed) == {PlaProposalClosed, EffectCancelRequested}
    assert made(replace(BUSY, mode="OBSERVE"), resumed) == []
    assert made(over, happened(ActorResumed(name="brain"))) == []


@each("name", ["orchestrator", "warden"])
def test_who_is_halted_stays_so_until_an_operator_says_otherwise(name: str) -> None:
    after = Warden().evolve(EMPTY, halted(name))
    assert after.halted == [name]
    assert remembered(after, ActorResumed(name=name), "intruder").halted == [name]
    assert remembered(after, ActorResumed(name="other"), "operator", "fact").halted == [name]
    assert remembered(after, ActorResumed(name=name), "operator", "fact").halted == []


NO_PLACE: dict[str, dict[str, Any]] = {
    "no session": {"session_id": ""},
    "another session": {"session_id": "pla-2"},
    "an end": {"ending": "ended by ada"},
    "mode": {"mode": "OBSERVE"},
    "another is open": {"proposals": {"prop-0002": VIEW}},
    "another is carried out": {"proposals": {"prop-0002": EXECUTING}},
    "closed before": {"proposals": {NAME: replace(VIEW, stands="closed", outcome="expired")}},
}


@each("lack", ["", *NO_PLACE])
def test_without_one_a_proposal_is_not_held(lack: str) -> None:
    state = replace(EMPTY, **NO_PLACE.get(lack, {}))
    event = happened(PROPOSED, "brain", "decision")
    after = Warden().evolve(state, event)
    assert (after != state) == (not lack)
    assert (TimerRequested in kinds(state, event)) == (not lack)


def test_a_proposal_of_no_session_is_not_held_while_there_is_none() -> None:
    state = replace(EMPTY, session_id="")
    assert remembered(state, replace(PROPOSED, session_id=""), "brain") == state


@each("actor", ["intruder", "brain"])
def test_a_proposal_that_is_held_is_not_taken_anew(actor: str) -> None:
    other = replace(PROPOSED, action=TypeText(text="rm"), digest=digest(TypeText(text="rm")))
    assert remembered(READY, other, actor) == READY
    assert made(READY, happened(other, actor, "decision")) == []


def test_the_timer_of_one_proposal_closes_that_one_while_it_is_open() -> None:
    state = replace(EMPTY, proposals=OPEN_TOO)
    fired = [made(state, happened(TimerFired(request=at, name="x"))) for at in (32, 42, 43)]
    assert [[one.proposal_id for one in found] for found in fired] == [[], ["prop-0002"], []]


def test_a_proposal_leaves_the_state_only_when_it_is_closed() -> None:
    views = [replace(VIEW, proposed=replace(PROPOSED, proposal_id=f"prop-{n}")) for n in range(PROPOSALS_KEPT + 1)]
    state = EMPTY
    for view in views:
        state = held(state, view)
    assert len(state.proposals) == PROPOSALS_KEPT + 1
    state = held(state, replace(views[7], stands="closed"))
    assert "prop-7" not in state.proposals
    assert len(state.proposals) == PROPOSALS_KEPT


# --- the device -----------------------------------------------------------------------------------------------------


def reported(kill: Any, boot: str = BOOT) -> HidReported:
    return HidReported(boot_id=boot, mode="EXECUTE", led_state=True, kill_switch_state=kill)


def pinged(kill: Any, boot: str = BOOT, *, armed: bool = True) -> HidPinged:
    return HidPinged(request=40, boot_id=boot, armed=armed, kill_switch_state=kill)


@each("told", [reported, pinged])
@each("before", ["ARMED", "UNKNOWN", "DISABLED"])
@each("says", ["ARMED", "UNKNOWN", "DISABLED"])
@each("boot", [BOOT, OTHER_BOOT])
def test_a_kill_is_taken_back_by_no_report_and_another_boots_tell_nothing(
    told: Any, before: Any, says: Any, boot: str
) -> None:
    state = replace(EMPTY, device=replace(DEVICE, kill_switch_state=before))
    device = remembered(state, told(says, boot), "line", "fact").device
    assert device is not None
    assert device.kill_switch_state == (before if before == "DISABLED" or boot != BOOT else says)


@each("data", [reported("ARMED"), pinged("ARMED")])
def test_who_is_not_linked_tells_nothing(data: Any) -> None:
    state = replace(EMPTY, device=None, armed=False)
    assert remembered(state, data, "line", "fact") == state


@each("before", [True, False])
@each("says", [True, False])
def test_a_ping_ends_arming_and_never_begins_it(before: bool, says: bool) -> None:
    after = remembered(replace(EMPTY, armed=before), pinged("ARMED", armed=says), "line", "fact")
    assert after.armed == (before and says)


def test_a_device_that_is_linked_is_what_it_says_and_is_not_armed() -> None:
    linked = HidLinked(
        device_id="device-1", boot_id=OTHER_BOOT, port="/dev/pts/9", contract_version="1.0.0", contract_hash="0" * 64,
        firmware_version="1.0.0", reset_reason="POWER_ON", kill_switch_state="DISABLED", compatible=False, text="x",
    )  # fmt: skip
    after = remembered(EMPTY, linked, "line", "fact")
    assert not after.armed
    assert after.device == replace(DEVICE, boot_id=OTHER_BOOT, compatible=False, text="x", kill_switch_state="DISABLED")


@each("mode", ["OBSERVE", "SUGGEST", "EXECUTE"])
@each("armed", [True, False])
def test_armed_is_what_the_link_says_of_it_in_execute(mode: Any, armed: bool) -> None:
    state = replace(EMPTY, mode=mode, armed=False)
    assert remembered(state, replace(ARMED, armed=armed), "hid").armed == (armed and mode == "EXECUTE")


@each("mode", ["OBSERVE", "SUGGEST", "EXECUTE"])
@each("armed", [True, False])
def test_arming_does_not_outlast_execute_and_does_not_come_with_it(mode: Any, armed: bool) -> None:
    changed = PlaModeChanged(
        session_id=SESSION, previous="SUGGEST", mode=mode, who="ada", channel="cli", code="requested", why="x"
    )
    assert remembered(replace(EMPTY, armed=armed), changed).armed == (armed and mode == "EXECUTE")


# --- the end of a session -------------------------------------------------------------------------------------------

ENDS = {
    "operator": happened(PlaEndRequested(operator_id="ada", channel="cli")),
    "start": happened(STARTED),
    "own halt": happened(ActorResumed(name="warden")),
}


def test_an_operators_wish_to_end_is_remembered_until_it_is_known_what_was_typed() -> None:
    assert remembered(BUSY, ENDS["operator"].data, "operator", "fact").ending == "ended by ada"


@each("news", ENDS)
@each("state", [EMPTY, BUSY])
def test_a_session_is_not_over_while_it_is_not_known_what_was_typed(news: str, state: WardenState) -> None:
    assert (PlaSessionEnded in kinds(replace(state, ending="x"), ENDS[news])) == (state is EMPTY)


def test_a_session_that_ends_is_over_with_what_was_typed_and_another_is_not() -> None:
    done = happened(DONE, "hid", "decision")
    assert PlaSessionEnded in kinds(replace(BUSY, ending="x"), done)
    assert PlaSessionEnded not in kinds(BUSY, done)
    assert made(EMPTY, happened(kernel("NORMAL"))) == []
