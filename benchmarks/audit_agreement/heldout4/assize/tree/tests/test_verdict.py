from assize.state import Criterion, Exhibit, Finding, Opinion
from assize.verdict import rule

SAFETY = Criterion(id="safety", title="Safe processes", asks="?")


def opinion(judge, score, cites=("C1",)):
    finding = Finding(score=score, argument="an argument of some length", cites=list(cites))
    return Opinion(judge=judge, criterion="safety", finding=finding)


def test_the_engineer_counts_double():
    verdict = rule(SAFETY, [opinion("prosecutor", 3), opinion("defender", 3), opinion("engineer", 5)], [])
    assert verdict.score == 4


def test_a_flaw_caps():
    flaw = Exhibit(number="C1", criterion="safety", says="os.system", place="a.py:3", flaw=True)
    verdict = rule(SAFETY, [opinion("defender", 5), opinion("engineer", 5)], [flaw])
    assert verdict.score == 3 and "a.py:3" in verdict.reasons[-1]


def test_dissent_is_told_and_drawn_to_evidence():
    verdict = rule(SAFETY, [opinion("prosecutor", 1, ("C1", "C2", "C3")), opinion("defender", 5, ())], [])
    assert verdict.score <= 2 and "defender gave 5" in verdict.dissent


def test_no_opinion_is_the_lowest_score():
    assert rule(SAFETY, [], []).score == 1
