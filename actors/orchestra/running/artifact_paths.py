"""The artifacts of a task that can lie beside each other as files; pure.

They were files once, but their names have been masked since: two may have one name by now, one may lie below another,
and a name may have become longer than a file system takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from pmagent.contracts.orchestra import PATH_CHARS_MAX, Artifact

NAME_BYTES_MAX: Final = 255
"""NAME_MAX, of Linux."""


def without_clashes(folder: str, artifacts: Iterable[Artifact]) -> tuple[list[Artifact], list[str]]:
    """The artifacts of a task, each in ``folder`` ("": as it is), of which none has another's path or lies below
    another: the first where two clash. And the paths of the others."""
    kept: list[Artifact] = []
    files: set[str] = set()
    folders: set[str] = set()
    lost: list[str] = []
    for given in artifacts:
        artifact = given
        if folder and not given.path.startswith(f"{folder}/"):
            artifact = msgspec.structs.replace(given, path=f"{folder}/{given.path}")
        above = _above(artifact.path) if "/" in artifact.path else ()
        taken = artifact.path in files or artifact.path in folders or not files.isdisjoint(above)
        if taken or not _fits(artifact.path):
            lost.append(given.path)
            continue
        kept.append(artifact)
        files.add(artifact.path)
        folders.update(above)
    return kept, lost


def _above(path: str) -> list[str]:
    """The folders in which it lies."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def _fits(path: str) -> bool:
    """Whether a file system takes it, and a document may hold it."""
    if len(path) <= NAME_BYTES_MAX and path.isascii():
        return True
    return len(path) <= PATH_CHARS_MAX and all(len(part.encode()) <= NAME_BYTES_MAX for part in path.split("/"))
