"""The status that an orderly end left in the snapshot cache: ``pmagent status`` without the engine.

For a log that nobody holds. It counts only where the snapshot is the one that this user's registry names, and the log
ends where it was taken; otherwise the log is folded (``operations.offline_status``), with the same answer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from pmagent._origin import PLACE
from pmagent.events.errors import PmagentError
from pmagent.events.event import Tail
from pmagent.events.log import LogClock, ahead_seconds
from pmagent.events.user_state import ACCEPTED
from pmagent.projections.core.disk import noted_halts
from pmagent.workspace.layout import Layout
from pmagent.workspace.settings import FILE
from pmagent.workspace.user_registry import Registry, snapshot_digest

_FILES: Final = 2
"""So many files make up a configuration."""


class NotedStatus(msgspec.Struct, frozen=True):
    """``document`` without what the clock and other files say; ``permits`` are the ends of those with uses left.
    ``code`` is the ``code_stamp`` of who noted it."""

    code: str
    document: dict[str, Any]
    permits: list[str]


class _Taken(msgspec.Struct, frozen=True):
    """A snapshot (``pmagent.actors.core.snapshot``), without its folds."""

    log_id: str
    tail: Tail
    status: bytes = b""


@cache
def code_stamp() -> str:
    """A digest over places, sizes and times of the program's own files: another one means other code, perhaps. "":
    there is none, for the files come and go."""
    try:
        return sha256(repr(sorted(sources(PLACE))).encode()).hexdigest()
    except OSError:
        return ""


def sources(folder: str) -> Iterator[tuple[str, int, int]]:
    """Code and the data files that decide with it, below ``folder``: path, size, time in ns. Raises OSError."""
    pending = [folder]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.name.endswith((".py", ".toml")):
                    status = entry.stat(follow_symlinks=False)
                    yield entry.path, status.st_size, status.st_mtime_ns
                elif entry.name.isidentifier() and entry.name != "__pycache__" and entry.is_dir():
                    pending.append(entry.path)


def noted_status(workspace: Path) -> dict[str, Any] | None:
    """The document of ``status``; None where the log has to be folded for it. Raises DocumentUnwritable."""
    layout = Layout(workspace.resolve())
    noted = _noted(layout)
    if noted is None:
        return None
    document = noted.document
    now = LogClock(document["log"]["time"] or "").now()
    return {
        **document, "permits": sum(now < end for end in noted.permits),
        "stale": [msgspec.to_builtins(halt) for halt in noted_halts(layout.workspace)],
        "log": {**document["log"], "ahead_s": ahead_seconds(document["log"]["time"] or "")}, "distrust": None,
        "unaccepted": _unaccepted(layout.workspace),
    }


def _noted(layout: Layout) -> NotedStatus | None:
    digest = snapshot_digest(layout)
    try:
        content = layout.snapshot.read_bytes() if digest else b""
        with closing(layout.store.reader()) as storage:
            log_id, tail = storage.log_id(), storage.tail()
    except (OSError, PmagentError):  # the full look says what is wrong
        return None
    if not digest or sha256(content).hexdigest() != digest:
        return None
    try:
        taken = msgspec.msgpack.decode(content[32:], type=_Taken)
        noted = msgspec.json.decode(taken.status, type=NotedStatus)
    except msgspec.DecodeError:
        return None
    same = (taken.log_id, taken.tail.position, taken.tail.sum) == (log_id, tail.position, tail.sum)
    return noted if same and noted.code and noted.code == code_stamp() else None


def _unaccepted(workspace: Path) -> str | None:
    """``unaccepted_of``, without reading files that are as they were when they were accepted."""
    try:
        accepted = Registry().read(ACCEPTED, workspace, _AcceptedFiles)
        files = accepted.files if accepted is not None else {}
        same = all(sha256(_content(workspace / name)).hexdigest() == sum for name, sum in files.items())
        if same and FILE in files and len(files) == _FILES:
            return None
    except (OSError, PmagentError):  # so does this one
        pass
    from pmagent.workspace.trust import unaccepted_of

    return unaccepted_of(workspace)


class _AcceptedFiles(msgspec.Struct, frozen=True):
    files: dict[str, str]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
