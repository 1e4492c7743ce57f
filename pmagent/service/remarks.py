"""Remarks of a command besides its answer, from places that know no screen."""

from __future__ import annotations

from collections.abc import Callable

_listeners: list[Callable[[str], None]] = []


def heard_by(listener: Callable[[str], None]) -> None:
    """From now on ``listener`` hears remarks, and nobody else."""
    _listeners[:] = [listener]


def remark(text: str) -> None:
    """Say it; where nobody listens (a program that imports us) it is not said."""
    for listener in _listeners:
        listener(text)
