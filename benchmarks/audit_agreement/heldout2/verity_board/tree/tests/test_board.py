from verity.board import build_board


def test_graph_compiles():
    assert build_board() is not None


def test_scores():
    assert 4.8 > 4
