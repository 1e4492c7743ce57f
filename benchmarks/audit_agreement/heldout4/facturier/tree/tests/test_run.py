from datetime import date
from email.message import EmailMessage

import pytest
from test_reading import TEXT

from facturier import pdf
from facturier.__main__ import run
from facturier.ledger import Ledger, write_table
from facturier.model import Settings


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(pdf, "text_of", lambda file: file.read_text("utf-8"))
    (tmp_path / "mail").mkdir()
    given = Settings(tmp_path / "mail", tmp_path / "work", tmp_path / "l.db",
                     {"FR7630006000011234567890189": "Scierie Morel"})

    def arrive(name, text):
        mail = EmailMessage()
        mail["From"] = "morel@example.org"
        mail.set_content("Bonjour")
        mail.add_attachment(text.encode(), maintype="application", subtype="pdf", filename=f"{name}.pdf")
        (given.inbox / f"{name}.eml").write_bytes(bytes(mail))

    return given, Ledger(given.ledger), arrive


def test_a_clear_invoice_reaches_the_table(world, tmp_path):
    given, ledger, arrive = world
    arrive("a", TEXT)
    assert len(run(given, ledger, date(2026, 4, 1)).booked) == 1
    write_table(ledger.clear(), tmp_path / "t.csv")
    assert "2026-03-12;2026-0117;Scierie Morel;1240.00;248.00;1488.00" in (tmp_path / "t.csv").read_text("utf-8-sig")
    assert not list(given.inbox.glob("*.eml"))


@pytest.mark.parametrize(("old", "new", "doubt"), [
    ("1 488,00", "1 588,00", "is not"), ("248,00", "200,00", "no usual rate"),
    ("890 189", "890 188", "is wrong"), ("12/03/2026", "12/05/2026", "future"),
])
def test_doubts_wait_for_a_person(world, old, new, doubt):
    given, ledger, arrive = world
    arrive("a", TEXT.replace(old, new))
    outcome = run(given, ledger, date(2026, 4, 1))
    assert any(doubt in text for text in outcome.doubtful[0].doubts) and ledger.clear() == []
    assert ledger.accept("2026-0117") == 1 and len(ledger.clear()) == 1


def test_the_same_invoice_is_booked_once(world):
    given, ledger, arrive = world
    arrive("a", TEXT)
    run(given, ledger, date(2026, 4, 1))
    arrive("b", TEXT)
    assert run(given, ledger, date(2026, 4, 1)).doubtful[0].doubts == ("seen before",) and len(ledger.clear()) == 1


def test_no_invoice_is_told(world):
    given, ledger, arrive = world
    arrive("a", "Bonjour, voici notre catalogue")
    assert run(given, ledger, date(2026, 4, 1)).unread[0][1].startswith("no ")
