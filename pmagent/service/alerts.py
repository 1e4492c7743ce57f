"""Alerts at the daemon's screen, for the operator: those of the areas (docs/design.md §16.9), the stop switch, refused
sign-ins to the console, documents that are stale or left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import structlog

from pmagent.actors.core.area import load
from pmagent.contracts.control import EffectsPaused, EffectsResumed, SignInRefused
from pmagent.edges import EDGES
from pmagent.events.errors import PmagentError
from pmagent.events.event import Event
from pmagent.projections.core.projection import Halt

_log = structlog.get_logger("pmagent")


def alert(events: Sequence[Event], _sums: Sequence[str]) -> None:
    """Listener: tell of what has become durable."""
    for event in events:
        for tell_of in _alerts():
            tell_of(event.data)


@cache
def _alerts() -> list[Callable[[object], None]]:
    return [load(edge.alerts) for edge in EDGES if edge.alerts]


def tell_halt(halt: Halt) -> None:
    """Tell of a projection that is halted."""
    mend = "the log is unharmed; start a version that does not fail, and report it"
    _log.error(
        "a projection is halted, and its documents are stale", projection=halt.projection, since=halt.since,
        error=halt.error, place=halt.place, mend=mend,
    )  # fmt: skip


def alert_lost(lost: Mapping[str, PmagentError]) -> None:
    """Tell of documents that are left out because their content is lost."""
    path, error = next(iter(lost.items()))
    _log.error("documents are left out", count=len(lost), first=path, reason=error.message, mend=error.hint)


def tell(data: object) -> None:
    """Tell of the stop switch, and of a refused sign-in."""
    match data:
        case EffectsPaused(operator_id=who, reason=reason):
            _log.warning("effects are paused", who=who, reason=reason, mend="pmagent resume")
        case EffectsResumed(operator_id=who, held=held):
            _log.info("effects start again", who=who, held=held)
        case SignInRefused(operator_id=who, by=by, reason=reason):
            _log.warning("somebody was not let in to the console", name=who, by=by, reason=reason)
