import pytest

from deskhelp import orders
from deskhelp.settings import settings


@pytest.fixture(autouse=True)
def shop(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "db", str(tmp_path / "o.sqlite"))
    with orders._connect() as db:
        db.execute("insert into orders values (7, 'Kim', 30.0, 'sent')")


def test_find():
    assert orders.find(7).customer == "Kim"


def test_unknown():
    with pytest.raises(orders.UnknownOrder):
        orders.find(8)


def test_a_refund_happens_once():
    orders.refund(7)
    with pytest.raises(orders.UnknownOrder):
        orders.refund(7)
