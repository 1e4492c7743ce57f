"""Scripts for the device: what a host, a line, a switch and a machine do to it, drawn at random."""

from __future__ import annotations

from random import Random
from typing import Any

from pmagent.contracts.pla import Action, KeyCombo, MouseClick, MouseMove, TypeText, digest
from pmagent.firmware.lines import encode
from tests.support.firmware_board import BOOT, CONTRACT, TIME, compact, document

TEXTS = ("a", "Hi!", 'q"\\\n\t', "0123456789", "~`|", "abc" * 10)
ALPHABET = "".join(map(chr, range(0x20, 0x7F))) + "\n"


def actions() -> list[Action]:
    """Actions that may be typed."""
    others: list[Action] = [
        KeyCombo(keys=["ctrl", "c"]), KeyCombo(keys=["gui"]), MouseMove(x=300, y=-5), MouseClick(button="left"),
    ]  # fmt: skip
    return [*(TypeText(text=text) for text in TEXTS), *others]


def script(chance: Random, length: int = 60) -> list[dict[str, Any]]:
    """Steps for ``firmware_player.recorded``. Mostly a host that does it right, so that something is typed."""
    host = _Host(chance)
    machine = {"killed": False, "dtr": True, "usb": True, "caps_lock": False, "room": 4096}
    steps = []
    for _ in range(length):
        for name, often in (("dtr", 0.01), ("usb", 0.01), ("caps_lock", 0.01)):
            if chance.random() < (often if machine[name] == (name != "caps_lock") else 0.5):
                machine[name] = not machine[name]
        machine["killed"] = chance.random() < 0.003
        machine["room"] = chance.choice((4096, 4096, 4096, 64, 1, 0))
        steps.append(
            {
                "ms": chance.choice((1, 5, 8, 8, 8, 20, 100, 700)),
                "bytes": "".join(host.lines()),
                "machine": dict(machine),
                "taken": chance.random() > 0.005,
            }
        )
    return steps


class _Host:
    """Goes its way from hello to commit, and loses it now and then."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.number = 0
        self.way: list[dict[str, Any]] = []
        self.said: list[str] = []

    def lines(self) -> list[str]:
        """The arrivals of one step: nothing, a line, or what became of one on its way."""
        chance = self.chance
        if chance.random() < 0.4:
            return []
        if not self.way:
            self.way = self.whole()
        self.number += 1
        line = encode({"n": self.number, **self.way.pop(0)}).decode()
        self.said.append(line)
        kind = chance.random()
        if kind < 0.9:
            return [line]
        at = chance.randrange(len(line))
        if kind < 0.92:
            return [line[:at]]
        if kind < 0.94:
            return [line[:at] + chance.choice(ALPHABET) + line[at + 1 :]]
        if kind < 0.96:
            return [line, line]
        if kind < 0.98:
            return [chance.choice(self.said)]
        return ["".join(chance.choice(ALPHABET) for _ in range(chance.randrange(80))), "\n", line]

    def whole(self) -> list[dict[str, Any]]:
        """The requests of one execution, and some that ask."""
        chance = self.chance
        action = chance.choice(actions())
        execution_id = f"exec-{chance.randrange(4):08d}"
        sum = digest(action) if chance.random() < 0.95 else "0" * 64
        text = compact(document(action, execution_id))
        if chance.random() < 0.05:
            text = text.replace("EXECUTE", "OBSERVE")
        size = chance.choice((512, 512, 200))
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        named = {"boot_id": BOOT, "execution_id": execution_id, "digest": sum}
        way: list[dict[str, Any]] = [{"op": "hello", **CONTRACT, "time": TIME}] if chance.random() < 0.4 else []
        for part, piece in enumerate(pieces):
            way.append({"op": "prepare", **named, "part": part, "parts": len(pieces), "data": piece})
        if chance.random() < 0.95:
            way.append({"op": "arm", "boot_id": BOOT, "lease_ms": chance.choice((500, 2000))})
        way.append({"op": "commit", **named})
        way.extend({"op": "ping", "boot_id": BOOT} for _ in range(chance.randrange(8)))
        way.append({"op": "status", "execution_id": execution_id})
        if chance.random() < 0.2:
            way.append({"op": "disarm"})
        return way
