from decimal import Decimal as D

from matcher.domain import Difference, Line, Order, compare

ORDER = Order("P1", "Acme", (Line("BOLT", D(100), D("0.10")),), (("BOLT", D(80)),))


def test_exact():
    assert compare([Line("BOLT", D(80), D("0.10"))], ORDER) == ()


def test_more_than_received():
    assert compare([Line("BOLT", D(100), D("0.10"))], ORDER) == (Difference("BOLT", "not received", 200),)


def test_dearer():
    assert compare([Line("BOLT", D(50), D("0.12"))], ORDER) == (Difference("BOLT", "price", 100),)


def test_cheaper_is_fine():
    assert compare([Line("BOLT", D(50), D("0.08"))], ORDER) == ()


def test_not_ordered():
    assert compare([Line("NUT", D(1), D("3.00"))], ORDER)[0].kind == "not ordered"
