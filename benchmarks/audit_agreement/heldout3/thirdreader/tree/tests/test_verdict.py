import sys
sys.path.insert(0, ".")

from verdict import settle, spread

R = [
    {"chair": "strict", "score": 2, "reason": "a"},
    {"chair": "kind", "score": 5, "reason": "b"},
    {"chair": "practical", "score": 4, "reason": "c"},
]


def test_weights():
    assert settle(R, [])["mark"] == 4


def test_shell_caps():
    r = [dict(x, score=5) for x in R]
    assert settle(r, [{"what": "SHELL", "where": "a:1", "good": False}])["mark"] == 3


def test_spread():
    assert spread(R) == 3
