"""The host's side of a conversation with the device in tests: its contract, its time, its documents."""

from __future__ import annotations

import json
from typing import Any

from pmagent.contracts.pla import Action, action_type, digest, payload

BOOT = "00112233445566aa"
CONTRACT = {"contract_version": "1.0.0", "contract_hash": "c" * 64}
TIME = "2026-11-22T23:59:59Z"
HELLO = {
    "device_id": "device-0001", "boot_id": BOOT, **CONTRACT, "firmware_version": "1.0.0", "reset_reason": "POWER_ON",
    "kill_switch_state": "ARMED", "led_state": False, "armed": False, "max_line": 2048, "layout": "us", "remembers": 64,
}  # fmt: skip


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


def compact(value: object) -> str:
    """Its JSON."""
    return json.dumps(value, separators=(",", ":"))


ONE = "exec-00000001"
