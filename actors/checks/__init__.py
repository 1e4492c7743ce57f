"""Configured checks and guards: the checker, and what runs them (docs/checks.md)."""

from typing import Final

from pmagent.actors.core.area import Area

AREA: Final = Area(
    name="checks", families=("check",), contracts=("pmagent.contracts.checks",),
    actors={"checker": "pmagent.actors.checks.actor:Checker"}, after=("model",),
    lines="pmagent.actors.checks.lines:LINES", simulated="pmagent.replay.areas.checks:part",
    laws=("pmagent.replay.areas.invariants_checks:check_checks",),
    rests=("pmagent.replay.areas.invariants_checks:check_checks_idle",),
)
