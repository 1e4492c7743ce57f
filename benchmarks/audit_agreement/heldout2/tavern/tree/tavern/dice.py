"""Dice and their consequences. Pure functions of a seeded generator."""
import random

from .sheet import Hero, Move, Scene

HARM = {"attack": -3, "sneak": -2, "talk": -1, "help": 0, "flee": 0}


def d20(rng: random.Random) -> int:
    return rng.randint(1, 20)


def outcome(hero: Hero, move: Move, scene: Scene, helped: bool, rng: random.Random) -> tuple[bool, int, str]:
    """Success, change of hit points, and a line for the saga."""
    roll = d20(rng) + hero.skill + (2 if helped else 0)
    good = roll >= scene.danger
    harm = 0 if good else HARM[move.verb]
    line = f"{hero.name} rolls {roll} against {scene.danger} to {move.verb} {move.target}: {'success' if good else 'failure'}"
    return good, harm, line
