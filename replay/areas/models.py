"""A model in the simulation: what it answers to a call, from good answers to all that no model should say."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any, Final, get_args

import msgspec

from pmagent.contracts.model import (
    ModelAsked,
    ModelCallFailed,
    ModelCallRequested,
    ModelErrorCode,
    ModelReplied,
    ModelToolCall,
    ModelUsage,
)
from pmagent.contracts.reasoning import TOOL_IDS
from pmagent.events.event import Event
from pmagent.replay.areas.audits import opinion
from pmagent.replay.areas.pla.model import ANSWER, proposal
from pmagent.replay.simulation.chance import between
from pmagent.replay.simulation.performance import Performance, Performances, PerformerContext
from pmagent.replay.simulation.running import Running
from pmagent.replay.simulation.world import World

CODES: Final[tuple[ModelErrorCode, ...]] = get_args(ModelErrorCode)
TRANSIENT: Final = frozenset(("rate_limited", "overloaded", "network", "timed_out", "malformed"))

PERMITTING: Final[dict[str, dict[str, Any]]] = {
    "SafeOPSDecisionResult": {"allowed_action": "PROCEED", "safety_check_summary": "fine"},
    "OPSBlockGeneratorResult": {"ops_block": ["pmagent status"], "complexity_score": 1, "risk_analysis": "none"},
    "GuardFailureInterpreterResult": {"root_cause": "nobody knows", "remediation_plan": "wait", "is_transient": True},
    "PhaseTransitionValidatorResult": {"transition_status": "READY", "missing_criteria": []},
}
CAREFUL: Final[dict[str, dict[str, Any]]] = {
    "SafeOPSDecisionResult": {"allowed_action": "ABORT", "safety_check_summary": "better not"},
    "OPSBlockGeneratorResult": {"ops_block": [], "complexity_score": 1, "risk_analysis": "it is not said what"},
    "GuardFailureInterpreterResult": {
        "root_cause": "the phase", "remediation_plan": "pmagent kernel refresh", "is_transient": False,
    },
    "PhaseTransitionValidatorResult": {"transition_status": "NOT_READY", "missing_criteria": ["a criterion"]},
}
"""Payload's name -> an answer of a model's that permits what can be permitted, and one that does not."""

LIES: Final = {
    "model: garbage": "garbage",
    "model: another shape": "shape",
    "model: unknown keys": "keys",
    "model: permits everything": "permits",
    "model: writes without end": "endless",
    "model: asks for tools": "tools",
}
"""Fault -> what the reply is instead of a good one."""


class Models:
    """The performer of model calls."""

    def __init__(self, world: World, secret: str) -> None:
        self._world = world
        self._random = world.chance.stream("models")
        self._secret = secret

    def outcome(self, event: Event, asked: ModelAsked) -> ModelReplied | ModelCallFailed:
        """How the call that ``event`` requests ends, which came to be because of the question ``asked``."""
        random, faults = self._random, self._world.faults
        if faults.strike("model: fails"):
            return self.failed(event, random.choice(CODES))
        if faults.strike("model: rate limited"):
            return self.failed(event, "rate_limited", between(random, 0.0, 30.0))
        lie = next((lie for fault, lie in LIES.items() if faults.strike(fault)), "")
        return self._reply(event, asked, lie)

    def failed(self, event: Event, code: ModelErrorCode, after: float | None = None) -> ModelCallFailed:
        """The call gave no reply."""
        request: ModelCallRequested = event.data
        return ModelCallFailed(
            request=event.position, ask=request.ask, code=code, error="SimulatedError", transient=code in TRANSIENT,
            retry_after_s=after, latency_ms=self._random.randrange(1000),
        )

    def _reply(self, event: Event, asked: ModelAsked, lie: str) -> ModelReplied:
        random = self._random
        name = asked.answer.name if asked.answer is not None else "SafeOPSDecisionResult"
        answer = self._answer(asked, name, lie)
        text, calls = _text(random, answer, lie, self._secret), self._tool_calls() if lie == "tools" else []
        fields: dict[str, Any] = {}
        if asked.engine == "dspy" and lie in ("", "permits"):
            text, fields = "", answer
        elif lie in ("", "permits") and random.random() < 0.3:
            text, calls = "", [ModelToolCall(id="answer", name=name, args=answer)]
        tokens = random.randrange(1, 4000)
        return ModelReplied(
            request=event.position, ask=event.data.ask, content=text, tool_calls=calls, fields=fields,
            usage=ModelUsage(input_tokens=tokens, output_tokens=len(text) // 4, counted=random.random() < 0.5),
            latency_ms=random.randrange(1000), model=asked.model, finish="stop",
        )

    def _answer(self, asked: ModelAsked, name: str, lie: str) -> dict[str, Any]:
        if name == "JudicialOpinion":
            return opinion(self._world, asked, self._secret)
        if name == ANSWER:
            return proposal(self._world, self._secret)
        careful = lie != "permits" and self._random.random() < 0.3
        return {
            **(CAREFUL if careful else PERMITTING)[name], "rationale": f"because of api_key={self._secret}",
            "conditions": [], "warnings": ["look"],
        }

    def _tool_calls(self) -> list[ModelToolCall]:
        """Tools: allowed ones or not, none at all, with good arguments or bad ones."""
        random = self._random
        names = [*(tool.replace(".", "_") for tool in TOOL_IDS), *TOOL_IDS, "rm", "", "oa.guard.run.x"]
        some: list[dict[str, Any]] = [
            {}, {"name": "oa_state"}, {"name": "oa_state", "mode": "STRICT"}, {"name": "oa_state", "mode": 7},
            {"workspace": "/etc"}, {"name": "oa_state", "workspace": "/etc"}, {"name": self._secret},
        ]
        return [
            ModelToolCall(id=f"wish-{number}", name=random.choice(names), args=random.choice(some))
            for number in range(random.choice((1, 1, 2, 3, 40)))
        ]


def _text(random: Random, answer: dict[str, Any], lie: str, secret: str) -> str:
    match lie:
        case "garbage":
            return random.choice(("", "Sure! PROCEED.", "{", "nul", "[" * 500, f"the key is {secret}"))
        case "shape":
            return random.choice((
                "[]", "null", '"PROCEED"', '{"allowed_action":"PROCEED"}', '{"ops_block":"rm -rf /"}',
                msgspec.json.encode({name: [value] for name, value in answer.items()}).decode(),
                msgspec.json.encode({**answer, "rationale": None}).decode(),
            ))
        case "keys":
            return msgspec.json.encode({**answer, "allowed_actions": "PROCEED", "x": {"y": 1}}).decode()
        case "endless":
            return random.choice(("x" * 100_000, msgspec.json.encode({**answer, "rationale": "x" * 100_000}).decode()))
        case "tools":
            return random.choice(("", "let me look"))
    return msgspec.json.encode(answer).decode()


def part(context: PerformerContext) -> Performances:
    """See ``Area.simulated``."""
    world, models = context.world, Models(context.world, context.secret)

    def perform(running: Running, seconds: float) -> float | None:
        limit = running.event.data.seconds
        if seconds > limit or world.faults.strike("model: times out"):
            late = partial(models.failed, running.event, "timed_out")
            world.later(limit, "model timed out", lambda: context.answer(running, late()))
            return None
        world.later(seconds, "model", lambda: context.answer(running, context.outcome(running)))
        return seconds

    def outcome(event: Event) -> ModelReplied | ModelCallFailed:
        return models.outcome(event, context.read(event.data.ask).data)

    return {ModelCallRequested: Performance(outcome, "model: hangs", "model: answers twice", perform)}
