"""Permits: who gets one, for what and how long, and when it is taken back."""

from __future__ import annotations

import msgspec
import pytest

from pmagent.actors.kernel.surfaces import HANDOFF, REALITY
from pmagent.actors.oa.actor import Oa
from pmagent.actors.oa.permits import SECONDS_MAX, SWEEP_PERMITS, USES_MAX, live
from pmagent.actors.oa.state import PERMITS_MAX, Permit
from pmagent.contracts.effect import (
    ActorHalted,
    ActorResumed,
    EffectFailed,
)
from pmagent.contracts.kernel import KernelReadRequested
from pmagent.contracts.oa import (
    OaPermitGranted,
    OaPermitRefused,
    OaPermitReleased,
    OaPermitReleaseRefused,
    OaPermitReleaseRequested,
    OaPermitRequested,
    OaPermitRevoked,
    OaSnapshotRequested,
)
from pmagent.contracts.payload import encode
from pmagent.events.event import Event, time_after
from tests.support.cases import each
from tests.support.oa_loop import STARTED, Contents, Loop, Observe, boot, of, permit
from tests.support.toys import START


def test_before_any_observation_every_permit_is_refused(loop: Loop) -> None:
    (answer,) = loop.tell(permit("diagnostic"))
    assert isinstance(answer, OaPermitRefused)
    assert "not been observed" in answer.reasons[0]


def test_an_observation_before_a_start_proves_nothing_after(running: Loop, green: Contents, observe: Observe) -> None:
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
        request=running.last(OaPermitRequested), action="feature_work", subject="run-1", holder="orchestrator", uses=3,
        expires_at="2026-11-21T12:01:00.000000Z", mode="NORMAL",
    )


@each(
    "asked",
    [
        permit("world_peace"), permit(""), permit("FEATURE_WORK"), permit(uses=0), permit(uses=-1),
        permit(uses=USES_MAX + 1), permit(seconds=0.0), permit(seconds=-1.0), permit(seconds=SECONDS_MAX * 2),
        permit(seconds=float("inf")), permit(seconds=float("nan")), permit(subject=""), permit(holder=""),
    ],
)
def test_unknown_or_out_of_bounds_is_refused_with_what_would_help(asked: OaPermitRequested, running: Loop) -> None:
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


def test_a_permit_is_judged_by_the_newest_observation(running: Loop, green: Contents, observe: Observe) -> None:
    """Also when the mode that follows from it has not been written yet."""
    green[HANDOFF]["mode"] = "BLOCKED"
    answers = running.tell(observe(green), permit())
    assert of(OaPermitGranted, answers) == []
    assert len(of(OaPermitRefused, answers)) == 1


def test_going_to_blocked_revokes_every_live_permit(running: Loop, green: Contents, observe: Observe) -> None:
    running.tell(permit(), permit("diagnostic"), permit("remediation", seconds=10.0))
    running.seconds = 20.0
    positions = [event.position for event in running.of(OaPermitGranted)]
    green[HANDOFF]["mode"] = "BLOCKED"
    revoked = of(OaPermitRevoked, running.tell(observe(green)))
    assert [one.permit for one in revoked] == positions[:2], "the third has expired by itself"


def test_degraded_revokes_what_it_forbids_and_leaves_the_rest(running: Loop, green: Contents, observe: Observe) -> None:
    running.tell(permit(), permit("diagnostic"))
    positions = [event.position for event in running.of(OaPermitGranted)]
    green[HANDOFF]["mode"] = "DEGRADED"
    revoked = of(OaPermitRevoked, running.tell(observe(green)))
    assert [one.permit for one in revoked] == positions[:1]
    assert list(running.oa.permits) == positions[1:]


def test_a_permit_granted_in_blocked_survives_new_reasons(running: Loop, green: Contents, observe: Observe) -> None:
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


def test_expired_permits_do_not_pile_up(running: Loop) -> None:
    for n in range(5 * SWEEP_PERMITS):
        running.seconds = 10.0 * n
        assert isinstance(running.tell(permit(seconds=5.0))[0], OaPermitGranted)
        assert len(running.oa.permits) <= SWEEP_PERMITS


def test_the_states_can_be_cached_and_read_back(running: Loop, green: Contents, observe: Observe) -> None:
    running.tell(boot())
    running.tell(observe(green, request=running.last(KernelReadRequested)))
    running.tell(permit(), OaSnapshotRequested())
    for state in running.engine.states.values():
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


@each("field", ["action", "subject", "holder"])
def test_a_permit_request_too_long_for_a_line_is_refused_with_a_short_answer(running: Loop, field: str) -> None:
    (refused,) = running.tell(permit(**{field: "x" * 900_000}))
    assert "action, subject or holder is too long" in refused.reasons
    assert len(encode(refused)) < 20_000


def test_a_permit_is_over_at_the_very_moment_that_it_names() -> None:
    moment = "2026-11-22T09:00:00.000000Z"
    permits = {7: Permit("diagnostic", "any", moment, "run-1")}
    assert live(permits, "2026-11-22T08:59:59.999999Z") == permits
    assert live(permits, moment) == {}


@pytest.mark.parametrize(("uses", "answer"), [
    (0, OaPermitRefused), (1, OaPermitGranted), (USES_MAX, OaPermitGranted), (USES_MAX + 1, OaPermitRefused),
])  # fmt: skip
def test_as_many_uses_as_may_be_are_granted_and_no_more(running: Loop, uses: int, answer: type) -> None:
    (told,) = running.tell(msgspec.structs.replace(permit(), uses=uses))
    assert isinstance(told, answer)


# -- given back -------------------------------------------------------------------------------------------------------


def release(permit: int, holder: str = "orchestrator") -> OaPermitReleaseRequested:
    return OaPermitReleaseRequested(permit=permit, holder=holder)


def test_a_permit_lasts_ten_minutes_unless_asked_otherwise(running: Loop) -> None:
    (granted,) = running.tell(permit())
    assert granted.expires_at == time_after(running.now, 600.0)


def test_a_released_permit_is_revoked_once(running: Loop) -> None:
    running.tell(permit())
    granted = running.last(OaPermitGranted)
    revoked, released = running.tell(release(granted))
    assert (revoked, released.permit) == (OaPermitRevoked(permit=granted, reason="released by its holder"), granted)
    assert isinstance(released, OaPermitReleased)
    assert running.oa.permits == {}
    (again,) = running.tell(release(granted))
    assert isinstance(again, OaPermitReleaseRefused)
    assert str(granted) in again.reasons[0]


def test_only_its_holder_releases_a_permit_and_only_a_live_one(running: Loop) -> None:
    running.tell(permit(seconds=60.0))
    granted = running.last(OaPermitGranted)
    (another,) = running.tell(release(granted, "worker"))
    assert isinstance(another, OaPermitReleaseRefused)
    assert granted in running.oa.permits
    running.seconds += 60.0
    (late,) = running.tell(release(granted))
    assert isinstance(late, OaPermitReleaseRefused)


def test_an_actor_releases_no_permit_of_another(running: Loop) -> None:
    running.tell(permit())
    granted = running.last(OaPermitGranted)
    forged = Event(
        position=99, time=running.now, id="98.toy.0", kind="decision", actor="toy",
        type="oa.permit_release_requested", correlation="", causation=98, raw=b"", data=release(granted),
    )  # fmt: skip
    (refused,) = Oa().decide(running.oa, forged)
    assert isinstance(refused, OaPermitReleaseRefused)
