"""What a run left in writable folders and may not be there; blocking. Called when nothing of the run lives any more."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping, Sequence

from actors.orchestra.ground import protected_in
from actors.orchestra.sandbox import Guarded
from actors.orchestra.wishes import Wishes

Before = Mapping[str, set[str]]
"""Writable folder -> the protected paths in it."""


def before(wishes: Wishes) -> Before:
    """What is protected in the writable folders now. Raises SandboxRefused where one cannot be looked through."""
    return {path: protected_in(path) for path in wishes.writable if os.path.isdir(path)}


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
        closed: list[str] = []
        try:
            new = protected_in(folder, closed) - known - set(stand_ins)
        except OSError as error:
            told.append(f"{folder} could not be looked through: {error.strerror}")
            continue
        told += closed
        told += (_moved(path) for path in sorted(new))
    return tuple(told)


def _moved(path: str) -> str:
    """Move aside what was planted, also from a folder that was closed behind it; tells where to, or why not."""
    aside = _free(f"{path}.planted")
    above = os.path.dirname(path)
    try:
        mode = stat.S_IMODE(os.lstat(above).st_mode)
        os.chmod(above, mode | stat.S_IRWXU)
        try:
            os.rename(path, aside)
        finally:
            os.chmod(above, mode)
    except OSError as error:
        return f"{path}, which could not be moved: {error.strerror}"
    return f"{path}, now {aside}"


def _free(path: str) -> str:
    number, free = 1, path
    while os.path.lexists(free):
        number += 1
        free = f"{path}-{number}"
    return free
