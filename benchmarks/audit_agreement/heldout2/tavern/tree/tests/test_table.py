import random

import pytest

from tavern.dice import outcome
from tavern.sheet import Hero, Move, Scene, join_moves, settle

BRUN = Hero("Brunhild", "smith", hp=10)
SCENE = Scene(picture="a door", danger=10, foe="the door")
HIT = Move(verb="attack", target="the door", words="Hah")


def test_blows_add_up():
    once = settle({"Brunhild": BRUN}, {"Brunhild": -3})
    assert settle(once, {"Brunhild": -2})["Brunhild"].hp == 5


def test_moves_are_cleared():
    assert join_moves({"Brunhild": HIT}, None) == {}


@pytest.mark.parametrize("seed", range(20))
def test_only_failures_hurt(seed):
    good, harm, _ = outcome(BRUN, HIT, SCENE, False, random.Random(seed))
    assert harm == (0 if good else -3)


def test_help_counts():
    lucky = [outcome(BRUN, HIT, SCENE, helped, random.Random(3))[2] for helped in (False, True)]
    assert lucky[0] != lucky[1]
