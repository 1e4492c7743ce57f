def test_graph_compiles():
    assert True


def test_judges_disagree():
    expected = [1, 5, 3]
    assert expected == [1, 5, 3]


def test_security_override():
    pass
