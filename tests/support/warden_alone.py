"""A warden by itself, at the point of approving: its state, one event, and what it makes of it."""

from __future__ import annotations

from typing import Any

import msgspec

from pmagent.actors.pla.warden.actor import Warden
from pmagent.actors.pla.warden.state import Device, ProposalView, WardenState
from pmagent.contracts.control import EffectsPaused
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.effect import ActorHalted
from pmagent.contracts.payload import encode, type_of
from pmagent.contracts.pla import TypeText, digest
from pmagent.contracts.pla_events import (
    PlaDecisionRequested,
    PlaProposed,
)
from pmagent.events.event import Event
from tests.support.alone import Alone

TEXT = TypeText(text="ls")
BOOT, OTHER_BOOT, SESSION, NAME, EXEC = "0" * 16, "1" * 16, "pla-1", "prop-0001", "exec-0001"
EARLIER, NOW, UNTIL = (f"2026-11-22T09:0{minute}:00.000000Z" for minute in range(3))
SOON = "2026-11-22T09:00:04.999999Z"
"""Not quite five seconds after the proposal was made."""

replace = msgspec.structs.replace

PROPOSED = PlaProposed(
    request=30, session_id=SESSION, proposal_id=NAME, mode="EXECUTE", action=TEXT, masked=False, digest=digest(TEXT),
    chars=2, rationale="to see what is there", credential_warning=False, findings=[], policy="acknowledge",
    requested_by="ada", proposed_by="rules", channel="cli", expires_at=UNTIL,
)  # fmt: skip
VIEW = ProposalView(proposed=PROPOSED, position=31, proposed_at=EARLIER, timer=32)
EXECUTING = replace(VIEW, stands="executing", approval=33, execution_id=EXEC, outcome="approved")
DEVICE = Device("device-1", BOOT, "/dev/pts/9", "1.0.0", compatible=True, text="", kill_switch_state="ARMED")
EMPTY = WardenState(
    session_id=SESSION, operator_id="ada", began_at=EARLIER, mode="EXECUTE", lasting=True, running=True,
    kernel="NORMAL", device=DEVICE, armed=True,
)  # fmt: skip
READY = replace(EMPTY, proposals={NAME: VIEW})
BUSY = replace(EMPTY, proposals={NAME: EXECUTING})
OPEN_TOO = {"prop-0002": replace(VIEW, proposed=replace(PROPOSED, proposal_id="prop-0002"), timer=42), NAME: EXECUTING}

ASKED = PlaDecisionRequested(
    proposal_id=NAME, decision="APPROVED", digest=digest(TEXT), operator_id="bob", channel="cli", seen_mode="EXECUTE"
)  # fmt: skip


def happened(data: Any, actor: str = "operator", kind: Any = "fact", time: str = NOW) -> Event:
    return Event(
        position=41, time=time, id="41", kind=kind, actor=actor, type=type_of(data), correlation="", causation=40,
        data=data, raw=encode(data),
    )  # fmt: skip


_ALONE = Alone[WardenState](Warden())
made, kinds = _ALONE.made, _ALONE.kinds


def remembered(state: WardenState, data: Any, actor: str = "warden", kind: Any = "decision") -> WardenState:
    return Warden().evolve(state, happened(data, actor, kind))


LOW = replace(EMPTY, mode="SUGGEST", armed=False)
PAUSED = EffectsPaused(request=40, since=40, operator_id="bob", channel="console", reason="x")
STARTED = DaemonStarted(version="0", python="3", surface="daemon")


def halted(name: str) -> Event:
    return happened(ActorHalted(name=name, input=1, error="ValueError", place="x"), "engine", "decision")
