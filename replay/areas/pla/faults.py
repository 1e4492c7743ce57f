"""Which faults befall the PLA in a simulated world, how often, and what must follow from them."""

from __future__ import annotations

from typing import Final

_LINE: Final = {
    "dropped": 0.01, "cut": 0.01, "in pieces": 0.1, "merged": 0.03, "doubled": 0.03, "flipped": 0.03, "garbage": 0.03,
    "overlong": 0.01, "delayed": 0.01, "repeated later": 0.06,
}  # fmt: skip

PLA_CHANCES: Final[dict[str, float]] = {
    **{f"line to the {end}: {what}": chance for end in ("device", "host") for what, chance in _LINE.items()},
    "line: probed as a modem": 0.02,
    "line: echoes": 0.02,
    "line: an answer to commit is lost": 0.5,
    "line: an order comes again": 0.3,
    "line: another device answers": 0.1,
    "switch: hit": 0.1,
    "switch: hit while it types": 0.03,
    "switch: hit between approval and order": 0.1,
    "switch: closed, and the power not cut": 0.3,
    "switch: closed, and a reset instead of power": 0.3,
    "device: its line is a UART": 0.5,
    "device: is for practice": 0.3,
    "device: another contract": 0.1,
    "device: unplugged": 0.05,
    "device: unplugged while it types": 0.02,
    "device: watchdog": 0.1,
    "device: watchdog while it types": 0.02,
    "device: its loop stalls": 0.003,
    "device: no memory": 0.4,
    "device: a report is not taken": 0.01,
    "device: its firmware fails": 0.03,
    "machine: sleeps": 0.1,
    "machine: sleeps while it types": 0.02,
    "machine: Caps Lock": 0.08,
    "machine: Caps Lock while it types": 0.02,
    "machine: another layout is declared": 0.15,
    "host: its log hangs while it types": 0.02,
    "host: does not read": 0.05,
    "host: the log is slow": 0.03,
    "host: dies while it types": 0.02,
    "host: stops while it types": 0.02,
    "clock: jumps after an approval": 0.4,
    "performer: limit reached": 0.02,
    "operator: skips a mode": 0.1,
    "operator: arms out of turn": 0.1,
    "operator: proposes in OBSERVE": 0.1,
    "operator: proposes once more": 0.1,
    "operator: stays in SUGGEST": 0.15,
    "operator: approves other bytes": 0.2,
    "operator: approves late": 0.1,
    "operator: approves twice": 0.2,
    "operator: approves what is unknown": 0.1,
    "operator: approves the own proposal": 0.5,
    "operator: does not acknowledge": 0.4,
    "operator: does not wait": 0.3,
    "operator: rejects": 0.1,
    "operator: rejects without a reason": 0.15,
    "operator: never decides": 0.1,
    "operator: disarms before": 0.1,
    "operator: disarms while it types": 0.02,
    "operator: lowers the mode": 0.05,
    "operator: lowers the mode while it types": 0.02,
    "operator: lowers the mode after an approval": 0.3,
    "operator: ends the session": 0.05,
    "operator: ends the session while it types": 0.02,
    "goal: states nothing": 0.05,
    "goal: too long": 0.05,
    "goal: cannot be typed": 0.05,
    "goal: no such key": 0.05,
    "goal: out of bounds": 0.05,
    "goal: holds a secret": 0.4,
    "frame: none": 0.3,
    "frame: hostile": 0.3,
    "border: a document that is none": 0.1,
    "intruder: asks for an execution": 0.25,
    "intruder: forges an approval": 0.25,
    "intruder: hands over other bytes": 0.25,
    "intruder: orders": 0.25,
    "intruder: orders with a permit": 0.25,
    "intruder: arms": 0.25,
    "intruder: forges a fact": 0.25,
}
"""Fault -> the chance that it strikes at an occasion, at its most frequent."""

ENDING_CHANCES: Final[dict[str, float]] = {
    "goal: long": 0.9,
    "line: a disarm is lost": 0.8,
    "operator: disarms while an order waits": 0.5,
    "operator: has it ended, and disarms are lost": 0.012,
    "actor: brain halts": 0.01,
    "actor: warden halts": 0.01,
    "actor: hid halts": 0.01,
    "actor: warden halts while it types": 0.002,
    "actor: hid halts while it types": 0.002,
    "actor: warden and hid halt while it types": 0.004,
    "actor: nobody resumes it": 0.2,
}
"""The means of ending the typing fail, and there is much to type: drawn from a source of its own."""

WHILE_TYPING: Final = (
    *(name for name in PLA_CHANCES if name.endswith("while it types")),
    "device: a report is not taken", "device: its firmware fails", "device: its loop stalls",
)  # fmt: skip
"""Faults that may strike at each keystroke. In runs with long texts nothing would ever end with all of them."""

WHERE_LONG: Final = ("operator: has it ended, and disarms are lost", "actor: warden and hid halt while it types")
"""Faults that only a long text shows: a run with such texts always has these."""

PLA_CONSEQUENCES: Final = (
    "pla: typed", "pla: aborted", "pla: not executed", "pla: outcome unknown", "pla: recorded only", "pla: rejected",
    "pla: expired", "pla: withdrawn", "pla: recovered by asking", "pla: typed in plain what the log masks",
    *(f"pla aborted: {code}" for code in ("KILLED", "DISARMED", "LEASE", "LINK", "USB")),
    *(f"pla mode: {code}" for code in (
        "requested", "killed", "link_lost", "heartbeat_stale", "contract_mismatch", "device_reset", "lease_lost",
        "mode_mismatch", "kernel_blocked", "restarted", "ended",
    )),
    *(f"pla decision refused: {code}" for code in (
        "unknown", "decided", "expired", "digest", "self", "credential", "wait", "reason", "not_armed", "changed",
        "device",
    )),
    *(f"pla proposal refused: {code}" for code in ("mode", "open", "goal", "unfit", "credential")),
    *(f"pla violation: {kind}" for kind in (
        "schema_validation", "bound_exceeded", "mode_mismatch", "missing_approval", "contract_mismatch",
    )),
)  # fmt: skip
"""Consequences of faults; counted too, to prove that they occurred."""
