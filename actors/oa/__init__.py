"""The orchestrator assistant (OA): snapshots, sessions, permits and escalations (docs/design.md §12)."""

from typing import Final

from actors.area import Area

AREA: Final = Area(
    name="oa",
    families=("oa", "reasoning"),
    contracts=("contracts.oa", "contracts.reasoning_events"),
    actors={
        "oa": "actors.oa.actor:Oa",
        "context": "actors.oa.context:ContextKeeper",
        "reasoner": "actors.oa.reasoning.actor:Reasoner",
    },
    after=("kernel",),
    projections=("projections.oa_state:OaState",),
    lines="actors.oa.lines:LINES",
    simulated="replay.simulation.tools:part",
    laws=(
        "replay.simulation.invariants_reasoning:check_reasoning",
        "replay.simulation.invariants_reasoning:check_contexts",
    ),
    rests=("replay.simulation.invariants_reasoning:check_idle",),
)
