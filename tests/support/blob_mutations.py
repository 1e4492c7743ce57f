"""Alterations of blobs, each as somebody with access to the files might make it, or a disk; see ``log_mutations``."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from tests.support.log_mutations import Evidence, Mutation, flip, write


def _blob(change: Callable[[Random, Path, Evidence], None]) -> Mutation:
    """A change of one blob that is not empty."""

    def mutate(random: Random, evidence: Evidence) -> None:
        path = random.choice([path for path in evidence.all_blobs() if path.stat().st_size])
        change(random, path, evidence)

    return mutate


def _flip_blob(random: Random, path: Path, _: Evidence) -> None:
    data = bytearray(path.read_bytes())
    flip(random, data, random.randrange(len(data)))
    write(path, bytes(data))


def _remove_blob(_: Random, path: Path, __: Evidence) -> None:
    path.unlink()


def _cut_blob(random: Random, path: Path, _: Evidence) -> None:
    write(path, path.read_bytes()[: random.randrange(path.stat().st_size)])


def _grow_blob(random: Random, path: Path, _: Evidence) -> None:
    write(path, path.read_bytes() + random.randbytes(random.randrange(1, 50)))


def _other_blob(_: Random, path: Path, __: Evidence) -> None:
    write(path, b"x" * path.stat().st_size)


def _link_blob(_: Random, path: Path, __: Evidence) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def _swap_blobs(random: Random, path: Path, evidence: Evidence) -> None:
    others = [one for one in evidence.all_blobs() if one.read_bytes() != path.read_bytes()]
    other = random.choice(others)
    kept = path.read_bytes()
    write(path, other.read_bytes())
    write(other, kept)


def _empty_blob(_: Random, path: Path, __: Evidence) -> None:
    write(path, b"")


def _folder_for_blob(_: Random, path: Path, __: Evidence) -> None:
    path.unlink()
    path.mkdir()


def _misplaced_blob(_: Random, path: Path, evidence: Evidence) -> None:
    path.rename(evidence.blobs / path.name)


def _remove_blob_folder(_: Random, path: Path, __: Evidence) -> None:
    shutil.rmtree(path.parent)


def _remove_all_blobs(_: Random, __: Path, evidence: Evidence) -> None:
    shutil.rmtree(evidence.blobs)


BLOB_MUTATIONS: Final[dict[str, Mutation]] = {
    "a bit of a blob": _blob(_flip_blob),
    "a blob removed": _blob(_remove_blob),
    "a blob cut short": _blob(_cut_blob),
    "a blob grown": _blob(_grow_blob),
    "a blob's content replaced": _blob(_other_blob),
    "a blob that is a link": _blob(_link_blob),
    "blobs swapped": _blob(_swap_blobs),
    "a blob emptied": _blob(_empty_blob),
    "a folder for a blob": _blob(_folder_for_blob),
    "a blob misplaced": _blob(_misplaced_blob),
    "a folder of blobs removed": _blob(_remove_blob_folder),
    "all blobs removed": _blob(_remove_all_blobs),
}
"""Name -> alteration that must be reported."""
