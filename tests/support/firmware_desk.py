"""A host's side of the device's line, to write exchanges with (tests.support.firmware_exchanges)."""

from __future__ import annotations

import json
from typing import Any

from pmagent.contracts.pla import Action, TypeText, action_type, digest, payload

BOOT = "00112233445566aa"
CONTRACT = {"contract_version": "1.0.0", "contract_hash": "c" * 64}
TIME = "2026-11-22T23:59:59Z"
MORE = {"...": True}
RELEASE = ["release"]
UP = ["keyboard", 0, []]
STATUS = {"op": "status", **MORE}
"""A report that nobody asked for, whatever it says."""

HELLO = {
    "device_id": "device-0001", "boot_id": BOOT, **CONTRACT, "firmware_version": "1.0.0", "reset_reason": "POWER_ON",
    "kill_switch_state": "ARMED", "led_state": False, "armed": False, "max_line": 2048, "layout": "us", "remembers": 64,
}  # fmt: skip

Step = dict[str, Any]


def down(key: int, modifiers: int = 0) -> list[Any]:
    """A report with one key down."""
    return ["keyboard", modifiers, [key]]


def document(action: Action, execution_id: str) -> dict[str, Any]:
    """An ``action_execute`` document."""
    return {
        "execution_id": execution_id,
        "proposal_id": "prop-00000001",
        "timestamp": TIME,
        "mode": "EXECUTE",
        "action_type": action_type(action),
        "payload": payload(action),
        "safety_bounds": {"max_text_length": 1024, "min_action_delay_ms": 100},
        "operator_approval": {"decision_timestamp": TIME, "operator_id": "op", "digest": digest(action)},
    }


class Desk:
    """A host's side of an exchange: numbers its requests, and keeps the steps."""

    def __init__(self, name: str, begin_ms: int = 0) -> None:
        self.name = name
        self.begin_ms = begin_ms
        self.number = 0
        self.steps: list[Step] = [{"reports": [RELEASE], "tell": []}]

    def step(self, **fields: Any) -> None:
        """A step as it is."""
        self.steps.append(fields)

    def hear(self, op: str, fields: dict[str, Any], tell: list[Any], **step: Any) -> None:
        """A request, and what is told in the same round."""
        self.number += 1
        self.step(hear=[{"n": self.number, "op": op, **fields}], tell=tell, **step)

    def ask(self, op: str, fields: dict[str, Any], answer: dict[str, Any], **step: Any) -> None:
        """A request that is done."""
        self.hear(op, fields, [{"re": self.number + 1, "ok": True, **answer}], **step)

    def refused(self, op: str, fields: dict[str, Any], error: str, text: str, **step: Any) -> None:
        """A request that is refused."""
        self.hear(op, fields, [{"re": self.number + 1, "ok": False, "error": error, "text": text}], **step)

    def hello(self, **step: Any) -> None:
        """Hello; what it disarms is released in the same round."""
        self.ask("hello", {**CONTRACT, "time": TIME}, {"hello": HELLO}, ms=10, reports=[RELEASE], **step)

    def arm(self, lease_ms: int = 5000, **step: Any) -> None:
        """Arm; the light goes on."""
        fields = {"boot_id": BOOT, "lease_ms": lease_ms}
        self.ask("arm", fields, {"armed": True, "lease_ms": lease_ms}, led=True, **step)

    def parts(self, execution_id: str, sum: str, text: str, size: int = 512) -> list[dict[str, Any]]:
        """The requests that hand ``text`` over."""
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        common = {"boot_id": BOOT, "execution_id": execution_id, "digest": sum, "parts": len(pieces)}
        return [{**common, "part": part, "data": piece} for part, piece in enumerate(pieces)]

    def prepare(self, action: Action, execution_id: str, of: int, *, led: bool = False, size: int = 512) -> None:
        """Hand over an execution of ``of`` reports."""
        *before, last = self.parts(execution_id, digest(action), compact(document(action, execution_id)), size)
        for part in before:
            self.ask("prepare", part, {"have": part["part"] + 1}, led=led)
        answer = {"have": last["parts"], "state": "PREPARED", "digest": digest(action), "of": of}
        self.ask("prepare", last, answer, led=led)

    def refuse(self, action: Action, error: str, text: str, **changes: Any) -> None:
        """Hand over a document that is refused."""
        sum = changes.pop("sum", None) or digest(action)
        raw = changes.pop("raw", None) or compact({**document(action, ONE), **changes})
        *before, last = self.parts("exec-00000001", sum, raw)
        for part in before:
            self.ask("prepare", part, {"have": part["part"] + 1})
        self.refused("prepare", last, error, text)

    def commit(self, action: Action, execution_id: str, of: int, **step: Any) -> None:
        """Begin it."""
        fields = {"boot_id": BOOT, "execution_id": execution_id, "digest": digest(action)}
        self.ask("commit", fields, {"state": "RUNNING", "done": 0, "of": of}, led=True, **step)

    def asked(
        self, action: Action, execution_id: str, state: str, done: int, of: int, code: str = "", **step: Any
    ) -> None:
        """Status, with what is known of an execution."""
        known = {"execution_id": execution_id, "state": state, "digest": digest(action) if of else ""}
        execution = {**known, "done": done, "of": of, "code": code}
        self.ask("status", {"execution_id": execution_id}, {"status": MORE, "execution": execution}, **step)

    def running(self, action: Action, execution_id: str, of: int, reports: list[Any]) -> None:
        """From hello to the moment when ``reports``, fewer than ``of``, were handed over."""
        self.hello()
        self.prepare(action, execution_id, of)
        self.arm()
        self.commit(action, execution_id, of, ms=8, reports=reports[:1])
        for report in reports[1:]:
            self.step(ms=8, reports=[report], led=True)

    def whole(self) -> dict[str, Any]:
        """The exchange."""
        return {"name": self.name, "begin_ms": self.begin_ms, "steps": self.steps}


def compact(value: object) -> str:
    """Its JSON."""
    return json.dumps(value, separators=(",", ":"))


def ended(action: Action, execution_id: str, state: str, done: int, of: int, code: str = "") -> dict[str, Any]:
    """What is told when an execution has ended."""
    known = {"op": "ended", "execution_id": execution_id, "state": state, "digest": digest(action)}
    return {**known, "done": done, "of": of, "code": code}


HI = TypeText(text="Hi!\n")
HI_REPORTS = [down(11, 2), UP, down(12), UP, down(30, 2), UP, down(40), UP]
ONE = "exec-00000001"
