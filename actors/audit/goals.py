"""All goals that detectives look for, by id, as ``goals.toml`` has them; pure.

A goal is an **asset** (found is good), a **flaw** (found is bad; evidence of it exists only where it was found), or
**context** (says what was looked at, or describes). A goal's id never changes its meaning. A rubric means a goal by its
``words``, or names it itself, in a dimension's ``goals``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final, Literal

import msgspec

from pmagent.contracts.audit import Judge

Kind = Literal["asset", "flaw", "context"]


class Goal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``title``: what was looked for, in words; the other fields are described in ``goals.toml``."""

    id: str
    kind: Kind
    title: str
    words: tuple[str, ...] = ()
    security: bool = False
    advice: str = ""
    consequence: str = ""
    sure: float = 1.0
    needs: tuple[str, ...] = ()
    cost: int = 0
    limits: dict[Judge, int] = {}
    untested: dict[Judge, int] = {}

    @property
    def text(self) -> str:
        """As ``Evidence.goal`` has it."""
        return f"{self.id}: {self.title}"


def goal_id(text: str) -> str:
    """The id at the beginning of an ``Evidence.goal``."""
    return text.partition(":")[0]


def _read() -> dict[str, Goal]:
    table = tomllib.loads(files("pmagent.actors.audit").joinpath("goals.toml").read_text("utf-8"))
    return {name: msgspec.convert({"id": name, **row}, Goal) for name, row in table.items()}


GOALS: Final[Mapping[str, Goal]] = _read()
SECURITY: Final = frozenset(goal.id for goal in GOALS.values() if goal.security)
