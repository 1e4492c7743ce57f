import pytest

from harbor.master import mark, write
from harbor.records import Clue, Opinion, Vote, by_key

CLUES = {"asserts": Clue(key="asserts", criterion="tests", seen=True, text="9 assertions")}


def opinion(role, score, keys=("asserts",), criterion="tests", turn=1):
    return Opinion(role=role, criterion=criterion, round=turn,
                   vote=Vote(score=score, argument="because of this", clue_keys=list(keys)))


def bench(*scores, **more):
    return [opinion(role, score, **more) for role, score in zip(("prosecutor", "advocate", "engineer"), scores)]


def test_the_engineer_weighs_most():
    assert mark("tests", bench(2, 2, 4), CLUES).score == 3


def test_votes_without_clues_are_not_counted():
    got = mark("tests", [opinion("prosecutor", 1, keys=()), opinion("engineer", 5)], CLUES)
    assert got.score == 5
    assert "not counted" in got.notes[0]


def test_danger_caps():
    clues = {"danger:a.py": Clue(key="danger:a.py", criterion="code", seen=True, danger=True, text="a.py calls eval")}
    assert mark("code", bench(5, 5, 5, keys=("danger:a.py",), criterion="code"), clues).score == 3


def test_dissent_is_told_and_costs_the_five():
    got = mark("tests", bench(2, 5, 5), CLUES)
    assert got.score <= 4 and any(note.startswith("dissent") for note in got.notes)


def test_the_second_round_replaces_the_first():
    assert mark("tests", bench(1, 1, 1) + bench(4, 4, 4, turn=2), CLUES).score == 4


@pytest.mark.parametrize("turned", [False, True])
def test_seen_wins(turned):
    pair = [{"a": Clue(key="a", criterion="code", seen=seen, text="")} for seen in (True, False)]
    assert by_key(*(pair[::-1] if turned else pair))["a"].seen


def test_a_problem_is_written(tmp_path):
    assert "no such host" in open(write([], "no such host", tmp_path)).read()
