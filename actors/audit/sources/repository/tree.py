"""The files of the audited commit, as git lists them; nothing of them is opened here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.repository.history import Asks
from pmagent.contracts.audit_events import PATH_CHARS_MAX

ENTRIES_MAX: Final = 1_000_000
_LIST_BYTES: Final = 256 * 2**20
_LINK: Final = b"120000"
_NAMED: Final = 10
"""So many paths a note names."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A file: its path for people, the object with its content, and that one's size. ``executable`` as git has it. A
    ``link`` is symbolic: it is there, and never read."""

    path: str
    object: str
    size: int
    executable: bool
    link: bool = False


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """Files in the order of their paths; ``size`` the sum of theirs."""

    files: list[Entry]
    size: int
    notes: list[str]


def tree(ask: Asks, ref: str, clone_bytes: int) -> Tree:
    """The files of ``ref``. Raises SourceFailed: too_large when they are too many, or checked out would be larger than
    ``clone_bytes``; git."""
    listed = ask("ls-tree", "-r", "-l", "-z", "--full-tree", ref, output_bytes=_LIST_BYTES)
    files: list[Entry] = []
    modules: list[str] = []
    foreign = 0
    for record in listed.split(b"\0"):
        if not record:
            continue
        told, _, name = record.partition(b"\t")
        mode, kind, identifier, size = told.split()
        path = shown(name)
        foreign += path.encode() != name
        if kind == b"commit":
            modules.append(path)
        elif len(path) <= PATH_CHARS_MAX:
            known = int(size) if size.isdigit() else 0
            files.append(Entry(path, identifier.decode("ascii"), known, mode == b"100755", mode == _LINK))
    return _bounded(files, clone_bytes, _notes(modules, files, foreign))


def shown(name: bytes) -> str:
    """A path for people and for the log: what is not UTF-8, and what is a control character, is escaped."""
    text = name.decode("utf-8", "backslashreplace")
    if text.isprintable() and text.isascii():
        return text
    return "".join(f"\\x{ord(c):02x}" if ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 else c for c in text)


def named(paths: Sequence[str]) -> str:
    """Some of these paths, and how many more there are."""
    more = len(paths) - _NAMED
    return ", ".join(paths[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def counted(number: int, noun: str) -> str:
    """So many of them."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _bounded(files: list[Entry], clone_bytes: int, notes: list[str]) -> Tree:
    size = sum(entry.size for entry in files)
    if len(files) > ENTRIES_MAX:
        raise SourceFailed("too_large", f"the repository has more than {ENTRIES_MAX} files", "audit a smaller one")
    if size > clone_bytes:
        raise SourceFailed(
            "too_large",
            f"the repository's files take {size} bytes, more than {clone_bytes}",
            "raise clone_bytes, or audit a smaller one",
        )
    return Tree(files=sorted(files, key=lambda entry: entry.path), size=size, notes=notes)


def _notes(modules: list[str], files: list[Entry], foreign: int) -> list[str]:
    notes: list[str] = []
    links = [entry.path for entry in files if entry.link]
    if links:
        notes.append(f"{counted(len(links), 'symbolic link')}, not followed: {named(sorted(links))}")
    if modules:
        notes.append(f"{counted(len(modules), 'submodule')}, not fetched: {named(sorted(modules))}")
    if foreign:
        notes.append(f"{counted(foreign, 'file')} with names that are shown escaped: they are not printable UTF-8")
    alike = len(files) - len({_folded(entry.path) for entry in files})
    if alike:
        notes.append(f"{counted(alike, 'path')} like another but for upper and lower case")
    return notes


_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def _folded(path: str) -> str:
    """ASCII letters only: what else is a capital depends on the version of Unicode."""
    return path.translate(_LOWER)
