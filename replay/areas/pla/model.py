"""Proposals of a model for typing: good answers, and answers that no model should give."""

from __future__ import annotations

from typing import Any, Final

from pmagent.actors.pla.brain.model_goal import SHAPE_NAME
from pmagent.replay.simulation.world import World

ANSWER: Final = SHAPE_NAME
"""The name of the answer that a model is bound to."""

_GOOD: Final[tuple[dict[str, Any], ...]] = (
    {"action_type": "TYPE_TEXT", "payload": {"text": "df -h\n"}},
    {"action_type": "KEY_COMBO", "payload": {"keys": ["ctrl", "c"]}},
    {"action_type": "MOUSE_MOVE", "payload": {"x": 10, "y": -5}},
    {"action_type": "MOUSE_CLICK", "payload": {"button": "left"}},
)
_POOR: Final[tuple[dict[str, Any], ...]] = (
    {"action_type": "NONE", "payload": {}},
    {"action_type": "TYPE_TEXT", "payload": {"text": "x" * 2000}},
    {"action_type": "TYPE_TEXT", "payload": {"text": "a", "enter": True}},
    {"action_type": "KEY_COMBO", "payload": {"keys": ["power"]}},
    {"action_type": "MOUSE_MOVE", "payload": {"x": 1.5, "y": True}},
    {"action_type": "RUN", "payload": {}},
)


def proposal(world: World, secret: str) -> dict[str, Any]:
    """An answer; now and then with a credential in it."""
    random = world.chance.stream("models: proposals")
    chosen = random.choice(_GOOD if random.random() < 0.7 else _POOR)
    if random.random() < 0.1:
        chosen = {"action_type": "TYPE_TEXT", "payload": {"text": f"password={secret}"}}
    return {**chosen, "rationale": f"the screen asks for it, and speaks of {secret if random.random() < 0.1 else 'it'}"}
