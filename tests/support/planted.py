"""Faults of our own, put into the code for one test: a piece of a function's text is exchanged for another."""

from __future__ import annotations

import inspect
import sys
from textwrap import dedent
from typing import Any

import pytest


def plant(patch: pytest.MonkeyPatch, owner: Any, name: str, old: str, new: str) -> None:
    """Exchange ``old``, which stands once in the source of ``owner.name``, for ``new``. ``owner`` is a class, or a
    module (other modules that imported the function by its name keep the whole one)."""
    whole = getattr(owner, name)
    source = dedent(inspect.getsource(whole))
    assert source.count(old) == 1, f"{owner.__name__}.{name} holds {old!r} {source.count(old)} times"
    module = sys.modules[whole.__module__]
    lines = "\n" * (whole.__code__.co_firstlineno - 2)
    planted = "from __future__ import annotations" + lines + "\n" + source.replace(old, new)
    names: dict[str, Any] = {}
    exec(compile(planted, str(module.__file__), "exec"), module.__dict__, names)
    patch.setattr(owner, name, names[name])
