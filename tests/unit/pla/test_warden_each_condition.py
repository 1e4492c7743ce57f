"""Each condition of the warden by itself: with all of them something is approved, held or raised, and without any one
of them it is not, whatever brain, link and device would have said."""

from __future__ import annotations

from typing import Any

from pmagent.actors.pla.warden.actor import Warden
from pmagent.actors.pla.warden.state import ProposalView, WardenState
from pmagent.contracts.daemon import DaemonStopped
from pmagent.contracts.effect import ActorResumed, EffectCancelRequested
from pmagent.contracts.hid import HidDisarmRequested, HidLost, HidTripped
from pmagent.contracts.pla import digest
from pmagent.contracts.pla_events import (
    FrameSource,
    PlaApproved,
    PlaArmRequested,
    PlaContractBroken,
    PlaDecisionRefused,
    PlaEndRequested,
    PlaExecutionRequested,
    PlaModeAnswered,
    PlaModeChanged,
    PlaModeRequested,
    PlaObserveRequested,
    PlaProposalClosed,
    PlaProposalRequested,
    PlaRejected,
    PlaViolation,
)
from pmagent.events.event import Event
from tests.support.cases import each
from tests.support.orchestra import kernel
from tests.support.warden_alone import (
    ASKED,
    BOOT,
    BUSY,
    DEVICE,
    EMPTY,
    EXECUTING,
    LOW,
    NAME,
    NOW,
    PAUSED,
    PROPOSED,
    READY,
    SESSION,
    SOON,
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

# --- approving ------------------------------------------------------------------------------------------------------


@each("seen", ["EXECUTE", ""])
@each("who", ["ada", "bob"])
def test_with_every_condition_it_is_approved_and_executed(seen: Any, who: str) -> None:
    decided = made(READY, happened(replace(ASKED, seen_mode=seen, operator_id=who)))
    assert [type(one) for one in decided] == [PlaApproved, PlaExecutionRequested]
    approved, asked = decided
    assert (approved.request, asked.approval, approved.executes) == (41, 41, True)
    assert (approved.operator_id, asked.operator_id) == (who, who)
    assert (approved.digest, asked.digest, asked.action, asked.masked) == (digest(TEXT), digest(TEXT), TEXT, False)
    assert approved.expires_at == UNTIL


def with_view(view: ProposalView, **changes: Any) -> dict[str, Any]:
    return {"proposals": {NAME: replace(view, proposed=replace(view.proposed, **changes))}}


LACKS: dict[str, dict[str, Any]] = {
    "unknown": {"proposals": {}},
    "executing": {"proposals": {NAME: EXECUTING}},
    "closed": {"proposals": {NAME: replace(VIEW, stands="closed", outcome="rejected")}},
    "withdrawn": {"proposals": {NAME: replace(VIEW, stands="closed", outcome="expired")}},
    "expired": with_view(VIEW, expires_at=NOW),
    "bytes": with_view(VIEW, digest="ab" * 32),
    "device": {"device": None},
    "contract": {"device": replace(DEVICE, compatible=False)},
    "switch": {"device": replace(DEVICE, kill_switch_state="DISABLED")},
    "switch that nobody knows of": {"device": replace(DEVICE, kill_switch_state="UNKNOWN")},
    "arming": {"armed": False},
    "another": {"proposals": {**READY.proposals, "prop-0000": replace(
        EXECUTING, proposed=replace(PROPOSED, proposal_id="prop-0000")
    )}},
}  # fmt: skip


@each("lack", LACKS)
def test_without_one_it_is_not_approved(lack: str) -> None:
    decided = kinds(replace(READY, **LACKS[lack]), happened(ASKED))
    assert PlaDecisionRefused in decided
    assert not {PlaApproved, PlaExecutionRequested} & decided


@each(
    "event, code",
    [
        (happened(ASKED, time=UNTIL), "expired"),
        (happened(replace(ASKED, digest="ab" * 32)), "digest"),
        (happened(replace(ASKED, digest="")), "digest"),
        (happened(replace(ASKED, seen_mode="SUGGEST")), "changed"),
        (happened(replace(ASKED, proposal_id="prop-0002")), "unknown"),
        (happened(replace(ASKED, operator_id="ada", channel="console")), "self"),
    ],
)
def test_a_decision_on_anything_else_or_too_late_counts_for_nothing(event: Event, code: str) -> None:
    (refused,) = [one for one in made(READY, event) if not isinstance(one, PlaProposalClosed | EffectCancelRequested)]
    assert isinstance(refused, PlaDecisionRefused)
    assert refused.code == code


@each("who, taken", [("ada", False), ("bob", True)])
def test_where_it_takes_two_who_asked_may_not_approve(who: str, taken: bool) -> None:
    state = replace(READY, **with_view(VIEW, two_persons=True))
    assert (PlaApproved in kinds(state, happened(replace(ASKED, operator_id=who)))) == taken


WARNED = {"credential_warning": True, "findings": ["password"]}


@each(
    "proposal, decision, time, taken",
    [
        ({}, {"acknowledged": True}, NOW, True),
        ({}, {}, NOW, False),
        ({"policy": "refuse"}, {"acknowledged": True}, NOW, False),
        ({}, {"acknowledged": True}, SOON, False),
        ({}, {"acknowledged": True}, "2026-11-22T09:00:05.000000Z", True),
    ],
)
def test_credentials_take_the_policy_an_acknowledgement_and_five_seconds(
    proposal: Any, decision: Any, time: str, taken: bool
) -> None:
    state = replace(READY, **with_view(VIEW, **{**WARNED, **proposal}))
    assert (PlaApproved in kinds(state, happened(replace(ASKED, **decision), time=time))) == taken


def test_an_approval_outside_execute_executes_nothing() -> None:
    decided = made(replace(READY, mode="SUGGEST"), happened(replace(ASKED, seen_mode="SUGGEST")))
    assert PlaExecutionRequested not in {type(one) for one in decided}
    assert [one.executes for one in decided if isinstance(one, PlaApproved)] == [False]
    assert [one.outcome for one in decided if isinstance(one, PlaProposalClosed)] == ["recorded"]


@each("changes, taken", [({}, True), ({"reason": ""}, False), ({"reason": " \t\n"}, False), ({"digest": ""}, False)])
def test_a_rejection_takes_a_reason_and_the_digest(changes: Any, taken: bool) -> None:
    rejection = replace(ASKED, decision="REJECTED", reason="no")
    decided = kinds(READY, happened(replace(rejection, **changes)))
    assert (PlaRejected in decided, PlaProposalClosed in decided, PlaDecisionRefused in decided) == (
        taken, taken, not taken
    )  # fmt: skip
    assert not {PlaApproved, PlaExecutionRequested} & decided


TO_ARM = PlaArmRequested(operator_id="ada", channel="cli")
TO_PROPOSE = PlaProposalRequested(goal="type: ls", requested_by="ada", channel="cli")


@each(
    "wish",
    [
        ASKED,
        PlaModeRequested(mode="SUGGEST", operator_id="ada", channel="cli"),
        PlaEndRequested(operator_id="ada", channel="cli"),
        PlaObserveRequested(frame=FrameSource(path="/frames"), requested_by="ada", channel="cli"),
        TO_ARM,
        TO_PROPOSE,
    ],
)
@each("actor", ["brain", "operator"])
def test_what_an_actor_asks_for_in_an_operators_name_is_not_heard(wish: Any, actor: str) -> None:
    state = replace(READY, session_id="") if wish is not ASKED else READY
    assert made(state, happened(wish))
    event = happened(wish, actor, "decision")
    assert made(state, event) == []
    assert Warden().evolve(state, event) == state


# --- raising the mode -----------------------------------------------------------------------------------------------


HINDERS: dict[str, dict[str, Any]] = {
    "end": {"ending": "a daemon started"},
    "pause": {"paused_by": "bob"},
    "kernel not seen": {"kernel": ""},
    "kernel": {"kernel": "BLOCKED"},
    "halt": {"halted": ["anybody"]},
}
HINDERS_EXECUTE: dict[str, dict[str, Any]] = {
    **HINDERS,
    "step": {"mode": "OBSERVE"},
    "daemon": {"lasting": False},
    "device": {"device": None},
    "contract": {"device": replace(DEVICE, compatible=False)},
    "switch": {"device": replace(DEVICE, kill_switch_state="DISABLED")},
    "switch that nobody knows of": {"device": replace(DEVICE, kill_switch_state="UNKNOWN")},
}


def granted(state: WardenState, mode: Any) -> bool:
    """Whether the mode changes to this one; what is answered says the same."""
    decided = made(state, happened(PlaModeRequested(mode=mode, operator_id="ada", channel="cli")))
    changed = any(isinstance(one, PlaModeChanged) for one in decided)
    assert [(one.accepted, one.mode == mode) for one in decided if isinstance(one, PlaModeAnswered)] == [(changed,) * 2]
    return changed


@each("hinders", ["", *HINDERS])
def test_without_one_the_mode_does_not_rise_to_suggest(hinders: str) -> None:
    state = replace(LOW, mode="OBSERVE", lasting=False, device=None)
    assert granted(replace(state, **HINDERS.get(hinders, {})), "SUGGEST") == (not hinders)


@each("hinders", ["", *HINDERS_EXECUTE])
def test_without_one_the_mode_does_not_rise_to_execute(hinders: str) -> None:
    assert granted(replace(LOW, **HINDERS_EXECUTE.get(hinders, {})), "EXECUTE") == (not hinders)


@each("hinders", HINDERS_EXECUTE)
def test_nothing_hinders_the_mode_from_falling(hinders: str) -> None:
    state = replace(EMPTY, **{**HINDERS_EXECUTE[hinders], "mode": "EXECUTE"})
    assert granted(state, "SUGGEST")


# --- what lowers it -------------------------------------------------------------------------------------------------

TRIPPED = HidTripped(session_id=SESSION, boot_id=BOOT, code="killed", text="x")
WRONG = PlaViolation(
    session_id=SESSION, kind="mode_mismatch", severity="warning", contract="x", text="x", handling="x", by="hid"
)
BROKEN = PlaContractBroken(
    contract="action_proposal", kind="mode_mismatch", pointer="", text="x", by="border", channel="document"
)


LOWERS: dict[str, Event] = {
    "start": happened(STARTED),
    "stop": happened(DaemonStopped(reason="x")),
    "kernel": happened(kernel("BLOCKED")),
    "watcher": halted("kernel"),
    "oa": halted("oa"),
    "link": halted("hid"),
    "brain": halted("brain"),
    "own halt": happened(ActorResumed(name="warden")),
    "pause": happened(PAUSED, "gate", "decision"),
    "trip": happened(TRIPPED, "hid", "decision"),
    "violation": happened(WRONG, "hid", "decision"),
    "document": happened(BROKEN),
    "end": happened(PlaEndRequested(operator_id="ada", channel="cli")),
    "operator": happened(PlaModeRequested(mode="OBSERVE", operator_id="ada", channel="cli")),
}


@each("news", LOWERS)
@each("mode", ["SUGGEST", "EXECUTE"])
def test_what_is_not_in_order_lowers_the_mode_and_withdraws_what_is_open(news: str, mode: Any) -> None:
    decided = made(replace(READY, mode=mode), LOWERS[news])
    assert [one.mode for one in decided if isinstance(one, PlaModeChanged)] == ["OBSERVE"]
    assert [one.outcome for one in decided if isinstance(one, PlaProposalClosed)] == ["withdrawn"]


def test_in_observe_nobody_proposes_and_arming_takes_execute() -> None:
    arm, propose = (happened(wish) for wish in (TO_ARM, TO_PROPOSE))
    assert made(LOW, propose) == made(EMPTY, propose) == made(EMPTY, arm) == []
    assert PlaViolation in kinds(replace(LOW, mode="OBSERVE"), propose)
    assert kinds(LOW, arm) == {PlaViolation, PlaModeChanged}


@each("device", [DEVICE, None])
def test_while_the_link_is_halted_the_warden_disarms_and_tells_that_nobody_knows(device: Any) -> None:
    decided = made(replace(BUSY, device=device), halted("hid"))
    assert [one.boot_id for one in decided if isinstance(one, HidDisarmRequested)] == [BOOT] * (device is not None)
    assert [one.outcome for one in decided if isinstance(one, PlaProposalClosed)] == ["unknown"]


@each("name", ["kernel", "oa", "brain", "orchestrator"])
def test_while_another_is_halted_what_is_typed_is_the_links_to_end(name: str) -> None:
    assert not {PlaProposalClosed, HidDisarmRequested} & kinds(BUSY, halted(name))


@each(
    "data, actor",
    [
        (TRIPPED, "hid"),
        (HidDisarmRequested(boot_id=BOOT, why="x"), "hid"),
        (STARTED, ""),
        (DaemonStopped(reason="x"), ""),
    ],
)
def test_what_ends_typing_ends_arming(data: Any, actor: str) -> None:
    assert not remembered(READY, data, actor, "decision" if actor else "fact").armed


@each("data", [STARTED, DaemonStopped(reason="x"), HidLost(boot_id=BOOT, code="x", text="x")])
def test_a_device_that_is_not_held_any_more_is_none(data: Any) -> None:
    after = remembered(READY, data, "", "fact")
    assert (after.device, after.armed) == (None, False)


def test_with_a_start_goes_what_was_seen_of_the_kernel_and_who_may_hold_the_line() -> None:
    after = remembered(READY, replace(STARTED, surface="pla.mode"), "", "fact")
    assert (after.kernel, after.lasting) == ("", False)


@each("surface", ["daemon", "pla.mode"])
@each("running", [True, False])
def test_a_session_ends_with_a_process_that_was_cut_off_and_with_the_daemon(surface: str, running: bool) -> None:
    started = replace(STARTED, surface=surface)
    after = remembered(replace(EMPTY, running=running), started, "", "fact")
    assert (bool(after.ending), after.ending_failed) == (running or surface == "daemon", running)
    assert not remembered(replace(EMPTY, session_id=""), started, "", "fact").ending


def test_whether_a_process_was_cut_off_is_known_at_the_next_start() -> None:
    assert remembered(replace(EMPTY, running=False), STARTED, "", "fact").running
    assert not remembered(EMPTY, DaemonStopped(reason="x"), "", "fact").running


def test_why_a_session_ends_is_what_ended_it_first_and_only_a_daemons_stop_ends_it() -> None:
    ending = replace(EMPTY, ending="ended by ada")
    assert remembered(ending, STARTED, "", "fact") == replace(
        ending, device=None, armed=False, kernel="", reasons=[], running=True
    )
    assert not remembered(replace(EMPTY, lasting=False), DaemonStopped(reason="x"), "", "fact").ending
