"""The orchestrator assistant (OA): snapshots, sessions, permits and escalations (docs/design.md §12)."""

from typing import Final

from pmagent.actors.core.area import Area

AREA: Final = Area(
    name="oa", families=("oa", "reasoning"), contracts=("pmagent.contracts.oa", "pmagent.contracts.reasoning_events"),
    actors={
        "oa": "pmagent.actors.oa.actor:Oa", "context": "pmagent.actors.oa.context:ContextKeeper",
        "reasoner": "pmagent.actors.oa.reasoning.actor:Reasoner",
    },
    after=("kernel",), projections=("pmagent.projections.oa.state:OaState",), lines="pmagent.actors.oa.lines:LINES",
    alerts="pmagent.actors.oa.lines:ALERTS", simulated="pmagent.replay.areas.tools:part",
    laws=(
        "pmagent.replay.areas.invariants_reasoning:check_reasoning",
        "pmagent.replay.areas.invariants_reasoning:check_contexts",
    ),
    rests=("pmagent.replay.areas.invariants_reasoning:check_idle",),
    words=(
        "pmagent.contracts.reasoning:TOOL_IDS", "pmagent.contracts.reasoning:PROGRAM_IDS",
        "pmagent.contracts.reasoning:ReasoningStatus", "pmagent.contracts.reasoning_events:EngineName",
        "pmagent.actors.oa.policy:ACTIONS",
    ),
)  # fmt: skip
