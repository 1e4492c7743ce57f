"""Alerts: which are open, and who acknowledged the others (docs/console.md)."""

from typing import Final

from pmagent.actors.core.area import Area

AREA: Final = Area(
    name="alerts", families=("alert",), contracts=("pmagent.contracts.alerts",),
    actors={"alerts": "pmagent.actors.alerts.actor:Alerts"}, after=("pla",),
    projections=("pmagent.projections.figures:Figures",),
    lines={
        "alert.acknowledge_requested": "{operator_id} acknowledges {alert}: {note}",
        "alert.acknowledge_refused": "not acknowledged: {reasons} ({code})",
        "alert.handed_over": "{operator_id} hands over: {text}",
        "alert.acknowledged": "{title} (position {alert}) acknowledged by {operator_id}: {note}",
    },
    alerts="pmagent.actors.alerts.core:ALERTS", laws=("pmagent.replay.areas.invariants_alerts:check_alerts",),
)
