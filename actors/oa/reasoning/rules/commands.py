"""The dangers of a command line that a person has to know before running it; pure, by the patterns of vocabulary.toml.

Nothing here runs anything. A command of a forbidden kind is never part of a block; one that can destroy is kept, named,
and counted.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

import msgspec

from pmagent.actors.oa.reasoning.rules.constraints import Constraint, Hit, hits
from pmagent.actors.oa.reasoning.rules.text import is_printable
from pmagent.actors.oa.reasoning.rules.vocabulary import rows
from pmagent.contracts.reasoning import COMMAND_CHARS_MAX


class _Kind(msgspec.Struct, frozen=True):
    """A kind of command: ``does`` in words, found where the patterns follow each other within one simple command, or
    within the whole ``line``; ``points``: how much that counts."""

    does: str
    patterns: list[str]
    line: bool = False
    points: int = 0

    def applies(self, line: str, commands: list[str]) -> bool:
        """Whether it is one of the kind."""
        return any(_follow(self.patterns, text) for text in ([line] if self.line else commands))


_FORBIDDEN = msgspec.convert(rows("commands.forbidden"), list[_Kind])
_RISKY = msgspec.convert(rows("commands.risky"), list[_Kind])
_COMMENT = re.compile(r"\s*#")
_SIMPLE = re.compile(r"[|;&]+")


def _follow(patterns: list[str], text: str) -> bool:
    """Whether the patterns occur one behind the other; if they do at all, they do from the first place of each."""
    at = 0
    for pattern in patterns:
        match = _compiled(pattern).search(text, at)
        if match is None:
            return False
        at = match.end()
    return True


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


class Danger(msgspec.Struct, frozen=True):
    """The danger of a command: ``forbidden`` says why it is never part of a block ("" if it may be), ``risks`` name
    what to know before it is run, ``points`` how much that counts."""

    forbidden: str
    risks: tuple[str, ...]
    points: int


@lru_cache(maxsize=256)
def danger(command: str) -> Danger:
    """The danger of one command line. A comment does nothing."""
    if _COMMENT.match(command):
        return Danger("", (), 0)
    commands = _SIMPLE.split(command)
    forbidden = next((kind.does for kind in _FORBIDDEN if kind.applies(command, commands)), "")
    risks = [kind for kind in _RISKY if kind.applies(command, commands)]
    return Danger(forbidden, tuple(dict.fromkeys(kind.does for kind in risks)), sum(kind.points for kind in risks))


def judged(command: str, constraints: list[Constraint]) -> tuple[str, list[Hit]]:
    """Why the command may not be part of a block ("" when nothing forbids it): its kind, or a constraint; and the
    constraints that it may meet. A command is read as its words together with what it does."""
    found = danger(command)
    met = hits(constraints, f"{_spaced(command)}. {'. '.join(found.risks)}", command=True)
    forbidden = f"it {found.forbidden}" if found.forbidden else next((hit.what for hit in met if hit.sure), "")
    return forbidden, [hit for hit in met if not hit.sure]


def _spaced(command: str) -> str:
    """The command as words: options, paths and quoting are no clauses of their own."""
    return re.sub(r"[^A-Za-z0-9]+", " ", command)


def score(commands: list[str]) -> int:
    """Complexity from 1 to 10: how many commands, and how dangerous."""
    points = sum(danger(command).points for command in commands)
    return max(1, min(10, 1 + len(commands) // 6 + points // 2 + (1 if points else 0)))


def writable(command: str) -> bool:
    """Whether the command is one printable line of a length that a block may hold."""
    return bool(command.strip()) and is_printable(command) and len(command) <= COMMAND_CHARS_MAX
