"""Copilot CLI's hooks: with event names in its own spelling (``PreToolUse``) it speaks Claude Code's dialect.

Source: https://docs.github.com/en/copilot/reference/hooks-reference. Any exit code but 0 refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pmagent.contracts.guest_calls import Answer
from pmagent.guests.dialects import SILENT, Heard, Printed, claude, refusal


def read(event: str, payload: Mapping[str, Any]) -> Heard:
    """The event in neutral shape. Raises msgspec.ValidationError for a payload of another form."""
    return claude.read(event, payload)


def answer(event: str, answer: Answer, reason: str) -> Printed:
    """Silence consents; Copilot's own questions go on."""
    return SILENT if answer == "allow" else refusal(reason)
