from datetime import UTC, datetime, timedelta

import pytest

from floodpost import gauges
from floodpost.gauges import GaugeError, Point
from floodpost.model import Gauge, Level

NOW = datetime(2026, 5, 4, 6, 15, tzinfo=UTC)
GAUGE = Gauge(station="obermuehl", name="Obermühl", yellow=280, orange=350, red=410)


def river(*values, end=NOW):
    last = len(values) - 1
    return [Point(at=end - timedelta(minutes=15 * (last - place)), value=value) for place, value in enumerate(values)]


def test_a_rise_is_carried_on_for_two_hours(monkeypatch):
    monkeypatch.setattr(gauges, "points", lambda station: river(250, 255, 260, 265, 270))
    found = gauges.read(GAUGE, NOW)
    assert (found.per_hour, found.level) == (20.0, Level.YELLOW)


def test_a_falling_river_counts_as_it_stands(monkeypatch):
    monkeypatch.setattr(gauges, "points", lambda station: river(420, 415, 411, 408, 405))
    assert gauges.read(GAUGE, NOW).level == Level.ORANGE


def test_old_values_are_none(monkeypatch):
    monkeypatch.setattr(gauges, "points", lambda station: river(500, end=NOW - timedelta(hours=1)))
    with pytest.raises(GaugeError):
        gauges.read(GAUGE, NOW)
