"""The real brain and the real gateway beside the warden, with a camera and a model that do what a test says."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from pmagent.actors.model.actor import Gateway
from pmagent.actors.pla.brain.actor import Brain
from pmagent.actors.pla.brain.state import BrainState
from pmagent.contracts.model import ModelAsked, ModelCallRequested, ModelMessage, ModelReplied, ModelUsage
from pmagent.contracts.pla import Action, action_type, payload
from pmagent.contracts.pla_events import (
    FrameSource,
    PlaFrameObserved,
    PlaFrameRequested,
    PlaObserved,
    PlaProposalRefused,
    PlaProposalRequested,
    PlaProposed,
)
from pmagent.events.event import Event
from tests.support.pla import ALICE, PlaHarness

SOURCE = FrameSource(path="/frames")
MODEL = "object:test"

Outcome = Callable[[Event], msgspec.Struct | None]
Answer = PlaProposed | PlaProposalRefused


class BrainHarness(PlaHarness):
    """Everything is started, NORMAL, and in SUGGEST. ``camera`` and ``model`` make outcomes; None: not yet."""

    def __init__(self, *modes: Any) -> None:
        self.camera: Outcome = frame
        self.model: Outcome = lambda event: reply(event, said())
        super().__init__([Gateway(), Brain()])
        self.mode(*(modes or ("SUGGEST",)))

    def obedient(self, event: Event) -> msgspec.Struct | None:
        """The answer of the camera, the model or the device."""
        if isinstance(event.data, PlaFrameRequested):
            return self.camera(event)
        if isinstance(event.data, ModelCallRequested):
            return self.model(event)
        return super().obedient(event)

    def ask(self, action: Action | None = None, **more: Any) -> Event:
        """Somebody asks for a proposal; the request."""
        return self.tell(asked(action, **more))

    def asked_for(self, action: Action | None = None, **more: Any) -> Answer:
        """The answer to that."""
        return self.answer(self.ask(action, **more))

    def from_model(self, **more: Any) -> Answer:
        """The answer to a goal that a model is to make something of."""
        return self.asked_for(goal="open a terminal", model=MODEL, **more)

    def answer(self, request: Event) -> Answer:
        """The one answer to a request; it stands in the request's correlation."""
        (event,) = self.answers(request)
        assert event.correlation == request.correlation
        answer: Answer = event.data
        return answer

    def answers(self, request: Event) -> list[Event]:
        """All answers to a request."""
        kinds = (PlaProposed, PlaProposalRefused, PlaObserved)
        return [
            event for event in self.history if isinstance(event.data, kinds) and event.data.request == request.position
        ]

    @property
    def brain(self) -> BrainState:
        """The brain's state."""
        state: BrainState = self.engine.states["brain"]
        return state

    def questions(self) -> list[list[ModelMessage]]:
        """The questions to the model, message by message."""
        return [event.data.messages for event in self.of(ModelAsked)]


def asked(action: Action | None = None, **more: Any) -> PlaProposalRequested:
    """A request for a proposal."""
    fields: dict[str, Any] = {"goal": "type: it", "requested_by": ALICE, "channel": "cli", "action": action}
    return PlaProposalRequested(**(fields | more))


def frame(event: Event, **more: Any) -> PlaFrameObserved:
    """The frame that the camera took."""
    fields: dict[str, Any] = {
        "name": "frame-1.png", "media_type": "image/png", "sha256": "ab" * 32, "size": 1000, "width": 640,
        "height": 480, "ocr_text": "login:", "ocr": "tesseract 5.3.0",
    }  # fmt: skip
    return PlaFrameObserved(request=event.position, **(fields | more))


def said(action: Action | None = None, rationale: str = "this is the next step", **more: Any) -> str:
    """A model's reply that fits: this action, or a combination of keys."""
    fields: dict[str, Any] = {"action_type": "KEY_COMBO", "payload": {"keys": ["ctrl", "alt", "t"]}}
    if action is not None:
        fields = {"action_type": action_type(action), "payload": payload(action)}
    return json.dumps(fields | {"rationale": rationale} | more)


def reply(event: Event, text: str = "", **more: Any) -> ModelReplied:
    """A model's reply to the call that ``event`` requests."""
    called: ModelCallRequested = event.data
    usage = ModelUsage(input_tokens=10, output_tokens=10, counted=True)
    fields: dict[str, Any] = {"content": text, "tool_calls": [], "usage": usage, "latency_ms": 5}
    return ModelReplied(request=event.position, ask=called.ask, **(fields | more))


def replies(*texts: str) -> Outcome:
    """A model that says one after the other, and the last again and again."""
    left = list(texts)
    return lambda event: reply(event, left.pop(0) if len(left) > 1 else left[0])
