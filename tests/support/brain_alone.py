"""A brain by itself, with a proposal asked for: its state, one event, and what it makes of it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from pmagent.actors.pla.brain.actor import Brain
from pmagent.actors.pla.brain.state import BrainState, Look, Pending
from pmagent.contracts.model import (
    ModelReplied,
    ModelUsage,
)
from pmagent.contracts.payload import encode, type_of
from pmagent.contracts.pla import TypeText, digest
from pmagent.contracts.pla_events import (
    FrameSource,
    PlaFrameObserved,
    PlaObserveRequested,
    PlaProposalRequested,
)
from pmagent.events.event import Event
from pmagent.events.secret_forms import MASK
from tests.support.alone import Alone

TEXT, SECRET = TypeText(text="ls"), TypeText(text="the password is swordfish")
SESSION, NAME, MODEL = "pla-1", "prop-0001", "object:test"
NOW = "2026-11-22T09:00:00.000000Z"

replace = msgspec.structs.replace

EMPTY = BrainState(session_id=SESSION, mode="SUGGEST")
SOURCE = FrameSource(path="/frames")
ASKED = PlaProposalRequested(goal="type: ls", requested_by="ada", channel="cli", action=TEXT, digest=digest(TEXT))
OF_MODEL = PlaProposalRequested(goal="look around", requested_by="ada", channel="cli", model=MODEL)
MASKED = replace(
    ASKED, action=TypeText(text=MASK), masked=True, digest="ab" * 32, chars=12, findings=["password"],
    policy="acknowledge",
)  # fmt: skip
LOOK = PlaObserveRequested(frame=SOURCE, requested_by="ada", channel="cli")
PENDING = Pending(30, "asked", SESSION, "SUGGEST", OF_MODEL, waits=35, model=True)
WAITING = replace(EMPTY, pending=PENDING)
FILMED = replace(EMPTY, pending=replace(PENDING, asked=replace(ASKED, frame=SOURCE), model=False))
LOOKING = replace(EMPTY, looks={29: Look(29, "look", 35)})


def happened(data: Any, actor: str = "operator", kind: Any = "fact", position: int = 41) -> Event:
    return Event(
        position=position, time=NOW, id="41", kind=kind, actor=actor, type=type_of(data), correlation="here",
        causation=40, data=data, raw=encode(data),
    )  # fmt: skip


_ALONE = Alone[BrainState](Brain())
made, kinds = _ALONE.made, _ALONE.kinds


def remembered(state: BrainState, data: Any, actor: str = "warden", kind: Any = "decision") -> BrainState:
    return Brain().evolve(state, happened(data, actor, kind))


def said(action: dict[str, Any] | None = None, **changes: Any) -> str:
    fields = {"action_type": "TYPE_TEXT", "payload": {"text": "ls"}, "rationale": "to see what is there"}
    return json.dumps(fields | (action or {}) | changes)


def replied(content: str = "", ask: int = 35, **more: Any) -> ModelReplied:
    usage = ModelUsage(input_tokens=1, output_tokens=1, counted=True)
    fields: dict[str, Any] = {"content": content or said(), "tool_calls": [], **more}
    return ModelReplied(request=36, ask=ask, usage=usage, latency_ms=1, **fields)


def frame(**more: Any) -> PlaFrameObserved:
    fields: dict[str, Any] = {
        "request": 35, "name": "1.png", "media_type": "image/png", "sha256": "ab" * 32, "size": 9, "width": 1,
        "height": 1, "ocr_text": "", "ocr": "",
    }  # fmt: skip
    return PlaFrameObserved(**(fields | more))
