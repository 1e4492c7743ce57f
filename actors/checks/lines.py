"""The checker's events, each in one line."""

from __future__ import annotations

from typing import Final

from pmagent.actors.core.lines import Line, exited

LINES: Final[dict[str, Line]] = {
    "check.answered": "answer to {request}: {results}",
    "check.ran": exited,
    "check.requested": "{kind}s wanted: {checks}",
    "check.run_requested": "run {kind} {name}: {argv}",
    "check.unstarted": "not started: {text}",
}
