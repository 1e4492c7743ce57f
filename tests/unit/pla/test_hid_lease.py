"""The lease of a device whose line's owner renews it: what of it stands in the log, and what ends it."""

from __future__ import annotations

from itertools import count

from pmagent.actors.pla.wire.reports import Reporter
from pmagent.contracts.effect import EffectCancelRequested, EffectFailed
from pmagent.contracts.hid import (
    HidDisarmRequested,
    HidEnded,
    HidLeaseEnded,
    HidLeaseRequested,
    HidPinged,
    HidPingRequested,
    HidReported,
    HidTripped,
)
from pmagent.contracts.payload import encode
from pmagent.contracts.pla import TypeText
from pmagent.contracts.pla_events import PlaDecisionRefused, PlaDisarmRequested, PlaExecuted, PlaModeRequested
from pmagent.events.event import parse_time
from tests.support.cases import each
from tests.support.effort import rounds
from tests.support.pla import BOOT, PlaHarness, silent
from tests.support.pla_wired import BOOT as WIRED_BOOT
from tests.support.pla_wired import LEASE, Wired, arm, commit

HOUR = 3600.0
MEGABYTE = 1_000_000


def ready(*, practice: bool = True) -> PlaHarness:
    """A device of today's contract is armed, and its lease renewed."""
    harness = PlaHarness().link(contract_version="1.1.0", practice=practice)
    harness.mode("SUGGEST", "EXECUTE").arm()
    harness.advance(1.0)
    return harness


def test_the_first_renewal_is_an_event_and_then_the_lines_owner_renews_it() -> None:
    harness = ready()
    (ping,) = harness.of(HidPingRequested)
    assert (parse_time(ping.data.at) - parse_time(ping.time)).total_seconds() == 0.5
    assert len(harness.of(HidPinged)) == len(harness.of(HidLeaseRequested)) == 1
    before = len(harness.history)
    harness.advance(HOUR)
    assert len(harness.history) == before
    assert harness.warden.armed


def test_an_hour_armed_costs_less_than_a_megabyte_of_log() -> None:
    """The line's side of it: all that it tells in an hour, with the requests that lead to it."""
    wired, reporter = Wired().linked(), Reporter()
    reporter.begin("/dev/pts/9")
    wired.perform(arm(WIRED_BOOT))
    number, began, told, asked = wired.begin(LEASE), wired.now, 0, 1
    long = HOUR / rounds(1, 12)
    while wired.now < began + long:
        wired.step(125)
        told += sum(len(encode(fact)) for fact in reporter.facts(wired.heard))
        wired.heard.clear()
        if number in wired.outcomes:
            told += len(encode(wired.outcomes.pop(number)))
            number, asked = wired.begin(LEASE), asked + 1
    assert wired.core.armed
    assert wired.sent("ping") > long
    assert asked <= 2
    assert told * HOUR / long + asked * 2_000 < MEGABYTE / 50


def test_an_hour_later_it_is_asked_for_again() -> None:
    harness = ready()
    (lease,) = harness.of(HidLeaseRequested)
    harness.finish(
        lease.position, HidLeaseEnded(request=lease.position, boot_id=BOOT, armed=True, kill_switch_state="ARMED")
    )
    assert len(harness.of(HidLeaseRequested)) == 2
    assert harness.warden.armed


@each("end", ["disarm", "mode"])
def test_with_the_arming_ends_the_renewal_in_the_same_reaction(end: str) -> None:
    harness = ready()
    (lease,) = harness.of(HidLeaseRequested)
    if end == "disarm":
        events = harness.fact(PlaDisarmRequested(operator_id="alice", channel="cli")).events
    else:
        events = harness.fact(PlaModeRequested(mode="SUGGEST", operator_id="alice", channel="cli")).events
    assert lease.position in [one.data.request for one in events if isinstance(one.data, EffectCancelRequested)]
    assert any(isinstance(one.data, HidDisarmRequested) for one in events)


@each("outcome, code", [
    (lambda at: HidLeaseEnded(request=at, boot_id=BOOT, armed=False, kill_switch_state="ARMED"), "lease_lost"),
    (lambda at: HidLeaseEnded(request=at, boot_id=BOOT, armed=True, kill_switch_state="DISABLED"), "killed"),
    (lambda at: HidLeaseEnded(request=at, boot_id="f" * 16, armed=True, kill_switch_state="ARMED"), "device_reset"),
    (lambda at: EffectFailed(request=at, error="OSError", place="here"), "lease_lost"),
])  # fmt: skip
def test_a_lease_that_ends_trips_the_link(outcome: object, code: str) -> None:
    harness = ready()
    (lease,) = harness.of(HidLeaseRequested)
    harness.finish(lease.position, outcome(lease.position))  # type: ignore[operator]
    assert harness.last(HidTripped).code == code
    assert harness.warden.mode == "OBSERVE"


def test_after_silence_a_ping_finds_out_and_the_lease_is_renewed_again() -> None:
    harness = ready()
    (lease,) = harness.of(HidLeaseRequested)
    harness.finish(lease.position, silent(lease))
    harness.advance(1.0)
    assert len(harness.of(HidPingRequested)) == len(harness.of(HidLeaseRequested)) == 2
    assert harness.warden.armed


def test_a_device_that_says_it_is_disarmed_is_believed_but_not_what_it_said_before() -> None:
    harness = PlaHarness().link(contract_version="1.1.0", practice=True).mode("SUGGEST", "EXECUTE").arm()
    told = HidReported(boot_id=BOOT, mode="OBSERVE", led_state=False, kill_switch_state="ARMED")
    harness.tell(told)
    assert harness.warden.armed, "it may have said so before it was armed"
    harness.advance(2.5)
    harness.tell(told)
    assert harness.last(HidTripped).code == "lease_lost"


# --- at the line ---------------------------------------------------------------------------------------------------


def test_a_lease_is_not_renewed_while_the_engine_does_not_answer() -> None:
    text = TypeText(text="x" * 1000)
    wired = Wired().prepared(text)
    number = wired.begin(commit(text))
    wired.until(lambda: wired.presses > 50)
    wired.alive, since = False, wired.now
    wired.until(lambda: not wired.core.armed, seconds=3.1)
    pings = wired.sent("ping")
    assert 1.9 <= wired.now - since <= 3.1, "the last second in which it answered, and the lease"
    wired.until(lambda: number in wired.outcomes)
    ended = wired.outcomes[number]
    assert isinstance(ended, HidEnded)
    assert (ended.state, ended.code) == ("ABORTED", "LEASE")
    assert wired.sent("ping") == pings
    wired.alive = True
    wired.until(lambda: any(isinstance(one, HidLeaseEnded) for one in wired.outcomes.values()))


def test_a_short_stall_ends_nothing() -> None:
    wired = Wired().prepared(TypeText(text="x"))
    wired.alive = False
    wired.until(lambda: wired.now > 1.6)
    wired.alive = True
    for _ in range(1000):
        wired.step()
    assert wired.core.armed


def test_a_renewal_that_is_taken_back_stops_at_once() -> None:
    wired = Wired().linked()
    wired.perform(arm())
    number = wired.begin(LEASE)
    wired.until(lambda: wired.sent("ping") == 3)
    wired.conversations.cancel(number, wired.now)
    wired.until(lambda: not wired.core.armed, seconds=2.1)
    assert wired.sent("ping") == 3


def test_a_lost_ping_is_followed_by_the_next_within_the_lease() -> None:
    wired = Wired().linked()
    wired.perform(arm())
    wired.begin(LEASE)
    pings = count()
    wired.to_device = lambda data: b"" if b'"op":"ping"' in data and next(pings) % 2 else data
    for _ in range(2500):
        wired.step()
        assert wired.core.armed


# --- layouts -------------------------------------------------------------------------------------------------------


@each("layout, practice, approved", [("", True, True), ("", False, False), ("de", False, True), ("de", True, True)])
def test_without_a_declared_layout_only_a_practice_device_types(layout: str, practice: bool, approved: bool) -> None:
    harness = ready(practice=practice)
    proposed = harness.propose(TypeText(text="zy", layout=layout))
    harness.decide(proposed, layout=layout)
    if approved:
        assert harness.last(PlaExecuted).outcome == "done"
    else:
        assert harness.last(PlaDecisionRefused).code == "device"
        assert "layout" in harness.last(PlaDecisionRefused).mend[0]


@each("now", [{"layout": "fr"}, {"layout": ""}, {"layout": "de", "machine": "rack-3"}])
def test_another_machine_than_it_was_proposed_for_is_not_typed_on(now: dict[str, str]) -> None:
    harness = ready()
    harness.decide(harness.propose(TypeText(text="zy", layout="de")), **now)
    assert harness.last(PlaDecisionRefused).code == "changed"


def test_an_execution_that_nobody_declared_a_layout_for_is_not_begun() -> None:
    """Also where the warden let it pass: the link looks for itself."""
    harness = ready()
    proposed = harness.propose(TypeText(text="zy"))
    harness.link(contract_version="1.1.0", practice=False)
    harness.mode("SUGGEST", "EXECUTE").arm()
    harness.decide(proposed)
    assert not harness.of(PlaExecuted) or harness.last(PlaExecuted).outcome == "not_executed"


