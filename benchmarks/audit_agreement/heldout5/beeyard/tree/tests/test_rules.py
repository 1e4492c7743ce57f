from datetime import UTC, datetime, timedelta

from beeyard.config import Thresholds
from beeyard.rules import alarms
from beeyard.store import Reading

LIMITS = Thresholds()
NOON = datetime(2026, 5, 20, 12, tzinfo=UTC)


def weights(*values, step=10, celsius=20.0, start=NOON):
    return [Reading(at=start + timedelta(minutes=step * place), kilograms=value, celsius=celsius)
            for place, value in enumerate(values)]


def kinds(readings):
    return [one.kind for one in alarms("linde-1", readings, LIMITS)]


def test_a_swarm_is_a_sudden_loss():
    assert kinds(weights(40, 40.1, 38.7)) == ["swarm"]


def test_a_slow_loss_is_no_swarm():
    assert kinds(weights(40, 39.6, 39.2, 38.8, step=45)) == ["robbing"]


def test_nobody_swarms_at_night_or_in_the_cold():
    assert kinds(weights(40, 38, start=NOON.replace(hour=23))) == []
    assert kinds(weights(40, 38, celsius=8)) == []


def test_hunger():
    assert kinds(weights(14.2, 13.9)) == ["hunger"]
    assert kinds(weights(14.2, 14.1)) == []


def test_a_swarm_is_told_alone():
    assert kinds(weights(15, 13)) == ["swarm"]


def test_no_readings_no_alarm():
    assert kinds([]) == []
