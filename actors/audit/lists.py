"""The word lists and patterns of a package: ``lists.toml`` beside its code, a table for each module; pure."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Final


class Lists:
    """The table of one module. A list of words is one text, a pattern is written in pieces."""

    def __init__(self, package: str, module: str) -> None:
        self._table: Final = _read(package)[module]

    def ordered(self, name: str) -> tuple[str, ...]:
        """The words of a list, in its order."""
        return tuple(self._table[name].split())

    def words(self, name: str) -> frozenset[str]:
        """The words of a list."""
        return frozenset(self.ordered(name))

    def pattern(self, name: str) -> re.Pattern[str]:
        """A pattern; ``(?i)`` before it: in upper and lower case."""
        return re.compile("".join(self._table[name]))


@cache
def _read(package: str) -> dict[str, Any]:
    return tomllib.loads(files(package).joinpath("lists.toml").read_text("utf-8"))
