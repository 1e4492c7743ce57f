from datetime import date

import pytest

from reagentbook import stock
from reagentbook.amounts import Amount, BadAmount
from reagentbook.book import Book, BookError, Bottle
from reagentbook.hazards import Group, cas_valid

ML = Amount.parse("500mL")


@pytest.fixture
def book(tmp_path):
    return Book(tmp_path / "book.db")


def test_amounts_come_back_as_they_went():
    for text in ("2.5L", "200mL", "15uL", "1kg", "3ng"):
        assert str(Amount.parse(text)) == text


@pytest.mark.parametrize("text", ["", "5", "5 m", "-5g", "1e9g", "0.5ng", "5XX"])
def test_no_amounts(text):
    with pytest.raises(BadAmount):
        Amount.parse(text)


def test_cas_digits():
    assert cas_valid("75-05-8") and cas_valid("7732-18-5") and not cas_valid("75-05-9") and not cas_valid("water")


def test_no_more_is_taken_than_is_left(book):
    (id,) = book.add([Bottle("MeCN", ML, "F2/3")], "mk")
    assert str(book.take(id, Amount.parse("0.2L"), "mk").amount) == "300mL"
    with pytest.raises(BadAmount, match="only 300mL left"):
        book.take(id, Amount.parse("301mL"), "mk")
    with pytest.raises(BadAmount, match="different kinds"):
        book.take(id, Amount.parse("1g"), "mk")
    assert str(book.find("mecn")[0].amount) == "300mL" and len(book.changes(id)) == 2


def test_due_and_empty(book):
    soon = Bottle("old", ML, "A/1", expires=date(2026, 5, 1))
    (id, _, _) = book.add([soon, Bottle("new", ML, "A/1", expires=date(2028, 1, 1)), Bottle("ever", ML, "A/1")], "mk")
    assert [one.name for one in book.due(date(2026, 4, 20), 30)] == ["old"]
    book.take(id, ML, "mk")
    assert book.due(date(2026, 4, 20), 30) == []


def test_clashes_are_of_one_shelf(book):
    acid, base = Bottle("HCl", ML, "A/1", hazard=Group.ACID), Bottle("NaOH", ML, "A/7", hazard=Group.BASE)
    _, id = book.add([acid, base], "mk")
    assert [(one.name, other.name) for one, other in book.clashes()] == [("HCl", "NaOH")]
    book.move(id, "B/1", "mk")
    assert book.clashes() == []


def test_a_bad_row_imports_nothing(book, tmp_path):
    table = tmp_path / "stock.csv"
    table.write_text("name,cas,amount,place,expires,hazard\nA,,1g,A/1,,\nB,75-05-9,1g,A/1,,\nC,,much,A/1,,\n")
    with pytest.raises(BookError, match="(?s)line 3.*line 4"):
        book.add(stock.read(table), "mk")
    assert book.find("") == []
