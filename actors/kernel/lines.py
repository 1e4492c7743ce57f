"""The kernel watcher's events, each in one line, and its alerts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pmagent.actors.core.alerts import Alert, Judged, Judges, Over, reasons
from pmagent.actors.core.lines import Line, shown
from pmagent.events.event import Event

if TYPE_CHECKING:
    from pmagent.contracts.control import Severity


def _mode_decided(data: dict[str, Any]) -> str:
    was = data.get("previous")
    now = shown(data.get("mode"))
    change = f"{shown(was)} → {now}" if was and was != data.get("mode") else now
    reasons = data.get("reasons")
    return f"{change}: {shown(reasons)}" if reasons else change


def _observed(data: dict[str, Any]) -> str:
    listed = data.get("surfaces")
    surfaces = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    bad = [f"{shown(one.get('path'))} {shown(one.get('status'))}" for one in surfaces if one.get("status") != "ok"]
    return f"{len(surfaces) - len(bad)} of {len(surfaces)} surfaces ok" + (f"; {shown(bad)}" if bad else "")


LINES: Final[dict[str, Line]] = {
    "kernel.mode_decided": _mode_decided,
    "kernel.observed": _observed,
    "kernel.read_requested": "read the surfaces: {why}",
}


def _mode(event: Event) -> Iterator[Judged]:
    mode, detail = event.data.mode, reasons(event.data.reasons)
    for kind, of, severity in _MODES:
        made = Alert(kind=kind, severity=severity, title=f"The kernel is {of}", detail=detail, page="/#kernel")
        yield made if mode == of else Over(kind)


_MODES: Final[tuple[tuple[str, str, Severity], ...]] = (
    ("kernel_blocked", "BLOCKED", "urgent"), ("kernel_degraded", "DEGRADED", "warn"),
)  # fmt: skip

ALERTS: Final[Judges] = {"kernel.mode_decided": _mode}
