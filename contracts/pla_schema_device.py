"""The JSON Schemas of what the device says of itself (docs/design.md §16.1; docs/hid-protocol.md)."""

from __future__ import annotations

from pmagent.contracts.payload import END
from pmagent.contracts.pla import EXECUTIONS_REMEMBERED
from pmagent.contracts.pla_schema_parts import (
    BOOLEAN,
    BOOT,
    COUNT,
    DEVICE,
    FIRMWARE,
    ID,
    MODE,
    MOMENT_TEXT,
    NO,
    SHA256,
    SWITCH,
    VERSION,
    Schema,
    closed,
    exactly,
    integer,
    one_of,
    text,
)

_LINE_MAX = 2048
_LEASE_MS_MAX = 5000


def _error_state() -> Schema:
    codes = one_of(
        "NONE", "COMMAND_PARSE_ERROR", "BOUNDS_VIOLATION", "MODE_MISMATCH", "RATE_LIMIT_EXCEEDED", "USB_HID_FAILURE",
        "UNKNOWN_ERROR",
    )  # fmt: skip
    fields = {"has_error": BOOLEAN, "error_code": codes, "error_message": text("", 0, 500), "error_count": COUNT}
    return closed(fields, optional=("error_message", "error_count"), description="the last error, and how many")


def _execution() -> Schema:
    return closed(
        {
            "execution_id": ID,
            "state": one_of("NONE", "PREPARED", "RUNNING", "DONE", "ABORTED"),
            "digest": text(r"^([0-9a-f]{64})?" + END, description="none where it was never heard of"),
            "done": COUNT | {"description": "reports that were handed to USB"},
            "of": COUNT,
            "code": one_of("", "KILLED", "DISARMED", "LEASE", "LINK", "USB", "CAPS_LOCK", "MEMORY", "WATCHDOG"),
        },
        description="what the device knows of the execution that was asked for",
    )


def device_status() -> Schema:
    """Device to brain, each second and when asked."""
    optional = {
        "last_execution_time": MOMENT_TEXT,
        "error_state": _error_state(),
        "firmware_version": FIRMWARE,
        "action_count": COUNT,
        "contract_version": VERSION,
        "contract_hash": SHA256,
        "boot_id": BOOT,
        "caps_lock": BOOLEAN,
        "lease_ms": integer(0, _LEASE_MS_MAX, "so long it stays armed"),
        "execution": _execution(),
    }
    return closed(
        {
            "device_id": DEVICE,
            "timestamp": MOMENT_TEXT,
            "mode": MODE,
            "led_state": BOOLEAN | {"description": "the light, which is on exactly while it is armed"},
            "kill_switch_state": SWITCH,
            "uptime_seconds": COUNT,
            **optional,
        },
        optional=tuple(optional),
        description="How the device stands (device to brain).",
    )


def hello() -> Schema:
    """Device to brain, at the beginning."""
    return closed(
        {
            "device_id": DEVICE,
            "boot_id": BOOT,
            "contract_version": VERSION,
            "contract_hash": SHA256,
            "firmware_version": FIRMWARE,
            "reset_reason": text(r"^[A-Za-z][A-Za-z0-9_ -]{0,31}" + END),
            "kill_switch_state": SWITCH,
            "led_state": NO,
            "armed": NO,
            "max_line": exactly(_LINE_MAX, "bytes of a line, newline included"),
            "layout": exactly("us"),
            "remembers": exactly(EXECUTIONS_REMEMBERED, "executions that it answers for"),
        },
        description="Who the device is, and which contracts it was built for (device to brain).",
    )
