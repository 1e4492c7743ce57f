"""The order is not waited for any more if an actor is halted while something is typed: the device is disarmed."""

from __future__ import annotations

from typing import Any

import pytest

from pmagent.actors.pla.hid.actor import HidLink
from pmagent.actors.pla.warden.actor import Warden
from pmagent.contracts.effect import ActorHalted
from pmagent.contracts.hid import HidCommitRequested, HidDisarmRequested, HidPingRequested, HidReported
from tests.support.cases import each
from tests.support.pla import BOOT, PlaHarness


@each("who", [(HidLink,), (Warden,), (HidLink, Warden)])
def test_whoever_is_halted_the_device_is_disarmed(who: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    harness = PlaHarness()
    harness.mute = {HidCommitRequested, HidPingRequested}
    harness.ready()
    harness.decide(harness.propose())
    ordered, before = harness.of(HidCommitRequested)[-1].position, len(harness.of(HidDisarmRequested))
    with monkeypatch.context() as patch:
        for cls in who:
            whole = cls.decide

            def failing(self: Any, state: Any, event: Any, whole: Any = whole) -> Any:
                if isinstance(event.data, HidReported):
                    raise ValueError
                return whole(self, state, event)

            patch.setattr(cls, "decide", failing)
        harness.fact(HidReported(
            boot_id=BOOT, mode="EXECUTE", led_state=True, kill_switch_state="ARMED", error_code="NONE",
            error_message="", error_count=0, action_count=0, caps_lock=False,
        ))  # fmt: skip
    assert {event.data.name for event in harness.of(ActorHalted)} == {cls.name for cls in who}
    cancelled = ordered in harness.engine.effects.cancelled or not harness.engine.effects.is_open(ordered)
    assert cancelled or len(harness.of(HidDisarmRequested)) > before
