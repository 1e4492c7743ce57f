from datetime import datetime

from fernweh.rank import best
from fernweh.state import Connection, Wish


def train(id, start, end, price, changes=0, night=False):
    return Connection(id=id, departs=datetime(2026, 5, 8, start), arrives=datetime(2026, 5, 8, end), price=price,
                      changes=changes, night=night)


def test_time_is_worth_money():
    assert [one.id for one in best([train("slow", 8, 18, 20), train("fast", 8, 12, 60)], Wish())] == ["fast", "slow"]


def test_wishes_exclude():
    found = [train("early", 6, 12, 30), train("night", 20, 23, 30, night=True), train("dear", 18, 22, 200)]
    assert best(found, Wish(after_hour=17, night_trains=False, budget=100)) == []
