"""Codex's hooks: Claude Code's dialect, with stricter answers.

Source: https://learn.chatgpt.com/docs/hooks, and the program itself, version 0.169.0. One unknown key in an answer
lets the tool run, and so do ``allow`` and ``ask``: who consents says nothing, and who refuses uses exit code 2.
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
    """Silence consents; Codex's own rules and sandbox go on holding."""
    return SILENT if answer == "allow" else refusal(reason)
