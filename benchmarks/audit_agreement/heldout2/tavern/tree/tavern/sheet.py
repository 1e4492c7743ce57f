"""The table: what everybody at it can see."""
from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import BaseModel, Field


@dataclass(frozen=True)
class Hero:
    name: str
    craft: str
    hp: int = 12
    skill: int = 2


class Move(BaseModel):
    """What a hero wants to do this round."""

    verb: Literal["attack", "sneak", "talk", "help", "flee"]
    target: str
    words: str = Field(max_length=240, description="what you say or think, in the first person")


class Scene(BaseModel):
    picture: str
    danger: int = Field(ge=5, le=18, description="what a die and a skill must reach together")
    foe: str


def settle(heroes: dict[str, Hero], changes: dict[str, Hero | int]) -> dict[str, Hero]:
    """Numbers are added to a hero's hit points, so that several blows of one step all count."""
    after = dict(heroes)
    for name, change in changes.items():
        after[name] = change if isinstance(change, Hero) else replace(after[name], hp=after[name].hp + change)
    return after


def join_moves(old: dict[str, Move], new: dict[str, Move] | None) -> dict[str, Move]:
    """None clears the table for the next round."""
    return {} if new is None else {**old, **new}


@dataclass
class Table:
    place: str
    rounds: int = 6
    round: int = 1
    quest_done: bool = False
    scene: Scene | None = None
    heroes: Annotated[dict[str, Hero], settle] = field(default_factory=dict)
    moves: Annotated[dict[str, Move], join_moves] = field(default_factory=dict)
    saga: Annotated[list[str], operator.add] = field(default_factory=list)
