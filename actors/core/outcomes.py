"""How the end of an effect becomes a fact; pure."""

from __future__ import annotations

import errno
from typing import Any

import msgspec

from pmagent.contracts.effect import EffectFailed, EffectInterrupted
from pmagent.contracts.payload import type_of
from pmagent.events.event import Event


def fact_of(event: Event, outcome: msgspec.Struct) -> tuple[Any, str, str, str, int]:
    """The arguments of ``Intake.fact`` for the outcome of the effect that ``event`` requested."""
    area = type_of(outcome).split(".", 1)[0]
    return outcome, f"{event.position}.outcome", area, event.correlation, event.position


def errno_of(error: Exception) -> str:
    """Which error of the system it was, by its name (" ENOSPC"); "" where there is none. Unlike its text it holds
    nothing of what was being done."""
    name = errno.errorcode.get(error.errno or 0) if isinstance(error, OSError) else None
    return f" {name}" if name else ""


def no_outcome(event: Event, error: str) -> EffectFailed:
    """The end of an effect whose performer came back with nothing."""
    return EffectFailed(request=event.position, error=error, place=event.type)


def unrecorded(event: Event, error: OSError) -> EffectInterrupted:
    """The end of an effect that came to its end, but whose outcome could not be kept."""
    return EffectInterrupted(request=event.position, reason=f"unrecorded{errno_of(error)}")
