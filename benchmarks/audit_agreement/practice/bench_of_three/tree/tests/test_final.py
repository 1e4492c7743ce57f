import os

import pytest

from bench.final import final
from bench.state import Opinion


def opinions(*scores):
    return [Opinion(judge=j, score=s, argument="because", evidence=[]) for j, s in zip(("prosecutor", "defense", "tech_lead"), scores)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_close_scores_are_weighted():
    state = {"url": "u", "evidence": {}, "opinions": opinions(2, 4, 3)}
    assert final(state)["final_score"] == pytest.approx(3.0)


def test_middle_when_far_apart():
    state = {"url": "u", "evidence": {}, "opinions": opinions(1, 5, 2)}
    assert final(state)["final_score"] == 2
    assert "disagreed" in open("bench_report.md").read()


def test_os_system_caps():
    state = {"url": "u", "evidence": {"a.py": "os.system(x)"}, "opinions": opinions(5, 5, 5)}
    assert final(state)["final_score"] == 3
    assert os.path.exists("bench_report.md")
