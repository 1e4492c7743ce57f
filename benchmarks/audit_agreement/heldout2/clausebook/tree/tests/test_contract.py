import pytest

from clausebook.contract import ContractError, clauses, lines_of

TEXT = """Between A and B

1. Subject
B paints the fence
twice.

2.1) Price
The price is 400 EUR.
""".splitlines()


def test_clauses():
    assert [(c.number, c.title, c.text) for c in clauses(TEXT)] == [
        ("", "Preamble", "Between A and B"),
        ("1", "Subject", "B paints the fence twice."),
        ("2.1", "Price", "The price is 400 EUR."),
    ]


def test_nothing_in_it():
    with pytest.raises(ContractError, match="no text"):
        clauses(["", "  "])


def test_not_utf8(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"abc\xff")
    with pytest.raises(ContractError, match="byte 3"):
        lines_of(tmp_path / "a.txt")


def test_no_word_document(tmp_path):
    (tmp_path / "a.docx").write_text("hello")
    with pytest.raises(ContractError):
        lines_of(tmp_path / "a.docx")
