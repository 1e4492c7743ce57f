"""Configured checks and guards: the checker, and what runs them (docs/checks.md)."""

from typing import Final

from actors.area import Area

AREA: Final = Area(
    name="checks",
    families=("check",),
    contracts=("contracts.checks",),
    actors={"checker": "actors.checks.actor:Checker"},
    after=("model",),
    lines="actors.checks.lines:LINES",
    simulated="replay.simulation.checks:part",
    laws=("replay.simulation.invariants_checks:check_checks",),
    rests=("replay.simulation.invariants_checks:check_checks_idle",),
)
