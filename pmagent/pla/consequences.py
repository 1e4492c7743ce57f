"""The cost of an action, whether it can be taken back, and whom it reaches; pure (docs/design.md §18.3)."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from pmagent.actors.pla.switch import said
from pmagent.firmware.actions import Move
from pmagent.firmware.core import ACTION_MS, REPORT_MS
from pmagent.firmware.layout import presses

Reversible = Literal["yes", "no", "not known"]

_COMMANDS: Final = frozenset(("ctrl", "alt", "gui", "enter"))


class Cost(msgspec.Struct, frozen=True):
    """``reports`` that the device sends, and the least ``seconds`` that this takes."""

    reports: int
    seconds: float


def cost(document: dict[str, Any]) -> Cost:
    """The cost of carrying out a proposal. A text of which parts are masked counts by what it hides."""
    payload = document["payload"]
    match document["action_type"]:
        case "TYPE_TEXT" if not document["masked"]:
            layout = payload.get("layout", "us")
            reports = 2 * sum(len(presses(character, layout) or ".") for character in payload["text"])
        case "TYPE_TEXT":
            reports = 2 * document["chars"]  # each character: its keys down, all keys up; dead keys are not counted
        case "MOUSE_MOVE":
            reports = Move(payload["x"], payload["y"]).of
        case _:
            reports = 2
    return Cost(reports, (ACTION_MS + reports * REPORT_MS) / 1000)


def characters_typed(document: dict[str, Any], done: int) -> int:
    """How many characters of a text ``done`` reports have typed: a press is two of them, the second its end; a
    character behind a dead key has two presses. A masked text counts as if it had none."""
    if document["action_type"] != "TYPE_TEXT":
        return 0
    if document["masked"]:
        return min((done + 1) // 2, int(document["chars"]))
    left, typed = (done + 1) // 2, 0
    for character in document["payload"]["text"]:
        left -= len(presses(character, document["payload"].get("layout", "us")) or ".")
        if left < 0:
            break
        typed += 1
    return typed


class Reversal(msgspec.Struct, frozen=True):
    """Whether it can be taken back, and why."""

    can: Reversible
    why: str


def reversal(document: dict[str, Any]) -> Reversal:
    """Whether what a proposal does can be taken back. Nothing that was typed is ever taken back by pmagent itself."""
    payload = document.get("plain") or document["payload"]
    match document["action_type"]:
        case "TYPE_TEXT" if "\n" in payload["text"]:
            return Reversal("no", "what Enter has run or sent is done")
        case "TYPE_TEXT" if document["masked"] and not document.get("plain"):
            return Reversal("not known", "what is masked may hold an Enter")
        case "TYPE_TEXT":
            return Reversal("yes", "what stands in a field can be erased, as long as nobody sends it")
        case "KEY_COMBO" if _COMMANDS & set(payload["keys"]):
            return Reversal("not known", "a command; whether it can be undone is for the program that takes it")
        case "KEY_COMBO":
            return Reversal("not known", "it depends on the program in front")
        case "MOUSE_MOVE":
            return Reversal("yes", "the pointer can be moved back")
    return Reversal("not known", "it depends on what lies under the pointer")


class Means(msgspec.Struct, frozen=True):
    """The effect of approving it now, the reasons against it, and ``act``: the words of who approves it."""

    text: str
    hindered: list[str]
    act: str


def means(pla: dict[str, Any], machine: str | None = None, *, paused: bool) -> Means:
    """The effect of an approval as the PLA stands (``pla.status``), for the proposal's declared ``machine``. The warden
    decides when it comes."""
    mode, device = pla["mode"], pla["device"]
    if mode != "EXECUTE":
        return Means(f"In {mode} an approval is recorded, and nothing is typed.", [], "Approve, record only")
    hindered: list[str] = []
    if device is None:
        hindered.append("no device is linked")
    else:
        if not device["compatible"]:
            hindered.append(f"the device's contract is another: {device['text']}")
        if device["kill_switch_state"] != "ARMED":
            hindered.append(said(f"the kill switch is {device['kill_switch_state']}"))
        if device.get("caps_lock"):
            hindered.append("Caps Lock is on, and with it no letter is typed")
    if not pla["armed"]:
        hindered.append("the device is not armed")
    if paused:
        hindered.append("effects are paused")
    where = "" if device is None else f" on {machine or device['device_id']}"
    return Means("In EXECUTE what is approved is typed at once.", hindered, f"Approve and type now{where}")
