from datetime import date, datetime

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from fernweh import flow, rail, wish
from fernweh.state import Booking, Connection, Wish

CONFIG = {"configurable": {"thread_id": "1"}, "recursion_limit": 40}
TRAIN = Connection(id="RJ1", departs=datetime(2026, 5, 8, 16), arrives=datetime(2026, 5, 8, 22), changes=1, price=59)


@pytest.fixture
def world(monkeypatch, tmp_path):
    monkeypatch.setenv("FERNWEH_HOME", str(tmp_path))
    booked, wishes = [], [Wish(origin="Wien Hbf", destination="Trieste C.le", day=date(2026, 5, 8))]
    monkeypatch.setattr(wish, "read", lambda texts, today: wishes.pop(0) if len(wishes) > 1 else wishes[0])
    monkeypatch.setattr(rail, "search", lambda *_: [TRAIN])

    def book(connection, travellers, number):
        booked.append(connection.id)
        return Booking(reference="X7", connection=connection, travellers=travellers)

    monkeypatch.setattr(rail, "book", book)
    return booked, wishes, tmp_path


def started():
    graph = flow.build(InMemorySaver())
    return graph, graph.invoke({"number": "n1", "texts": ["Friday to Trieste"]}, CONFIG)


def test_nothing_is_booked_before_a_yes(world):
    booked, _, folder = world
    graph, state = started()
    assert state["__interrupt__"] and booked == []
    state = graph.invoke(Command(resume="1"), CONFIG)
    assert booked == ["RJ1"] and state["booking"].reference == "X7" and (folder / "bookings" / "n1.json").exists()


def test_an_open_wish_is_asked_for_four_times_at_most(world):
    world[1][:] = [Wish(origin="Wien Hbf")]
    graph, state = started()
    for _ in range(4):
        assert "destination" in state["__interrupt__"][0].value["question"]
        state = graph.invoke(Command(resume="hm"), CONFIG)
    assert state["problem"] == "the wish stays unclear"


def test_a_later_day_is_tried_twice(world, monkeypatch):
    days = []
    monkeypatch.setattr(rail, "search", lambda origin, destination, day: days.append(day.day) or [])
    _, state = started()
    assert days == [8, 9, 10] and state["problem"].startswith("nothing fits")


def test_a_failing_railway_is_told(world, monkeypatch):
    def broken(*_):
        raise rail.RailError("no timetable")

    monkeypatch.setattr(rail, "search", broken)
    _, state = started()
    assert state["problem"] == "no timetable" and "no timetable" in (world[2] / "given_up.log").read_text()
