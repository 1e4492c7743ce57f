from datetime import UTC, datetime, timedelta

import pytest

from beeyard import cli, telegram
from beeyard.config import Config
from beeyard.store import Reading, Store

NOW = datetime(2026, 5, 20, 13, tzinfo=UTC)


@pytest.fixture
def yard(tmp_path, monkeypatch):
    sent = []
    monkeypatch.setattr(telegram, "send", lambda alarm, chat: sent.append((chat, alarm.hive, alarm.kind)) or True)
    settings = Config(database=tmp_path / "bees.db", chat="7",
                      hive=[{"name": "linde-1", "scale": "http://10.7.0.11/"}])
    store = Store(settings.database)
    for minutes, kilograms in ((30, 40.0), (10, 38.0)):
        store.add("linde-1", Reading(at=NOW - timedelta(minutes=minutes), kilograms=kilograms, celsius=20))
    return settings, store, sent


def test_an_alarm_is_sent_once_in_twelve_hours(yard):
    settings, store, sent = yard
    cli.check(settings, store, NOW)
    cli.check(settings, store, NOW + timedelta(minutes=10))
    assert sent == [("7", "linde-1", "swarm")]


def test_readings_come_back_in_order(yard):
    _, store, _ = yard
    assert [one.kilograms for one in store.since("linde-1", NOW - timedelta(hours=1))] == [40, 38]


def test_week_prints_the_change(yard, capsys):
    settings, store, _ = yard
    cli.week(settings, store, NOW)
    assert "-2.0 kg" in capsys.readouterr().out
