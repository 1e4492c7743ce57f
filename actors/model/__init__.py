"""The model gateway: every question to a model passes here, within its run's limits (docs/design.md §4.5)."""

from typing import Final

from actors.area import Area

AREA: Final = Area(
    name="model",
    families=("model",),
    contracts=("contracts.model",),
    actors={"model": "actors.model.actor:Gateway"},
    after=("oa",),
    lines="actors.model.lines:LINES",
    simulated="replay.simulation.models:part",
    laws=("replay.simulation.invariants_models:check_models_ended",),
)
