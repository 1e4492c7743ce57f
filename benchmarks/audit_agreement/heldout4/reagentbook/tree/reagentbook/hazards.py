"""Which reagents must not stand side by side."""

from __future__ import annotations

from enum import Enum


class Group(str, Enum):
    ACID = "acid"
    BASE = "base"
    OXIDISER = "oxidiser"
    FLAMMABLE = "flammable"
    CYANIDE = "cyanide"
    WATER_REACTIVE = "water-reactive"
    NONE = "none"


APART = {
    frozenset({Group.ACID, Group.BASE}),
    frozenset({Group.ACID, Group.CYANIDE}),
    frozenset({Group.ACID, Group.WATER_REACTIVE}),
    frozenset({Group.OXIDISER, Group.FLAMMABLE}),
    frozenset({Group.BASE, Group.WATER_REACTIVE}),
}


def clash(one: Group, other: Group) -> bool:
    return frozenset({one, other}) in APART


def cas_valid(number: str) -> bool:
    """The check digit of a CAS number, such as 75-05-8."""
    parts = number.split("-")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts) or len(parts[1]) != 2 or len(parts[2]) != 1:
        return False
    digits = [int(digit) for digit in reversed(parts[0] + parts[1])]
    return sum(place * digit for place, digit in enumerate(digits, 1)) % 10 == int(parts[2])
