"""Faults of our own, put into the code for one test: pieces of a function's text are exchanged for others."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping
from textwrap import dedent
from typing import Any

import pytest

from tests.support.effort import some

Planted = dict[str, tuple[str, list[tuple[Any, ...]]]]
"""A fault -> the pattern of a message that tells of it, and the arguments of ``plant`` that put it into the code."""


def by_day(planted: Mapping[str, object]) -> list[str]:
    """The faults to put in: by day a quarter of them, all by night."""
    return some([*planted], max(1, len(planted) // 4))


def plant_all(patch: pytest.MonkeyPatch, exchanges: Iterable[tuple[Any, ...]]) -> None:
    """``plant`` each."""
    for owner, name, *pieces in exchanges:
        plant(patch, owner, name, *pieces)


def plant(patch: pytest.MonkeyPatch, owner: Any, name: str, old: str, new: str, *more: str) -> None:
    """Exchange ``old``, which stands once in the source of ``owner.name``, for ``new``, and so on with ``more``.
    ``owner`` is a class, or a module (other modules that imported the function by its name keep the whole one)."""
    whole: Any = getattr(owner, name)
    whole = whole.fget if isinstance(whole, property) else whole
    source = dedent(inspect.getsource(whole))
    pairs = (old, new, *more)
    for piece, other in zip(pairs[::2], pairs[1::2], strict=True):
        assert source.count(piece) == 1, f"{owner.__name__}.{name} holds {piece!r} {source.count(piece)} times"
        source = source.replace(piece, other)
    module = sys.modules[whole.__module__]
    lines = "\n" * (whole.__code__.co_firstlineno - 2)
    planted = "from __future__ import annotations" + lines + "\n" + source
    names: dict[str, Any] = {}
    exec(compile(planted, str(module.__file__), "exec"), module.__dict__, names)
    patch.setattr(owner, name, names[name])
