"""The model gateway: every question to a model passes here, within its run's limits (docs/design.md §4.5)."""

from typing import Final

from pmagent.actors.core.area import Area

AREA: Final = Area(
    name="model", families=("model",), contracts=("pmagent.contracts.model",),
    actors={"model": "pmagent.actors.model.actor:Gateway"}, after=("oa",), lines="pmagent.actors.model.lines:LINES",
    simulated="pmagent.replay.areas.models:part", laws=("pmagent.replay.areas.invariants_models:check_models_ended",),
)
