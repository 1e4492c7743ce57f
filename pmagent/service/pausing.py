"""Texts and refusals while effects are paused (``pmagent pause``).

Beside a daemon a job waits, and whoever follows it is told why. A command without one holds the log itself: nobody
could resume effects beside it, so it would wait for ever, and is refused before anything is recorded. So is, anywhere,
what is asked for by somebody who waits for just its answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pmagent.actors.core.gate import GateState
from pmagent.events.errors import PmagentError
from pmagent.service.host import Host
from pmagent.when import short

PAUSED: Final = "control.paused"
RESUMED: Final = "control.resumed"


class Paused(PmagentError, exit_code=1):
    """Effects are paused, and what is asked for would wait with nobody told why; nothing was recorded."""


def refuse_if_paused(host: Host) -> None:
    """For what needs effects, and is not to wait for them. Raises Paused."""
    gate: GateState = host.runtime.engine.states["gate"]
    if gate.pause is not None:
        what = f"{by_whom(msgspec.structs.asdict(gate.pause))}, so nothing of it would start"
        hint = "pmagent resume, and ask again; beside a daemon (pmagent up) runs and audits wait until then"
        raise Paused(what, hint)


def by_whom(pause: Mapping[str, Any]) -> str:
    """That effects are paused, as the status has it (``paused``): by whom, since when, and why."""
    why = f" ({pause['reason']})" if pause["reason"] else ""
    return f"effects are paused by {pause['operator_id']} since {short(pause['time'])} UTC{why}"
