from moot.justice import settle
from moot.models import Opinion


def op(judge, score, cited=("a",), argument="x"):
    return Opinion(judge=judge, topic="t", score=score, argument=argument, cited=list(cited))


def test_median_when_close():
    assert settle("t", [op("prosecutor", 2), op("defense", 4), op("tech_lead", 3)]).score == 3


def test_most_evidence_wins_when_far_apart():
    ruling = settle("t", [op("prosecutor", 1, ("a", "b")), op("defense", 5), op("tech_lead", 4)])
    assert ruling.score == 1
    assert any("dissent" in n for n in ruling.notes)


def test_security_caps():
    assert settle("t", [op("prosecutor", 4, argument="os.system!"), op("defense", 5), op("tech_lead", 5)]).score == 3


def test_no_citation_does_not_count():
    assert settle("t", [op("prosecutor", 1, ()), op("defense", 4), op("tech_lead", 4)]).score == 4
