"""The OA and the kernel watcher together, driven in log order as the engine does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from actors.actor import AnyActor
from actors.kernel.actor import KernelWatcher
from actors.kernel.surfaces import HANDOFF, REALITY, SSOT
from actors.oa.actor import Oa
from actors.oa.permits import SECONDS_MAX, USES_MAX
from actors.oa.state import PERMITS_MAX, SESSIONS_MAX, WAITING_MAX, OaActorState
from contracts.daemon import DaemonStarted
from contracts.effect import (
    ActorHalted,
    ActorResumed,
    EffectCancelled,
    EffectFailed,
    EffectInterrupted,
    EffectRefused,
    EffectTimedOut,
    RequestRefused,
)
from contracts.kernel import KernelModeDecided, KernelObserved, KernelReadRequested
from contracts.oa import (
    OaBootRefused,
    OaBootRequested,
    OaEscalated,
    OaPermitGranted,
    OaPermitRefused,
    OaPermitRequested,
    OaPermitRevoked,
    OaSessionBooted,
    OaSessionEnded,
    OaSnapshotRequested,
    OaSnapshotTaken,
)
from contracts.payload import encode, type_of
from events.event import Event, time_after

Contents = dict[str, Any]
Observe = Callable[..., KernelObserved]
START = "2026-11-21T18:00:00.000000Z"
STARTED = DaemonStarted(version="0", python="3", surface="daemon")


class Loop:
    """Both actors over one growing log: events in log order, each actor in turn, decisions appended."""

    def __init__(self) -> None:
        self.actors: list[AnyActor] = [KernelWatcher(), Oa()]
        self.states: dict[str, Any] = {actor.name: actor.initial() for actor in self.actors}
        self.log: list[Event] = []
        self.done = 0
        self.seconds = 0.0

    def tell(self, *payloads: msgspec.Struct) -> list[Any]:
        """Append facts as one batch; returns the payloads of the decisions that follow."""
        before = len(self.log)
        for payload in payloads:
            self._append(payload, "fact", "test", 0)
        while self.done < len(self.log):
            event = self.log[self.done]
            self.done += 1
            for actor in self.actors:
                if type(event.data) in actor.hears:
                    self._wake(actor, event)
        return [event.data for event in self.log[before:] if event.kind == "decision"]

    def _wake(self, actor: AnyActor, event: Event) -> None:
        self.states[actor.name] = actor.evolve(self.states[actor.name], event)
        for payload in list(actor.decide(self.states[actor.name], event)):
            own = self._append(payload, "decision", actor.name, event.position)
            self.states[actor.name] = actor.evolve(self.states[actor.name], own)

    def _append(self, payload: msgspec.Struct, kind: Any, actor: str, causation: int) -> Event:
        position = len(self.log) + 1
        event = Event(
            position,
            time_after(START, self.seconds),
            f"{position}",
            kind,
            actor,
            type_of(payload),
            "",
            causation,
            payload,
            encode(payload),
        )
        self.log.append(event)
        return event

    def last(self, kind: type[msgspec.Struct]) -> int:
        """Position of the last event with such a payload."""
        return next(event.position for event in reversed(self.log) if isinstance(event.data, kind))

    @property
    def oa(self) -> OaActorState:
        """The OA's state."""
        state: OaActorState = self.states["oa"]
        return state


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def running(loop: Loop, green: Contents, observe: Observe) -> Loop:
    """A loop whose kernel was observed to be NORMAL."""
    loop.tell(STARTED)
    loop.tell(observe(green, request=loop.last(KernelReadRequested)))
    return loop


def of(kind: type[Any], payloads: list[Any]) -> list[Any]:
    return [payload for payload in payloads if isinstance(payload, kind)]


def permit(action: str = "feature_work", **more: Any) -> OaPermitRequested:
    return OaPermitRequested(**({"action": action, "subject": "run-1", "holder": "orchestrator"} | more))


def boot(name: str = "oa-session-1") -> OaBootRequested:
    return OaBootRequested(session_id=name, workspace="/w")


# -- snapshots ------------------------------------------------------------------------------------------------------


def test_a_snapshot_is_answered_by_the_reading_that_it_asked_for(
    running: Loop, green: Contents, observe: Observe
) -> None:
    assert of(KernelReadRequested, running.tell(OaSnapshotRequested())) == [KernelReadRequested(why="snapshot")]
    request, read = running.last(OaSnapshotRequested), running.last(KernelReadRequested)
    assert running.tell(observe(green)) == [], "a change seen meanwhile is no answer: it may have been read before"
    answers = running.tell(observe(green, request=read))
    observed = running.last(KernelObserved)
    assert answers == [OaSnapshotTaken(request=request, observed=observed, success=True, mode="NORMAL", reasons=[])]
    assert running.oa.waiting == []
    assert running.oa.reads == []


def test_a_snapshot_without_a_required_surface_fails_and_names_it(
    running: Loop, green: Contents, observe: Observe
) -> None:
    running.tell(OaSnapshotRequested())
    del green[SSOT]
    (answer,) = of(OaSnapshotTaken, running.tell(observe(green, request=running.last(KernelReadRequested))))
    assert (answer.success, answer.mode) == (False, "BLOCKED")
    assert [reason.surfaces for reason in answer.reasons] == [["share/SSOT_SURFACE_V17.json"]]


def test_a_snapshot_of_a_kernel_that_is_declared_blocked_succeeds(
    running: Loop, green: Contents, observe: Observe
) -> None:
    """The surfaces are all there: that they block is what the snapshot says."""
    running.tell(OaSnapshotRequested())
    green[HANDOFF]["mode"] = "BLOCKED"
    (answer,) = of(OaSnapshotTaken, running.tell(observe(green, request=running.last(KernelReadRequested))))
    assert (answer.success, answer.mode) == (True, "BLOCKED")


def test_two_snapshots_get_one_answer_each(running: Loop, green: Contents, observe: Observe) -> None:
    asked = of(KernelReadRequested, running.tell(OaSnapshotRequested(), OaSnapshotRequested()))
    assert len(asked) == 2
    reads = [event.position for event in running.log if isinstance(event.data, KernelReadRequested)][-2:]
    first = of(OaSnapshotTaken, running.tell(observe(green, request=reads[0])))
    second = of(OaSnapshotTaken, running.tell(observe(green, request=reads[1])))
    assert len({answer.request for answer in first + second}) == len(first) + len(second) == 2


def ends(read: int) -> list[msgspec.Struct]:
    """Every way in which a reading can end without an observation."""
    return [
        EffectFailed(request=read, error="OSError", place="x.y"),
        EffectTimedOut(request=read, limit_s=30.0),
        EffectInterrupted(request=read, reason="stop"),
        EffectRefused(request=read, reasons=["stopping"]),
        EffectCancelled(request=read, reason="cancel_requested"),
    ]


@pytest.mark.parametrize("way", range(5))
def test_however_a_reading_ends_the_snapshot_and_the_boot_are_answered(way: int, running: Loop) -> None:
    running.tell(OaSnapshotRequested())
    (taken,) = running.tell(ends(running.last(KernelReadRequested))[way])
    assert (taken.success, taken.mode, taken.observed) == (False, "BLOCKED", 0)
    assert [reason.code for reason in taken.reasons] == ["read_failed"]
    running.tell(boot())
    (refused,) = running.tell(ends(running.last(KernelReadRequested))[way])
    assert isinstance(refused, OaBootRefused)
    assert running.oa.waiting == []
    assert running.oa.sessions == []


def test_another_effects_end_answers_nobody(running: Loop) -> None:
    running.tell(OaSnapshotRequested())
    assert running.tell(*ends(9999)) == []
    assert len(running.oa.waiting) == 1


def test_a_request_that_the_engine_refused_waits_no_longer(running: Loop) -> None:
    running.tell(OaSnapshotRequested())
    refused = RequestRefused(request=running.last(OaSnapshotRequested), name="kernel", reason="halted")
    assert running.tell(refused) == []
    assert running.oa.waiting == []


def test_no_more_than_a_bounded_number_of_requests_wait(running: Loop) -> None:
    for _ in range(WAITING_MAX):
        assert not of(OaSnapshotTaken, running.tell(OaSnapshotRequested()))
    (answer,) = of(OaSnapshotTaken, running.tell(OaSnapshotRequested()))
    assert [reason.code for reason in answer.reasons] == ["too_many_requests"]
    assert len(running.oa.waiting) == WAITING_MAX


# -- mode -----------------------------------------------------------------------------------------------------------


def test_a_mode_is_decided_when_it_or_its_reasons_change_and_not_otherwise(
    loop: Loop, green: Contents, observe: Observe
) -> None:
    (first,) = of(KernelModeDecided, loop.tell(observe(green)))
    assert (first.mode, first.previous, first.phase, first.branch) == ("NORMAL", "", "1", "main")
    assert loop.tell(observe(green)) == []
    green[REALITY]["checks"][3]["passed"] = False
    (worse,) = of(KernelModeDecided, loop.tell(observe(green)))
    assert (worse.mode, worse.previous) == ("DEGRADED", "NORMAL")
    green[REALITY]["checks"][2]["passed"] = False
    (more,) = of(KernelModeDecided, loop.tell(observe(green)))
    assert (more.mode, more.previous, len(more.reasons)) == ("DEGRADED", "DEGRADED", 2)


def test_each_start_reads_the_surfaces(loop: Loop) -> None:
    assert loop.tell(STARTED) == [KernelReadRequested(why="start")]


# -- sessions -------------------------------------------------------------------------------------------------------


def booted(loop: Loop, contents: Contents, observe: Observe, name: str = "oa-session-1") -> list[Any]:
    loop.tell(boot(name))
    return loop.tell(observe(contents, request=loop.last(KernelReadRequested)))


def test_a_normal_kernel_boots_a_session(running: Loop, green: Contents, observe: Observe) -> None:
    (answer,) = booted(running, green, observe)
    assert isinstance(answer, OaSessionBooted)
    assert (answer.session_id, answer.mode, answer.phase, answer.branch) == ("oa-session-1", "NORMAL", "1", "main")
    assert answer.interpretation.forbidden_actions == []
    assert answer.request == running.last(OaBootRequested)


def test_a_degraded_kernel_boots_with_its_reasons(running: Loop, green: Contents, observe: Observe) -> None:
    green[HANDOFF]["mode"] = "DEGRADED"
    (answer,) = of(OaSessionBooted, booted(running, green, observe))
    assert answer.interpretation.allowed_actions == ["remediation", "diagnostic"]
    assert [reason.code for reason in answer.reasons] == ["declared"]
    assert answer.interpretation.recommended_commands


def test_a_blocked_kernel_boots_nothing(running: Loop, green: Contents, observe: Observe) -> None:
    del green[SSOT]
    (answer,) = of(OaBootRefused, booted(running, green, observe))
    assert (answer.mode, len(answer.reasons)) == ("BLOCKED", 1)
    assert running.oa.sessions == []


def test_the_oldest_session_ends_when_there_are_too_many(running: Loop, green: Contents, observe: Observe) -> None:
    for number in range(SESSIONS_MAX):
        assert not of(OaSessionEnded, booted(running, green, observe, f"s{number}"))
    ended, answer = booted(running, green, observe, "one more")
    assert (ended.session_id, answer.session_id) == ("s0", "one more")
    assert len(running.oa.sessions) == SESSIONS_MAX


def test_an_open_sessions_id_cannot_be_used_again(running: Loop, green: Contents, observe: Observe) -> None:
    booted(running, green, observe)
    (answer,) = booted(running, green, observe)
    assert isinstance(answer, OaBootRefused)
    assert [reason.code for reason in answer.reasons] == ["session_exists"]


def test_a_change_of_mode_while_booted_is_drift_and_is_told_once(
    running: Loop, green: Contents, observe: Observe
) -> None:
    booted(running, green, observe)
    green[HANDOFF]["mode"] = "DEGRADED"
    told = of(OaEscalated, running.tell(observe(green)))
    assert [(one.kind, one.severity) for one in told] == [("mode_degraded", "warn"), ("mode_drift", "warn")]
    assert (told[1].session_id, told[1].boot_mode, told[1].current_mode) == ("oa-session-1", "NORMAL", "DEGRADED")
    assert running.oa.sessions[0].current_mode == "DEGRADED"
    assert running.tell(observe(green)) == []
    green[HANDOFF]["mode"] = "BLOCKED"
    told = of(OaEscalated, running.tell(observe(green)))
    assert [(one.kind, one.severity) for one in told] == [("mode_blocked", "block"), ("mode_drift", "block")]
    green[HANDOFF]["mode"] = "NORMAL"
    assert of(OaEscalated, running.tell(observe(green))) == [], "back where it booted"


# -- permits --------------------------------------------------------------------------------------------------------


def test_before_any_observation_every_permit_is_refused(loop: Loop) -> None:
    (answer,) = loop.tell(permit("diagnostic"))
    assert isinstance(answer, OaPermitRefused)
    assert "not been observed" in answer.reasons[0]


def test_what_was_observed_before_a_start_proves_nothing_after_it(
    running: Loop, green: Contents, observe: Observe
) -> None:
    assert isinstance(running.tell(permit())[0], OaPermitGranted)
    running.tell(STARTED)
    assert running.tell(permit()) == [], "a reading is under way, so it waits for that"
    green[HANDOFF]["mode"] = "BLOCKED"
    answers = running.tell(observe(green, request=running.last(KernelReadRequested)))
    assert len(of(OaPermitRefused, answers)) == 1
    assert running.oa.waiting_permits == []


def test_a_permit_that_waited_is_granted_by_the_reading(loop: Loop, green: Contents, observe: Observe) -> None:
    loop.tell(STARTED)
    loop.tell(permit())
    (granted,) = of(OaPermitGranted, loop.tell(observe(green, request=loop.last(KernelReadRequested))))
    assert granted.request == loop.last(OaPermitRequested)


def test_a_permit_that_waited_is_refused_when_the_reading_fails(loop: Loop) -> None:
    loop.tell(STARTED)
    loop.tell(permit())
    (refused,) = loop.tell(EffectFailed(request=loop.last(KernelReadRequested), error="OSError", place="x"))
    assert isinstance(refused, OaPermitRefused)


def test_a_permit_carries_what_was_asked_and_when_it_expires(running: Loop) -> None:
    (granted,) = running.tell(permit(uses=3, seconds=60.0))
    assert granted == OaPermitGranted(
        request=running.last(OaPermitRequested),
        action="feature_work",
        subject="run-1",
        holder="orchestrator",
        uses=3,
        expires_at="2026-11-21T18:01:00.000000Z",
        mode="NORMAL",
    )


@pytest.mark.parametrize(
    "asked",
    [
        permit("world_peace"),
        permit(""),
        permit("FEATURE_WORK"),
        permit(uses=0),
        permit(uses=-1),
        permit(uses=USES_MAX + 1),
        permit(seconds=0.0),
        permit(seconds=-1.0),
        permit(seconds=SECONDS_MAX * 2),
        permit(seconds=float("inf")),
        permit(seconds=float("nan")),
        permit(subject=""),
        permit(holder=""),
    ],
)
def test_what_is_unknown_or_out_of_bounds_is_refused_with_what_would_help(
    asked: OaPermitRequested, running: Loop
) -> None:
    state = running.oa
    event = Event(99, START, "99", "fact", "t", "oa.permit_requested", "", 0, asked, b"")
    (answer,) = Oa().decide(state, event)
    assert isinstance(answer, OaPermitRefused)
    assert answer.reasons
    assert answer.mend


def test_a_forbidden_action_is_refused_with_the_modes_reasons(running: Loop, green: Contents, observe: Observe) -> None:
    green[HANDOFF]["mode"] = "DEGRADED"
    running.tell(observe(green))
    (answer,) = running.tell(permit())
    assert isinstance(answer, OaPermitRefused)
    assert "forbidden in DEGRADED" in answer.reasons[0]
    assert any("HANDOFF_KERNEL" in mend for mend in answer.mend)
    assert isinstance(running.tell(permit("remediation"))[0], OaPermitGranted)


def test_a_permit_is_judged_by_the_newest_observation_in_the_log(
    running: Loop, green: Contents, observe: Observe
) -> None:
    """Also when the mode that follows from it has not been written yet."""
    green[HANDOFF]["mode"] = "BLOCKED"
    answers = running.tell(observe(green), permit())
    assert of(OaPermitGranted, answers) == []
    assert len(of(OaPermitRefused, answers)) == 1


def test_going_to_blocked_revokes_every_live_permit(running: Loop, green: Contents, observe: Observe) -> None:
    running.tell(permit(), permit("diagnostic"), permit("remediation", seconds=10.0))
    running.seconds = 20.0
    positions = [event.position for event in running.log if isinstance(event.data, OaPermitGranted)]
    green[HANDOFF]["mode"] = "BLOCKED"
    revoked = of(OaPermitRevoked, running.tell(observe(green)))
    assert [one.permit for one in revoked] == positions[:2], "the third has expired by itself"


def test_degraded_revokes_what_it_forbids_and_leaves_the_rest(running: Loop, green: Contents, observe: Observe) -> None:
    running.tell(permit(), permit("diagnostic"))
    positions = [event.position for event in running.log if isinstance(event.data, OaPermitGranted)]
    green[HANDOFF]["mode"] = "DEGRADED"
    revoked = of(OaPermitRevoked, running.tell(observe(green)))
    assert [one.permit for one in revoked] == positions[:1]
    assert list(running.oa.permits) == positions[1:]


def test_a_permit_granted_in_blocked_survives_new_reasons_for_it(
    running: Loop, green: Contents, observe: Observe
) -> None:
    green[HANDOFF]["mode"] = "BLOCKED"
    running.tell(observe(green))
    running.tell(permit("diagnostic"))
    green[REALITY]["checks"][3]["passed"] = False
    assert of(OaPermitRevoked, running.tell(observe(green))) == []


def test_live_permits_are_bounded_and_expired_ones_make_room(running: Loop) -> None:
    for _ in range(PERMITS_MAX):
        assert isinstance(running.tell(permit(seconds=60.0))[0], OaPermitGranted)
    assert isinstance(running.tell(permit())[0], OaPermitRefused)
    running.seconds = 61.0
    assert isinstance(running.tell(permit())[0], OaPermitGranted)
    assert len(running.oa.permits) == 1


def test_the_states_can_be_cached_and_read_back(running: Loop, green: Contents, observe: Observe) -> None:
    booted(running, green, observe)
    running.tell(permit(), OaSnapshotRequested())
    for state in running.states.values():
        assert msgspec.json.decode(msgspec.json.encode(state), type=type(state)) == state


# -- without a watcher ------------------------------------------------------------------------------------------------


def test_when_the_kernel_watcher_is_halted_permits_are_taken_back_and_refused(running: Loop) -> None:
    running.tell(permit())
    granted = running.last(OaPermitGranted)
    halted = ActorHalted(name="kernel", input=3, error="ValueError", place="here")
    assert running.tell(halted) == [OaPermitRevoked(permit=granted, reason="the kernel watcher is halted")]
    (refused,) = running.tell(permit())
    assert refused.reasons == ["the kernel watcher is halted"]
    running.tell(ActorResumed(name="kernel"))
    assert isinstance(running.tell(permit())[0], OaPermitGranted)


def test_another_actor_that_is_halted_takes_no_permit_away(running: Loop) -> None:
    running.tell(permit())
    assert running.tell(ActorHalted(name="toy", input=3, error="ValueError", place="here")) == []


@pytest.mark.parametrize("field", ["action", "subject", "holder"])
def test_a_permit_request_too_long_for_a_line_is_refused_with_a_short_answer(running: Loop, field: str) -> None:
    (refused,) = running.tell(permit(**{field: "x" * 900_000}))
    assert "action, subject or holder is too long" in refused.reasons
    assert len(encode(refused)) < 20_000
