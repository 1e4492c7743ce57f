from decimal import Decimal

import pytest

from ledger_etl.config import Config
from ledger_etl.job import run
from ledger_etl.load import ledger
from ledger_etl.rows import Booking

HEAD = "Referenz;Buchungstag;Betrag;Waehrung;Text\n"


@pytest.fixture
def config(tmp_path):
    (tmp_path / "in").mkdir()
    return Config(tmp_path / "in", tmp_path / "l.sqlite", tmp_path / "r.csv")


def test_loads_once(config):
    (config.inbox / "a.csv").write_text(HEAD + "REF1;01.02.2026;1.234,50;EUR;rent\n")
    assert run(config).loaded == 1
    (config.inbox / "b.csv").write_text((config.inbox / "done" / "a.csv").read_text())
    assert run(config).loaded == 0
    with ledger(config.db) as db:
        assert db.execute("select amount from bookings").fetchall() == [("1234.50",)]


def test_rejects_are_kept(config):
    (config.inbox / "a.csv").write_text(HEAD + "REF1;01.02.2026;abc;EUR;\nREF2;2026-02-01;5;EUR;\n")
    outcome = run(config)
    assert (outcome.loaded, outcome.rejected, outcome.exit_code) == (1, 1, 3)
    assert "no amount" in config.rejects.read_text()


def test_missing_column(config):
    (config.inbox / "a.csv").write_text("Referenz;Betrag\nREF1;5\n")
    assert run(config).exit_code == 1


def test_comma():
    assert Booking(reference="ABCD", booked="2026-01-01", amount="-3,10", currency="EUR").amount == Decimal("-3.10")
