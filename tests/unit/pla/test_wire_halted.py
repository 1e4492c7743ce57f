"""While the HID link is halted the warden has the device disarmed: what is typed ends."""

from __future__ import annotations

import msgspec

from pmagent.actors.pla.hid.state import HID
from pmagent.actors.pla.warden.actor import WARDEN, Warden
from pmagent.actors.pla.warden.state import Device
from pmagent.actors.pla.wire.exchanges import exchange
from pmagent.contracts.effect import ActorHalted
from pmagent.contracts.hid import HidDisarmed, HidDisarmRequested, HidEnded
from pmagent.contracts.payload import encode, type_of
from pmagent.contracts.pla import TypeText
from pmagent.events.event import Event
from tests.support.pla_wired import BOOT, TIME, Wired, commit, event

LONG = TypeText(text="x" * 1024)


def halted(name: str) -> Event:
    data = ActorHalted(name=name, error="ValueError", place="x", input=39)
    return Event(
        position=41, time=TIME, id="41", kind="decision", actor="engine", type=type_of(data), correlation="",
        causation=39, data=data, raw=encode(data),
    )  # fmt: skip


def test_the_warden_disarms_while_the_hid_link_is_halted() -> None:
    wired = Wired().prepared(LONG)
    typing = wired.begin(commit(LONG))
    wired.until(lambda: wired.presses > 10)
    device = Device("device-0001", BOOT, "/dev/x", "1.0.0", compatible=True, text="", kill_switch_state="ARMED")
    state = msgspec.structs.replace(Warden().initial(), device=device)
    (asked,) = Warden().decide(state, halted(HID))
    assert isinstance(asked, HidDisarmRequested)
    pressed = wired.presses
    requested = msgspec.structs.replace(event(asked), actor=WARDEN)
    number = wired.conversations.begin(exchange(requested, None, TIME), wired.now)
    wired.until(lambda: number in wired.outcomes and typing in wired.outcomes)
    assert isinstance(wired.outcomes[number], HidDisarmed)
    ended = wired.outcomes[typing]
    assert isinstance(ended, HidEnded)
    assert (ended.state, ended.code) == ("ABORTED", "DISARMED")
    assert wired.presses <= pressed + 2
