"""Alerts for operators: violations, modes that fell, outcomes that nobody knows, actors that halted; the newest, from
the log (docs/design.md §16.9).

The log may be long, and a page is made often: the first look reads its end, each later one only what is new.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

import msgspec

from pmagent.events.errors import NotFound
from pmagent.events.event import StoredEvent
from pmagent.log.source import line_runs
from pmagent.log.summaries import payload, summary
from pmagent.workspace.layout import Layout

KEPT: Final = 20
WINDOW: Final = 20_000
"""So many events are looked at first; what lies before them is found with the log's own filters."""

_PING: Final = "hid.ping_requested"
"""While a device is armed one is always under way: each stop of a daemon cuts one off."""

_ASKED: Final = ("requested", "ended")
"""Why a mode falls when somebody wanted that."""


class Alert(msgspec.Struct, frozen=True):
    """An event that somebody should know of. ``kind``: bad or warn; ``what`` in two words; ``gist`` is not clean."""

    position: int
    time: str
    type: str
    kind: str
    what: str
    gist: str


class Alerts:
    """The newest alerts of one log. Safe to be asked from several threads."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._lock = threading.Lock()
        self._log_id = ""
        self._next = 0
        self._first = 1
        self._kept: deque[Alert] = deque(maxlen=KEPT)
        self._ping = 0

    def newest(self) -> tuple[list[Alert], int]:
        """The newest first, and the position from which on they are known. Blocking. Raises CorruptLog."""
        with self._lock:
            try:
                with closing(self._layout.store.reader()) as storage:
                    end = storage.tail().position
                    if storage.log_id() != self._log_id or end + 1 < self._next:  # another log lies there now
                        self._log_id = storage.log_id()
                        self._first = self._next = max(1, end - WINDOW + 1)
                        self._kept.clear()
                        self._ping = 0
                    if self._next <= end:
                        self._read(storage, end)
            except NotFound:
                return [], 1
            return list(self._kept)[::-1], self._first

    def _read(self, storage: Any, end: int) -> None:
        for run, _ in line_runs(storage, self._next, end):
            for event in run:
                if event.type == _PING:
                    self._ping = event.position
                found = _JUDGES.get(event.type)
                if found is None or self._is_ping(event):
                    continue
                if (verdict := found(payload(event))) is not None:
                    self._kept.append(Alert(event.position, event.time, event.type, *verdict, summary(event)))
            self._next = run[-1].position + 1

    def _is_ping(self, event: StoredEvent) -> bool:
        """Whether nothing but the newest ping was cut off."""
        return event.type == "effect.interrupted" and self._ping > 0 and payload(event).get("request") == self._ping


Verdict = tuple[str, str] | None
"""The alert's kind, and what it is in two words; None: it is no alert."""


def _violation(data: dict[str, Any]) -> Verdict:
    return "bad" if data.get("severity") == "error" else "warn", "contract violated"


def _pla_mode(data: dict[str, Any]) -> Verdict:
    return None if data.get("code") in _ASKED else ("warn", "mode fell")


def _kernel_mode(data: dict[str, Any]) -> Verdict:
    return {"BLOCKED": ("bad", "kernel blocked"), "DEGRADED": ("warn", "kernel degraded")}.get(str(data.get("mode")))


def _executed(data: dict[str, Any]) -> Verdict:
    return None if data.get("outcome") == "done" else ("warn", str(data.get("outcome", "")).replace("_", " "))


def _escalated(data: dict[str, Any]) -> Verdict:
    return "bad" if data.get("severity") == "block" else "warn", "escalated"


def _always(kind: str, what: str) -> Callable[[dict[str, Any]], Verdict]:
    return lambda _: (kind, what)


_JUDGES: Final[dict[str, Callable[[dict[str, Any]], Verdict]]] = {
    "pla.violation": _violation,
    "pla.mode_changed": _pla_mode,
    "pla.executed": _executed,
    "hid.outcome_unknown": _always("bad", "outcome unknown"),
    "kernel.mode_decided": _kernel_mode,
    "oa.escalated": _escalated,
    "actor.halted": _always("bad", "actor halted"),
    "effect.interrupted": _always("warn", "effect cut off"),
    "log.recovered": _always("warn", "log recovered"),
    "console.refused": _always("warn", "sign-in refused"),
}
