from assay.forms import Ballot, Role, Sample, Signed
from assay.grading import grade

SAMPLES = [Sample(id="code.asserts", text="12 assertions")]


def vote(role, value, cited=("code.asserts",), question="quality"):
    return Signed(role, question, Ballot(grade=value, reason="for reasons", samples=list(cited)))


def test_weights():
    votes = [vote(Role.PROSECUTOR, 3), vote(Role.DEFENDER, 3), vote(Role.TECH_LEAD, 5)]
    assert grade("quality", votes, SAMPLES).value == 4


def test_extremes_are_left_out():
    votes = [vote(Role.PROSECUTOR, 1), vote(Role.DEFENDER, 5), vote(Role.TECH_LEAD, 4)]
    result = grade("quality", votes, SAMPLES)
    assert result.value == 4 and len(result.remarks) == 3


def test_alarm_caps():
    samples = [Sample(id="code.unsafe", text="a.py:1 eval", alarm=True)]
    assert grade("safety", [vote(Role.DEFENDER, 5, ("code.unsafe",), "safety")], samples).value == 3


def test_no_evidence():
    assert grade("quality", [vote(Role.DEFENDER, 5, ())], SAMPLES).value == 1
