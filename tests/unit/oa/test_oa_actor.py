"""Snapshots, modes and sessions: the OA and the kernel watcher together."""

from __future__ import annotations

from typing import Any

import msgspec

from pmagent.actors.kernel.surfaces import HANDOFF, REALITY, SSOT
from pmagent.actors.oa.state import SESSIONS_MAX, WAITING_MAX
from pmagent.contracts.effect import (
    EffectCancelled,
    EffectFailed,
    EffectInterrupted,
    EffectRefused,
    EffectTimedOut,
    RequestRefused,
)
from pmagent.contracts.kernel import KernelModeDecided, KernelObserved, KernelReadRequested
from pmagent.contracts.oa import (
    OaBootRefused,
    OaBootRequested,
    OaEscalated,
    OaSessionBooted,
    OaSessionEnded,
    OaSnapshotRequested,
    OaSnapshotTaken,
)
from tests.support.cases import each
from tests.support.oa_loop import STARTED, Contents, Loop, Observe, boot, of

# -- snapshots ------------------------------------------------------------------------------------------------------


def test_a_snapshot_is_answered_by_the_reading_it_asked_for(running: Loop, green: Contents, observe: Observe) -> None:
    assert of(KernelReadRequested, running.tell(OaSnapshotRequested())) == [KernelReadRequested(why="snapshot")]
    request, read = running.last(OaSnapshotRequested), running.last(KernelReadRequested)
    assert running.tell(observe(green)) == [], "a change seen meanwhile is no answer: it may have been read before"
    answers = running.tell(observe(green, request=read))
    observed = running.last(KernelObserved)
    assert answers == [OaSnapshotTaken(request=request, observed=observed, success=True, mode="NORMAL", reasons=[])]
    assert running.oa.waiting == []
    assert running.oa.reads == []


def test_a_snapshot_without_a_required_surface_names_it(running: Loop, green: Contents, observe: Observe) -> None:
    running.tell(OaSnapshotRequested())
    del green[SSOT]
    (answer,) = of(OaSnapshotTaken, running.tell(observe(green, request=running.last(KernelReadRequested))))
    assert (answer.success, answer.mode) == (False, "BLOCKED")
    assert [reason.surfaces for reason in answer.reasons] == [["share/SSOT_SURFACE_V17.json"]]


def test_a_snapshot_of_a_kernel_declared_blocked_succeeds(running: Loop, green: Contents, observe: Observe) -> None:
    """The surfaces are all there: that they block is what the snapshot says."""
    running.tell(OaSnapshotRequested())
    green[HANDOFF]["mode"] = "BLOCKED"
    (answer,) = of(OaSnapshotTaken, running.tell(observe(green, request=running.last(KernelReadRequested))))
    assert (answer.success, answer.mode) == (True, "BLOCKED")


def test_two_snapshots_get_one_answer_each(running: Loop, green: Contents, observe: Observe) -> None:
    assert len(of(KernelReadRequested, running.tell(OaSnapshotRequested(), OaSnapshotRequested()))) == 2
    reads = [event.position for event in running.of(KernelReadRequested)][-2:]
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


@each("way", range(5))
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


def test_a_mode_is_decided_only_when_it_or_its_reasons_change(loop: Loop, green: Contents, observe: Observe) -> None:
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


def test_a_change_of_mode_while_booted_is_drift_told_once(running: Loop, green: Contents, observe: Observe) -> None:
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
