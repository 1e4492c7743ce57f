"""Documents of proposals, and of how the PLA stands, as the daemon tells them."""

from __future__ import annotations

from typing import Any

import msgspec

from pmagent.contracts.pla import Action, digest, payload

PROPOSAL = "prop-00000000000000000000000000000001"


def proposal(action_type: str, shown: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An open proposal of ada's, over the command line."""
    action: Action = msgspec.convert({"action_type": action_type, **shown}, Action)
    return {
        "proposal_id": PROPOSAL, "stands": "open", "outcome": None, "why": None, "action_type": action_type,
        "payload": payload(action), "session_id": "pla-00000000000000000000000000000002", "masked": False,
        "digest": digest(action), "chars": len(shown.get("text", "")), "rationale": "to see what is there",
        "credential_warning": False, "findings": [], "policy": "refuse", "requested_by": "ada", "proposed_by": "rules",
        "channel": "cli", "expires_at": "2026-11-22T12:05:00.000000Z", "frame": 0, "ocr_text": "", "two_persons": False,
        "proposed_in": "SUGGEST", "proposed_at": "2026-11-22T12:00:00.000000Z", "seconds_left": 300.0,
        "decided_by": None, "decided_at": None, "decided_over": None, "approval_expires_at": None, "execution_id": None,
        "closed_at": None, "position": 14, "layout": None, "machine": None, **more,
    }  # fmt: skip


def typed(text: str, **more: Any) -> dict[str, Any]:
    """The proposal to type ``text``."""
    return proposal("TYPE_TEXT", {"text": text}, **more)


def pressed(*keys: str, **more: Any) -> dict[str, Any]:
    """The proposal to press ``keys`` together."""
    return proposal("KEY_COMBO", {"keys": list(keys)}, **more)


def moved(x: int, y: int, **more: Any) -> dict[str, Any]:
    """The proposal to move the pointer."""
    return proposal("MOUSE_MOVE", {"x": x, "y": y}, **more)


def clicked(button: str, **more: Any) -> dict[str, Any]:
    """The proposal to press a button."""
    return proposal("MOUSE_CLICK", {"button": button}, **more)


def status(**more: Any) -> dict[str, Any]:
    """How the PLA stands, with a device that is in order but not armed; a ``device`` that is given only says what is
    other about it."""
    device = {
        "device_id": "device-0001", "boot_id": "0123456789abcdef", "port": "/dev/ttyACM0", "firmware_version": "1.0.0",
        "compatible": True, "text": "", "kill_switch_state": "ARMED",
    }  # fmt: skip
    given = more.pop("device", {})
    return {
        "running": True, "mode": "SUGGEST", "session": None, "ending": None, "action_class": "feature_work",
        "kernel": "NORMAL", "device": None if given is None else {**device, **given}, "trouble": None, "armed": False,
        "proposal": None, "halted": [], **more,
    }  # fmt: skip
