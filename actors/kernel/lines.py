"""The kernel watcher's events, each in one line."""

from __future__ import annotations

from typing import Any, Final

from pmagent.actors.core.lines import Line, shown


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
