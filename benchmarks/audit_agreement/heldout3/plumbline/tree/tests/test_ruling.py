from plumbline.records import Criterion, Finding, Opinion
from plumbline.ruling import rule, total

CRITERION = Criterion(id="design", title="Design", ask="?", weight=3, technical=True)
FOUND = {
    "edges": Finding(key="edges", found=True, what="5 edges", place="a.py"),
    "shell": Finding(key="shell", found=True, flaw=True, what="a shell", place="b.py:3"),
    "none": Finding(key="none", found=False, what="nothing", place="-"),
}


def says(seat, score, *cites):
    return Opinion(seat=seat, criterion="design", score=score, argument="because it is so and so", cites=list(cites))


def test_the_engineer_counts_double_on_technical_matters():
    opinions = [says("prosecutor", 2, "edges"), says("defender", 3, "edges"), says("engineer", 4, "edges")]
    assert rule(CRITERION, opinions, FOUND).score == 3
    assert rule(CRITERION, [*opinions[:2], says("engineer", 2, "edges")], FOUND).score == 2


def test_an_opinion_without_evidence_is_not_counted():
    mark = rule(CRITERION, [says("defender", 5, "none"), says("engineer", 3, "edges")], FOUND)
    assert mark.score == 3
    assert "defender" in mark.reasons[0]


def test_a_flaw_caps():
    opinions = [says("prosecutor", 4, "shell"), says("defender", 5, "edges"), says("engineer", 5, "edges")]
    mark = rule(CRITERION, opinions, FOUND)
    assert mark.score == 3
    assert "b.py:3" in mark.reasons[-1]


def test_far_apart_is_told():
    mark = rule(CRITERION, [says("prosecutor", 1, "edges"), says("defender", 5, "edges"), says("engineer", 4, "edges")], FOUND)
    assert mark.score == 4
    assert "prosecutor 1" in mark.dissent


def test_nobody_judged():
    assert rule(CRITERION, [], FOUND) is None
    assert total([], [CRITERION]) == 0.0
