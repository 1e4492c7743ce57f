"""The witness at the device knows what it sees: its table and its sums are its own, and right."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.pla.wire.lines import encode
from pmagent.contracts.pla import KEYS, MODIFIERS, Action, KeyCombo, MouseClick, MouseMove, TypeText, digest, is_typable
from pmagent.contracts.pla_events import PlaExecutionRequested
from pmagent.firmware.actions import Keys, Move, Text, keystrokes
from pmagent.firmware.layout import ALT, CTRL, presses
from pmagent.replay.areas.pla.strokes import CHARACTERS, Typed
from pmagent.replay.areas.pla.witness import Witness, crc, decoded
from pmagent.replay.simulation.world import Violation

BOOT = "0" * 16
EXECUTION = "exec-1234"
TEXT = TypeText(text="Hi 5!")


def test_the_table_of_a_us_keyboard_is_whole_and_agrees_with_the_firmwares() -> None:
    typable = {chr(code) for code in range(0x110) if is_typable(chr(code))}
    assert typable == CHARACTERS.keys()
    assert {c: presses(c) for c in typable} == {c: ((shift, *usages),) for c, (shift, usages) in CHARACTERS.items()}


def test_the_sum_of_a_line_is_the_published_one() -> None:
    assert crc(b"123456789") == 0x4B37


@given(st.text(st.characters(max_codepoint=0x7E, min_codepoint=0x20), max_size=200), st.randoms())
def test_a_line_is_read_whole_or_not_at_all(text: str, random: Random) -> None:
    line = encode({"n": 1, "op": text})[:-1]
    assert decoded(line) == {"n": 1, "op": text}
    at = random.randrange(len(line))
    assert decoded(line[:at] + bytes((line[at] ^ 1 << random.randrange(8),)) + line[at + 1 :]) is None


class Scene:
    """A witness, and what it is shown."""

    def __init__(self, action: Action) -> None:
        self.now = 1_000_000
        self.action = action
        self.witness = Witness(lambda: self.now, self._approved)
        self.witness.powered(BOOT, cold=True)

    def _approved(self, execution: str, _: str) -> PlaExecutionRequested:
        return PlaExecutionRequested(
            session_id="pla-1", proposal_id="prop-1", execution_id=execution, approval=1, digest=digest(self.action),
            action=self.action, masked=False, operator_id="ada", decided_at="",
        )  # fmt: skip

    def hear(
        self, op: str, *, killed: bool = False, connected: bool = True, usb: bool = True, **fields: object
    ) -> None:
        line = encode({"n": 1, "op": op, "boot_id": BOOT, **fields}) if op else b""
        self.witness.sees(line, killed=killed, connected=connected, usb=usb)

    def order(self) -> None:
        self.hear("arm", lease_ms=2000)
        self.hear("commit", execution_id=EXECUTION, digest=digest(self.action))


def ordered(action: Action = TEXT) -> Scene:
    scene = Scene(action)
    scene.order()
    return scene


@pytest.mark.parametrize(("action", "reports"), [
    (TEXT, keystrokes("Hi 5!", "us")),
    (KeyCombo(keys=["ctrl", "alt", "t"]), Keys(CTRL | ALT, [23])),
    (MouseMove(x=1000, y=-300), Move(1000, -300)),
])
def test_what_was_approved_may_be_typed_and_nothing_behind_it(action: Action, reports: Text | Keys | Move) -> None:
    scene = ordered(action)
    for number in range(reports.of):
        scene.witness.reported(reports.report(number))
    assert scene.witness.typed[EXECUTION].whole
    scene.witness.reported(("release",))
    with pytest.raises(Violation, match="not approved"):
        scene.witness.reported(("keyboard", 0, (4,)))


def test_other_keys_than_approved_are_noticed() -> None:
    scene = ordered()
    scene.witness.reported(("keyboard", 0, (11,)))  # h, and it was to be H: Shift may still come
    scene.witness.reported(("keyboard", 0, ()))
    with pytest.raises(Violation, match="not approved"):
        scene.witness.reported(("keyboard", 0, (12,)))


BEFALLS: dict[str, tuple[str, Callable[[Scene], None]]] = {
    "the switch": ("after the kill", lambda scene: scene.hear("", killed=True)),
    "a machine that sleeps": ("not armed", lambda scene: scene.hear("", usb=False)),
    "a line that is closed": ("not armed", lambda scene: scene.hear("", connected=False)),
    "a disarm": ("not armed", lambda scene: scene.hear("disarm")),
    "a hello": ("not armed", lambda scene: scene.hear("hello")),
    "the end of the lease": ("not armed", lambda scene: setattr(scene, "now", scene.now + 5_001_001)),
    "a reset": ("not armed", lambda scene: scene.witness.powered(BOOT[:-1] + "1", cold=False)),
}


@pytest.mark.parametrize("what", BEFALLS)
def test_typing_without_leave_is_noticed(what: str) -> None:
    says, befalls = BEFALLS[what]
    scene = ordered()
    scene.witness.reported(("keyboard", 2, (11,)))
    befalls(scene)
    with pytest.raises(Violation, match=says):
        scene.witness.reported(("keyboard", 2, (12,)))


def test_typing_again_is_noticed_though_it_is_armed_and_ordered_again() -> None:
    scene = ordered(MouseClick(button="left"))
    scene.witness.reported(("mouse", 1, 0, 0))
    scene.hear("disarm")
    scene.order()
    with pytest.raises(Violation, match="without an order"):
        scene.witness.reported(("mouse", 1, 0, 0))


def test_a_kill_is_remembered_until_the_power_was_cut() -> None:
    scene = Scene(TEXT)
    scene.hear("", killed=True)
    scene.witness.powered(BOOT, cold=False)
    scene.order()
    with pytest.raises(Violation, match="after the kill"):
        scene.witness.reported(("keyboard", 2, (11,)))
    scene.witness.powered(BOOT, cold=True)
    scene.order()
    scene.witness.reported(("keyboard", 2, (11,)))


def test_a_key_that_stays_down_is_noticed() -> None:
    scene = ordered()
    scene.witness.reported(("keyboard", 2, (11,)))
    for _ in range(21):
        scene.now += 100_000
        scene.hear("disarm")
    scene.now += 100_000
    with pytest.raises(Violation, match="stays down"):
        scene.hear("disarm")


def test_every_key_has_its_usage() -> None:
    for key in KEYS:
        assert Typed(KeyCombo(keys=[key] if key in MODIFIERS else ["ctrl", key])).nothing
