"""Whether a folder is a workspace at all, and whether the log that its documents tell of is there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from pmagent.actors.kernel.surfaces import SHARE
from pmagent.clean import escaped
from pmagent.events.errors import NotFound, PmagentError
from pmagent.events.evidence import FOLDER, log_in
from pmagent.projections.oa import state as oa_state
from pmagent.workspace.layout import Layout
from pmagent.workspace.user_registry import NEW_LOG, Registry, describe

_LOOKED_AT: Final = 200
_BYTES: Final = 64 * 1024
_SERVICES: Final = ("pmagent-orchestra", "pmagent-audit", "hexforge-pla")
_REPORTED: Final = re.compile(r"\bLog\b[^\n]*`([0-9a-f]{32})`")


class LogGone(PmagentError, exit_code=1):
    """The workspace's documents tell of a log that is not there; another one is never begun in silence."""


class BadPath(PmagentError, exit_code=2):
    """The workspace's path is not UTF-8, and the log, which names it, holds only text."""


def require_text(folder: Path) -> None:
    """Raises BadPath where the folder's path is not UTF-8."""
    if escaped(str(folder)) != str(folder):
        raise BadPath(f"the path {folder} is not UTF-8", "a workspace needs a path that is: rename the folder")


def is_workspace(folder: Path) -> bool:
    """Whether there are surfaces, or a log or settings."""
    return (folder / FOLDER).is_dir() or (folder / SHARE).is_dir()


def require_workspace(folder: Path) -> None:
    """Raises NotFound where there are neither surfaces nor a log: none is begun just because somebody stands in the
    wrong folder."""
    if not is_workspace(folder):
        what = f"{folder} is no workspace: it has neither {SHARE}/ nor {FOLDER}/"
        raise NotFound(what, "pmagent init makes it one; --workspace names another")


def require_log(layout: Layout) -> None:
    """For whoever would begin a log. Raises LogGone where documents tell of one that is not there, or one lies where
    the settings do not look."""
    if (gone := log_gone(layout)) is not None:
        raise gone


def log_gone(layout: Layout) -> LogGone | None:
    """The error for a workspace whose log is missing; None where nothing tells of one."""
    if layout.store.exists():
        return None
    for place in (layout.folder / "data" / "log", layout.folder / "log"):
        if (place != layout.log or layout.evidence.database) and log_in(place).exists():
            mend = f"move {place} and the blobs beside it to {layout.log.parent}, or change log_dir under [storage]"
            if layout.evidence.database:
                mend = f"pmagent log copy {place} {layout.store.place}, or take log under [storage] away"
            return LogGone(f"there is no log in {layout.store.place}, and one in {place}", mend)
    mention = next(_tellers(layout.workspace), None)
    if mention is None:
        return None
    document, log_id = mention
    which = f"log {log_id}" if log_id else "a log"
    return LogGone(
        f"{document} was written from {which}, and there is no log in {layout.store.place}",
        f"bring that log back, with its blobs; {NEW_LOG} begins another one, also in a fresh clone, which has none",
    )


def begin_log(layout: Layout) -> str:
    """Begin an empty log, whatever the documents and this user's registry tell of; its id. Raises LogLocked, OSError;
    PmagentError where there is one; RegistryUnusable."""
    store = layout.store
    if store.exists():
        raise PmagentError(f"there is a log in {store.place}", "move it away first, with the blobs beside it")
    layout.prepare()
    with store.lease("init") as lease, closing(lease.open()) as storage:
        Registry().note(layout.workspace, describe(layout, storage.log_id()))
        return storage.log_id()


def _tellers(workspace: Path) -> Iterator[tuple[str, str]]:
    """Documents of ours, each with the id of the log that it was written from ("" where it does not say)."""
    state = _json(workspace / oa_state.PATH)
    log = state.get("log")
    if isinstance(log, dict) and isinstance(log.get("log_id"), str) and log["log_id"]:
        yield oa_state.PATH, f"{log['log_id'][:64]} (up to position {log.get('position')})"
    for path in _some(workspace, "runs/*/report.md"):
        if (found := _REPORTED.search(_start(path).decode("utf-8", "replace"))) is not None:
            yield str(path.relative_to(workspace)), found[1]
    for path in _some(workspace, "jobs/*.json"):
        if _json(path).get("service") in _SERVICES:
            yield str(path.relative_to(workspace)), ""
    for path in _some(workspace, "sessions/*.jsonl"):
        if b'"previous_log_checksum":' in _start(path).partition(b"\n")[0]:
            yield str(path.relative_to(workspace)), ""


def _some(workspace: Path, pattern: str) -> list[Path]:
    try:
        return sorted(islice(workspace.glob(pattern), _LOOKED_AT))
    except OSError:
        return []


def _start(path: Path) -> bytes:
    """The first bytes of a regular file; none of anything else, or of what cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            return file.read(_BYTES)
    except OSError:
        return b""


def _json(path: Path) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(path.read_bytes() if path.is_file() else b"{}")
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
