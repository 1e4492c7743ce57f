"""What a run left in writable folders and may not be there; blocking. Called when nothing of the run lives any more."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence

from actors.orchestra.ground import protected_in
from actors.orchestra.sandbox import Guarded
from actors.orchestra.wishes import OWN_TMP, SandboxRefused, Wishes

Before = Mapping[str, set[str]]
"""Writable folder -> the protected paths in it."""


def before(wishes: Wishes) -> Before:
    """What is protected in the writable folders now. Raises SandboxRefused where one cannot be looked through."""
    if wishes.fs != "rw":
        return {}
    return {path: protected_in(path) for path in wishes.allow_write if path != OWN_TMP and os.path.isdir(path)}


def clear(found: Before, guarded: Sequence[Guarded]) -> tuple[str, ...]:
    """Take away the stand-ins, and move aside whatever got a protected name since ``before``; tells what and where to.

    Nothing is deleted: the host's own user may have made it meanwhile. A folder that can no longer be looked through
    is told as well, for it may hide anything.
    """
    stand_ins = [guard.path for guard in guarded if guard.missing]
    for path in stand_ins:
        with contextlib.suppress(OSError):  # somebody of the host has filled it or taken it away: theirs now
            os.rmdir(path)
    told: list[str] = []
    for folder, known in found.items():
        try:
            new = protected_in(folder) - known - set(stand_ins)
        except SandboxRefused as refusal:
            told.append(refusal.message)
            continue
        for path in sorted(new):
            aside = _free(f"{path}.planted")
            os.rename(path, aside)
            told.append(f"{path}, now {aside}")
    return tuple(told)


def _free(path: str) -> str:
    number, free = 1, path
    while os.path.lexists(free):
        number += 1
        free = f"{path}-{number}"
    return free
