"""The PLA's vocabulary beyond the choices of its types: words that texts of events and documents are made of. They are
known to everybody, so that none of them is taken for a secret (``words`` of the area)."""

from __future__ import annotations

from typing import Final

VIOLATIONS: Final = (
    "schema_validation", "missing_field", "bound_exceeded", "mode_mismatch", "missing_approval", "contract_mismatch",
)  # fmt: skip
"""The kinds of ``pla.violation`` (docs/design.md §16.9)."""

MODE_CODES: Final = (
    "requested", "killed", "link_lost", "heartbeat_stale", "contract_mismatch", "device_reset", "lease_lost",
    "outcome_unknown", "mode_mismatch", "kernel_blocked", "restarted", "ended", "halted",
)  # fmt: skip
"""Why a mode changed (``pla.mode_changed``) or the link tripped."""

LOSS_CODES: Final = ("unplugged", "stale", "silent", "closed", "reset", "garbled", "taken")
"""How a device was lost (``hid.lost``)."""

OUTCOMES: Final = (
    "executed", "aborted", "not_executed", "unknown", "recorded", "rejected", "expired", "withdrawn",
)  # fmt: skip
"""Outcomes of a proposal (``pla.proposal_closed``)."""

REFUSALS: Final = (
    "PARSE", "NO_HELLO", "CONTRACT_MISMATCH", "BOOT_MISMATCH", "KILLED", "BUSY", "NOT_ARMED", "NOT_PREPARED", "ORDER",
    "KNOWN", "SCHEMA", "MODE", "BOUNDS", "UNTYPABLE", "APPROVAL", "DIGEST", "CAPS_LOCK", "USB", "MEMORY", "WATCHDOG",
)  # fmt: skip
"""The words with which a device refuses (docs/hid-protocol.md)."""

FIELDS: Final = (
    "execution_id", "proposal_id", "operator_approval", "decision_timestamp", "safety_bounds", "max_text_length",
    "min_action_delay_ms", "max_chars", "rate_limit_ms", "screen_context", "credential_warning", "override_reason",
    "credential_acknowledged", "kill_switch_state", "led_state", "uptime_seconds", "contract_version", "contract_hash",
    "firmware_version", "reset_reason", "previous_log_checksum", "payload_summary", "error_message",
)  # fmt: skip
"""Names that stand in what is said of a document."""

WORDS: Final = (*VIOLATIONS, *MODE_CODES, *LOSS_CODES, *OUTCOMES, *REFUSALS, *FIELDS)
