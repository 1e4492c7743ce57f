"""The PLA's alerts at the daemon's screen: violations, a mode that fell, executions that did not end well
(docs/design.md §16.9)."""

from __future__ import annotations

import structlog

from pmagent.actors.pla.switch import said
from pmagent.contracts.hid import HidOutcomeUnknown
from pmagent.contracts.pla_events import PlaExecuted, PlaModeChanged, PlaViolation

_log = structlog.get_logger("pmagent")


def tell(data: object) -> None:
    """Tell of an event's payload that the operator has to know of."""
    match data:
        case PlaViolation(kind=kind, contract=contract, text=text, handling=handling, severity=severity):
            say = _log.error if severity == "error" else _log.warning
            say("a contract was violated", contract=contract, kind=kind, reason=text, done=handling)
        case PlaModeChanged(mode=mode, who=who, why=why, code=code):
            say = _log.info if code in ("requested", "ended") else _log.warning
            say("the mode changed", mode=mode, who=who, reason=said(why))
        case HidOutcomeUnknown(execution_id=execution_id, why=why):
            mend = "look at the machine's screen; it is never typed again"
            _log.error("nobody can tell how much was typed", execution=execution_id, reason=said(why), mend=mend)
        case PlaExecuted(outcome="done", execution_id=execution_id):
            _log.info("typed", execution=execution_id)
        case PlaExecuted(outcome=outcome, execution_id=execution_id, why=why):
            _log.warning(outcome.replace("_", " "), execution=execution_id, reason=said(why))
