import pytest

from partsong.model import PartsongError, Piece
from partsong.tables import read, write


def test_a_table_comes_back_as_it_went(tmp_path):
    pieces = [Piece("O Täler weit", "Mendelssohn", "SATB", 31), Piece("Sing, sing", "X", "SA", 0)]
    write(tmp_path / "out.csv", pieces)
    assert read(tmp_path / "out.csv") == pieces
    assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]


@pytest.mark.parametrize("line", ["Ave,Arcadelt,SATB,many", ",X,SA,2", "Ave,X,SATX,2", "Ave,X,SA,-1"])
def test_a_bad_line_is_named(tmp_path, line):
    (tmp_path / "in.csv").write_text(f"title,composer,voices,copies\nGood,X,SA,1\n{line}\n")
    with pytest.raises(PartsongError, match="line 3"):
        read(tmp_path / "in.csv")
