"""The clock's events, each in one line."""

from __future__ import annotations

from typing import Final

from pmagent.actors.core.lines import Line

LINES: Final[dict[str, Line]] = {"timer.fired": "timer {request} {name}", "timer.requested": "at {at} {name}"}
