"""What the operator is told at the daemon's screen, unasked: violations, a mode that fell, executions that did not end
well (docs/design.md §16.9), the stop switch, and who was not let in to the console."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import structlog

from pmagent.contracts.control import EffectsPaused, EffectsResumed, SignInRefused
from pmagent.contracts.hid import HidOutcomeUnknown
from pmagent.contracts.pla_events import PlaExecuted, PlaModeChanged, PlaViolation
from pmagent.events.errors import PmagentError
from pmagent.events.event import Event
from pmagent.projections.core.projection import Halt

_log = structlog.get_logger("pmagent")


def alert(events: Sequence[Event], _sums: Sequence[str]) -> None:
    """Listener: tell of what has become durable."""
    for event in events:
        _tell(event)


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


def _tell(event: Event) -> None:
    match event.data:
        case PlaViolation(kind=kind, contract=contract, text=text, handling=handling, severity=severity):
            say = _log.error if severity == "error" else _log.warning
            say("a contract was violated", contract=contract, kind=kind, reason=text, done=handling)
        case PlaModeChanged(mode=mode, who=who, why=why, code=code):
            say = _log.info if code in ("requested", "ended") else _log.warning
            say("the mode changed", mode=mode, who=who, reason=why)
        case HidOutcomeUnknown(execution_id=execution_id, why=why):
            mend = "look at the machine's screen; it is never typed again"
            _log.error("nobody can tell how much was typed", execution=execution_id, reason=why, mend=mend)
        case EffectsPaused(operator_id=who, reason=reason):
            _log.warning("effects are paused", who=who, reason=reason, mend="pmagent resume")
        case EffectsResumed(operator_id=who, held=held):
            _log.info("effects start again", who=who, held=held)
        case SignInRefused(operator_id=who, by=by, reason=reason):
            _log.warning("somebody was not let in to the console", name=who, by=by, reason=reason)
        case PlaExecuted(outcome="done", execution_id=execution_id):
            _log.info("typed", execution=execution_id)
        case PlaExecuted(outcome=outcome, execution_id=execution_id, why=why):
            _log.warning(outcome.replace("_", " "), execution=execution_id, reason=why)
