"""The rules, without a model."""

from depcheck.state import Fact, Review
from depcheck.verdict import decide


def reviews(sceptic: int, advocate: int, maintainer: int) -> dict:
    scores = {"sceptic": sceptic, "advocate": advocate, "maintainer": maintainer}
    return {name: Review(reviewer=name, score=score, reasons=["so"]) for name, score in scores.items()}


def test_the_median_counts():
    facts = [Fact(inspector="licence", text="MIT", good=True)]
    assert decide({"facts": facts, "reviews": reviews(2, 4, 3)})["verdict"].score == 3


def test_without_a_licence_nothing_is_better_than_two():
    facts = [Fact(inspector="licence", text="no licence file", good=False)]
    verdict = decide({"facts": facts, "reviews": reviews(4, 5, 5)})["verdict"]
    assert (verdict.score, verdict.rules) == (2, ["median", "no_licence_cap"])


def test_a_wide_spread_is_told():
    verdict = decide({"facts": [], "reviews": reviews(1, 5, 3)})["verdict"]
    assert verdict.dissent == "the sceptic gave 1, the advocate 5"
