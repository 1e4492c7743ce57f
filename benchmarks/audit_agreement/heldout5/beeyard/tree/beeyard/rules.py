"""The behaviour of a colony, read from its weight."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from .config import Thresholds
from .store import Reading

Kind = Literal["swarm", "robbing", "hunger"]


@dataclass(frozen=True)
class Alarm:
    hive: str
    kind: Kind
    at: datetime
    kilograms: float
    """What was lost; for hunger, what is left."""


def swarm(hive: str, readings: list[Reading], limits: Thresholds) -> Alarm | None:
    """A swarm takes more than a kilogram of bees with it within minutes, in daylight and warmth."""
    window = timedelta(minutes=limits.swarm_minutes)
    for place, late in enumerate(readings):
        if not (8 <= late.at.hour <= 18 and late.celsius >= 14):
            continue
        before = [one for one in readings[:place] if late.at - one.at <= window]
        if before and before[0].kilograms - late.kilograms >= limits.swarm_kg:
            return Alarm(hive, "swarm", late.at, round(before[0].kilograms - late.kilograms, 2))
    return None


def robbing(hive: str, readings: list[Reading], limits: Thresholds) -> Alarm | None:
    """Honey that is carried off: a steady loss over at least two hours."""
    if len(readings) < 2:
        return None
    last = readings[-1]
    hours = [one for one in readings if last.at - one.at <= timedelta(hours=3)]
    span = (last.at - hours[0].at).total_seconds() / 3600
    if span < 2:
        return None
    steady = all(earlier.kilograms >= later.kilograms for earlier, later in zip(hours, hours[1:]))
    lost = hours[0].kilograms - last.kilograms
    if steady and lost / span >= limits.robbing_kg_per_hour:
        return Alarm(hive, "robbing", last.at, round(lost, 2))
    return None


def hunger(hive: str, readings: list[Reading], limits: Thresholds) -> Alarm | None:
    if readings and readings[-1].kilograms < limits.hunger_kg:
        return Alarm(hive, "hunger", readings[-1].at, readings[-1].kilograms)
    return None


def alarms(hive: str, readings: list[Reading], limits: Thresholds) -> list[Alarm]:
    """A swarm explains every loss of weight of its day, so it is told alone."""
    if found := swarm(hive, readings, limits):
        return [found]
    return [one for one in (robbing(hive, readings, limits), hunger(hive, readings, limits)) if one]
