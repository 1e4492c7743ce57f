"""Laws of the session logs, violations and jobs of the PLA on the disk, read as any program may read them
(docs/design.md §16.8; docs/session-log.md)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from pmagent.contracts.hid import HidCommitRequested, HidOutcomeUnknown
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaExecuted,
    PlaModeChanged,
    PlaProposed,
    PlaRejected,
    PlaSessionBegan,
    PlaSessionEnded,
    PlaViolation,
)
from pmagent.events.event import Event
from pmagent.replay.areas.invariants_pla import OWN
from pmagent.replay.simulation.world import require, there

_TOLD: Final = (
    PlaModeChanged, PlaProposed, PlaApproved, PlaRejected, HidCommitRequested, PlaExecuted, HidOutcomeUnknown,
    PlaViolation,
)  # fmt: skip
"""Each of these has its entry."""


def check_session_logs(files: Mapping[str, bytes], folder: str, history: Sequence[Event], sums: Sequence[str]) -> None:
    """``files``: path -> content, those below ``folder`` are documents. Each chain holds, each entry is of an event of
    the log, each event that matters has its entry, and jobs end as their sessions did. Raises Violation."""
    entries: Counter[int] = Counter()
    violations: Counter[int] = Counter()
    for path, content in files.items():
        if not path.startswith(f"{folder}/sessions/"):
            continue
        for entry in _chain(path, content):
            position = entry["details"]["position"]
            require(sums[position - 1] == entry["details"]["sum"], f"{path}: an entry is of another log")
            event = history[position - 1]
            require(event.type == entry["details"]["event"], f"{path}: an entry is of another event")
            (violations if path.endswith(".violations.jsonl") else entries)[position] += 1
    for event in history:
        if event.kind != "decision" or OWN.get(type(event.data), event.actor) != event.actor:
            continue
        if isinstance(event.data, _TOLD):
            require(entries[event.position] > 0, f"{event.type} at {event.position} stands in no session log")
        if isinstance(event.data, PlaViolation):
            require(violations[event.position] == 1, f"the violation at {event.position} is not told once")
    _jobs(files, folder, history)


def _chain(path: str, content: bytes) -> list[dict[str, Any]]:
    previous, entries = "0" * 64, []
    for line in content.decode().splitlines():
        entry = json.loads(line)
        require(entry["previous_log_checksum"] == previous, f"{path}: the chain is broken")
        stated = entry.pop("checksum")
        canonical = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        previous = sha256(canonical.encode()).hexdigest()
        require(stated == previous, f"{path}: a checksum is wrong")
        entries.append(entry)
    return entries


def _jobs(files: Mapping[str, bytes], folder: str, history: Sequence[Event]) -> None:
    states: dict[str, str] = {}
    for event in history:
        if event.actor == "warden" and isinstance(event.data, PlaSessionBegan):
            states[event.data.session_id] = "running"
        elif event.actor == "warden" and isinstance(event.data, PlaSessionEnded):
            states[event.data.session_id] = event.data.state
    for session_id, state in states.items():
        raw = there(files.get(f"{folder}/jobs/{session_id}.json"), f"session {session_id} has no job")
        status = json.loads(raw)["status"]
        require(status == state, f"session {session_id} is {state}, and its job says {status}")
