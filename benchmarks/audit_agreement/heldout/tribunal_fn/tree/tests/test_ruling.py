from tribunal.ruling import rule, supported
from tribunal.schemas import Ballot, Exhibit, Role, Verdict, Vote


def ballot(role, score, exhibits=("code",)):
    return Ballot(role, "c", Vote(score=score, argument="long enough text", exhibits=list(exhibits)))


CODE = Exhibit("code", "x")


def test_engineer_weighs_more():
    v = Verdict()
    rule("c", [ballot(Role.PROSECUTOR, 3), ballot(Role.DEFENDER, 3), ballot(Role.ENGINEER, 5)], [CODE], False, v)
    assert v.scores == {"c": 4}


def test_danger_caps():
    v = Verdict()
    rule("c", [ballot(r, 5) for r in Role], [CODE, Exhibit("danger", "os.system(x)", ok=False)], False, v)
    assert v.scores["c"] == 3


def test_vote_on_nothing_is_dropped():
    assert len(supported([ballot(Role.DEFENDER, 5, ["dream"]), ballot(Role.ENGINEER, 2)], {"code"})) == 1
