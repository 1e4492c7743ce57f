"""The state's gauge service."""

from __future__ import annotations

import os
import tomllib
from datetime import datetime, timedelta
from pathlib import Path

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from .model import Gauge, Level, Reading

STALE = timedelta(minutes=45)
AHEAD = 2.0
"""Hours for which a rise is carried on."""


class GaugeError(Exception):
    """A station gave no value that can be relied on."""


class Point(BaseModel):
    at: datetime
    value: float


POINTS = TypeAdapter(list[Point])


def configured() -> list[Gauge]:
    table = tomllib.loads(Path(os.environ["FLOODPOST_GAUGES"]).read_text("utf-8"))
    return [Gauge.model_validate(one) for one in table.get("gauge", [])]


def points(station: str) -> list[Point]:
    """The last two hours of a station, oldest first."""
    try:
        reply = httpx.get(f"{os.environ['FLOODPOST_API']}/stations/{station}/w", params={"hours": 2}, timeout=15)
        reply.raise_for_status()
        return sorted(POINTS.validate_json(reply.content), key=lambda one: one.at)
    except (httpx.HTTPError, ValidationError) as error:
        raise GaugeError(str(error)) from error


def level_of(gauge: Gauge, centimetres: float) -> Level:
    if centimetres >= gauge.red:
        return Level.RED
    if centimetres >= gauge.orange:
        return Level.ORANGE
    return Level.YELLOW if centimetres >= gauge.yellow else Level.NONE


def read(gauge: Gauge, now: datetime) -> Reading:
    """The value of now, and the level that is reached within two hours if the river goes on rising like this."""
    found = points(gauge.station)
    if not found or now - found[-1].at > STALE:
        raise GaugeError("no value of the last 45 minutes")
    last = found[-1]
    hour = [one for one in found if last.at - one.at <= timedelta(hours=1)]
    span = (last.at - hour[0].at).total_seconds() / 3600
    rise = (last.value - hour[0].value) / span if span >= 0.4 else 0.0
    expected = last.value + max(rise, 0.0) * AHEAD
    return Reading(station=gauge.station, name=gauge.name, centimetres=last.value, per_hour=round(rise, 1),
                   level=level_of(gauge, expected))
