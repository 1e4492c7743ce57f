from guildhall.alderman import weigh
from guildhall.state import Ballot, Exhibit, Vote

GOOD = Exhibit(number="W1", topic="workflow", holds=True, says="5 connections", where="a.py:1")
BAD = Exhibit(number="S1", topic="safety", holds=False, danger=True, says="runs text", where="b.py:2")


def ballot(master, score, *cites):
    return Ballot(master=master, topic="workflow", vote=Vote(score=score, argument="so", exhibits=list(cites)))


def test_craftsman_twice():
    assert weigh([ballot("accuser", 1, "W1"), ballot("craftsman", 4, "W1")], [GOOD])[0] == 3


def test_without_evidence_not_heard():
    score, grounds = weigh([ballot("patron", 5), ballot("accuser", 2, "W1")], [GOOD])
    assert score == 2 and "patron" in grounds[0]


def test_cap():
    assert weigh([ballot("patron", 5, "S1")], [BAD])[0] == 3
