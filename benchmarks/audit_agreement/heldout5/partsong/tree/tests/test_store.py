from datetime import date

import pytest

from partsong.model import PartsongError, Piece
from partsong.plan import late, needs
from partsong.store import opened

TODAY = date(2026, 3, 1)


@pytest.fixture
def store(tmp_path):
    with opened(tmp_path / "choir.db") as store:
        store.put([Piece("Locus iste", "Bruckner", "SATB", 20), Piece("Abendlied", "Rheinberger", "SSATTB", 40)])
        yield store


def test_a_copy_is_lent_once(store):
    store.lend("locus iste", 3, "Marta", TODAY)
    with pytest.raises(PartsongError, match="is with Marta"):
        store.lend("Locus iste", 3, "Ole", TODAY)
    store.give_back("Locus iste", 3, TODAY)
    assert store.lend("Locus iste", 3, "Ole", TODAY).singer == "Ole"


def test_copies_that_do_not_exist_are_not_lent(store):
    for copy in (0, 21):
        with pytest.raises(PartsongError, match="1 to 20"):
            store.lend("Locus iste", copy, "Marta", TODAY)


def test_what_is_not_lent_does_not_come_back(store):
    with pytest.raises(PartsongError, match="not lent"):
        store.give_back("Abendlied", 1, TODAY)


def test_lent_copies_are_not_counted_away(store):
    store.lend("Abendlied", 40, "Ole", TODAY)
    with pytest.raises(PartsongError, match="copy 40"):
        store.put([Piece("New", "X", "SA", 1), Piece("Abendlied", "Rheinberger", "SSATTB", 30)])
    assert [one.title for one in store.pieces()] == ["Locus iste", "Abendlied"]


def test_late(store):
    store.lend("Abendlied", 1, "Ole", date(2026, 1, 1))
    store.lend("Abendlied", 2, "Marta", date(2026, 2, 20))
    assert [one.singer for one in late(store, TODAY, 30)] == ["Ole"]


def test_needs(store):
    assert [one.missing for one in needs(store, ["Locus iste", "Abendlied"], 34, share=False)] == [14, 0]
    assert [one.missing for one in needs(store, ["Locus iste"], 41, share=True)] == [1]
