"""What is said, and refused, while effects are paused (``pmagent pause``).

Beside a daemon what is asked for waits, and whoever follows it is told why. A command without one holds the log itself:
nobody could resume effects beside it, so it would wait for ever, and is refused before anything is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from actors.gate import GateState
from events.errors import PmagentError
from pmagent.host import Host
from pmagent.when import short

PAUSED: Final = "control.paused"
RESUMED: Final = "control.resumed"


class Paused(PmagentError):
    """Effects are paused, and nobody could resume them while this command waits; nothing was recorded."""

    exit_code = 1


def refuse_if_paused(host: Host) -> None:
    """For what needs effects, in a process that no other command can reach. Raises Paused."""
    gate: GateState = host.runtime.engine.states["gate"]
    if gate.pause is not None:
        what = f"{by_whom(msgspec.structs.asdict(gate.pause))}, so nothing of it would start"
        raise Paused(what, "pmagent resume, and ask again; beside a daemon (pmagent up) it waits until then")


def by_whom(pause: Mapping[str, Any]) -> str:
    """That effects are paused, as the status has it (``paused``): by whom, since when, and why."""
    why = f" ({pause['reason']})" if pause["reason"] else ""
    return f"effects are paused by {pause['operator_id']} since {short(pause['time'])} UTC{why}"
