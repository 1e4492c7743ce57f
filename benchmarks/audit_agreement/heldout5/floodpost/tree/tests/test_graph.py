import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from floodpost import draft, gauges, graph, sms
from floodpost.model import Draft, Gauge, Level, Reading

CONFIG = {"configurable": {"thread_id": "20260504T0615"}}
GAUGES = [Gauge(station=name, name=name, yellow=1, orange=2, red=3) for name in ("aa", "bb")]


@pytest.fixture
def world(monkeypatch):
    levels, sent = {"aa": Level.ORANGE, "bb": Level.YELLOW}, []

    def read(gauge, now):
        if gauge.station not in levels:
            raise gauges.GaugeError("silent")
        return Reading(station=gauge.station, name=gauge.name, centimetres=2, per_hour=0, level=levels[gauge.station])

    monkeypatch.setattr(gauges, "read", read)
    monkeypatch.setattr(draft, "write", lambda level, readings: Draft(headline=level.name, body="x"))
    monkeypatch.setattr(sms, "send", lambda text, number: sent.append(text.headline) or 700)
    return levels, sent


def run():
    built = graph.build(InMemorySaver())
    return built, built.invoke({"number": "20260504T0615", "gauges": GAUGES}, CONFIG)


def test_nothing_is_sent_before_a_yes(world):
    built, state = run()
    assert world[1] == [] and state["__interrupt__"][0].value["level"] == "ORANGE"
    assert built.invoke(Command(resume="yes"), CONFIG)["sent"] == 700 and world[1] == ["ORANGE"]


def test_a_no_ends_it(world):
    built, _ = run()
    assert built.invoke(Command(resume="gauge is serviced"), CONFIG)["note"] == "gauge is serviced" and world[1] == []


def test_a_lonely_gauge_counts_one_step_less(world):
    world[0]["bb"] = Level.NONE
    assert run()[1]["__interrupt__"][0].value["level"] == "YELLOW"


def test_a_quiet_river_asks_nobody(world):
    world[0].update(aa=Level.NONE, bb=Level.NONE)
    assert "__interrupt__" not in run()[1]


def test_silent_gauges_are_told(world):
    del world[0]["bb"]
    assert run()[1]["__interrupt__"][0].value["silent"] == ["bb"]
    world[0].clear()
    assert "no gauge answers" in run()[1]["note"]
