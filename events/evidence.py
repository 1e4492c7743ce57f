"""Where a workspace keeps its evidence: the log, and the blobs beside it.

New workspaces keep them in ``.pmagent/data``, an empty git repository of its own: ``git clean`` and ``git add``
in the repository around it pass by. A workspace of an earlier release keeps them in ``.pmagent`` itself, and goes on to
do so. The setting ``[storage] log_dir`` puts them elsewhere.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Final

import msgspec

from pmagent.events.segment_log import SegmentLog
from pmagent.events.segments import SEGMENT_BYTES
from pmagent.events.store import LogStore

FOLDER: Final = ".pmagent"
"""The folder of a workspace that belongs to pmagent; agents and tasks can never write it."""

CONFIG: Final = f"{FOLDER}/config.toml"

_EARLIER: Final = ("log", "blobs", "operators.json")
"""Names of which an earlier release leaves at least one in ``.pmagent``."""


class Evidence(msgspec.Struct, frozen=True):
    """Absolute paths. ``home`` holds all that git must leave alone; ``log`` and ``blobs`` lie in it unless the
    workspace has a ``log_dir``, and always beside each other. ``locks``: all that the log's one writer holds locked:
    the log's folder, which counts; the file that an earlier release locks, which knows no other; and the file that says
    for people who the writer is."""

    home: Path
    log: Path
    blobs: Path
    locks: tuple[Path, ...] = ()


def evidence(workspace: Path) -> Evidence:
    """Where the evidence of ``workspace`` lies, or will lie when there is none yet. Reads names and one setting, writes
    nothing, and raises nothing: a config.toml that cannot be read sets nothing here."""
    workspace = workspace.absolute()
    folder = workspace / FOLDER
    home = folder / "data"
    if not os.path.lexists(home) and any(os.path.lexists(folder / name) for name in _EARLIER):
        home = folder
    where = log_dir(workspace) or home
    log = where / "log"
    return Evidence(home, log, where / "blobs", tuple(dict.fromkeys((log, folder / "LOCK", home / "LOCK"))))


def log_of(workspace: Path, kept: Evidence | None = None) -> LogStore:
    """The store of the workspace's log, whether or not there is one; ``kept``: its evidence, where that is known."""
    kept = kept or evidence(workspace)
    return SegmentLog(str(kept.log), kept.locks)


def log_in(folder: Path, segment_bytes: int = SEGMENT_BYTES) -> LogStore:
    """The store of the log in ``folder``, whether or not that is a workspace's: for reading and checking it, and for
    programs that keep a log without a workspace. ``segment_bytes``: the size at which a new segment begins."""
    return SegmentLog(str(folder), (folder, folder.parent / "LOCK"), segment_bytes=segment_bytes)


def log_dir(workspace: Path) -> Path | None:
    """The folder that ``[storage] log_dir`` of config.toml names, from ``workspace`` on; None when it names none. No
    variable sets it: it would hold for every workspace at once."""
    try:
        content = tomllib.loads((workspace / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    storage = content.get("storage")
    text = storage.get("log_dir") if isinstance(storage, dict) else None
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        return None
    return Path(os.path.normpath(workspace / Path(text).expanduser()))


def external_evidence(workspace: Path) -> tuple[str, ...]:
    """The real paths of evidence that lies elsewhere than in ``.pmagent``: no task may see or write that, either."""
    where = log_dir(workspace)
    if where is None:
        return ()
    real, within = os.path.realpath(where), os.path.realpath(workspace)
    if Path(real).is_relative_to(f"{within}/{FOLDER}"):
        return ()
    if Path(within).is_relative_to(real):
        return (os.path.realpath(f"{real}/log"), os.path.realpath(f"{real}/blobs"))
    return (real,)
