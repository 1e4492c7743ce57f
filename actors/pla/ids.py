"""Ids of sessions, proposals and executions: derived from the event that they begin with, and never met in another
log, for a device remembers executions by their ids."""

from __future__ import annotations

from hashlib import sha256

from pmagent.events.event import Event


def derived(prefix: str, event: Event) -> str:
    """``<prefix>-<32 hex digits>``: of the event's id, time and position."""
    return f"{prefix}-{sha256(f'{event.id}|{event.time}|{event.position}'.encode()).hexdigest()[:32]}"
