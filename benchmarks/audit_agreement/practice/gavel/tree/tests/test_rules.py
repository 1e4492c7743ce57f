from court.gavel_rules import chief, wide
from court.records import Docket, Opinion


def docket(*scores, **more):
    ops = [Opinion(who=w, score=s, argument="a") for w, s in zip(("attack", "protect", "weigh"), scores)]
    return Docket(repo="r", opinions=ops, clues={"code": {}}, **more)


def test_wide():
    assert wide(docket(1, 4, 2).opinions)
    assert not wide(docket(2, 4, 3).opinions)


def test_divided_bench_sits_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert chief(docket(1, 5, 3)).goto == ["attack", "protect", "weigh"]
    assert chief(docket(1, 5, 3, second_round=True)).goto == "__end__"
