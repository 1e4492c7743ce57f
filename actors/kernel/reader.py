"""Reads all surfaces as one observation; blocking (docs/design.md §12.1).

Writers of surfaces are not atomic, and a kernel is several files. So a reading counts only if every file
looked the same before and after all were read, and had been left alone for a quiet period; a file that does
not parse gets longer. All waiting together is bounded, and what is still moving then is recorded as it was
found.

The file system and the clock come in as ``Files``, so that simulation and tests need neither.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from pmagent.actors.kernel import surfaces
from pmagent.contracts.kernel import SURFACE_BYTES_MAX, KernelObserved, SurfaceReading, SurfaceStatus

QUIET_S = 0.2
"""For so long no surface may have changed (seconds)."""

WAIT_S = 1.0
"""So long a reading waits for quiet, or for a file to parse, at most (seconds)."""

STEP_S = 0.05
DEPTH_MAX = 100
"""Deeper nesting than any surface has; beyond it, code that walks the content could run out of stack."""

Kind = Literal["file", "missing", "other", "error"]


class Look(msgspec.Struct, frozen=True):
    """A path as it is: ``mark`` changes when the file does, ``changed_at`` is seconds on the clock of
    ``now``."""

    kind: Kind
    mark: tuple[int, ...] = ()
    changed_at: float = -math.inf
    detail: str = ""


class Files(Protocol):
    """The world, as a reading needs it. No method raises OSError, except ``read``."""

    def look(self, path: Path) -> Look:
        """The path as it is now, links followed."""

    def read(self, path: Path, limit: int) -> bytes:
        """At most ``limit`` bytes of a regular file; never waits for one. Raises OSError."""

    def names(self, folder: Path) -> list[str]:
        """Names in a folder; empty when there is no such folder."""

    def now(self) -> float:
        """Seconds on the clock that ``changed_at`` is told by."""

    def elapsed(self) -> float:
        """Seconds since some fixed moment; never goes back."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class LeadsOut(OSError):
    """A file that a link in the workspace leads to, but that lies outside it: it is not the workspace's to show."""


class RealFiles:
    """The workspace's own file system. Files outside ``root``, where one is given, are not read: what is read ends up
    in the log and in documents, and whoever made the link may not be allowed to read what it leads to."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = None if root is None else Path(os.path.realpath(root))

    def look(self, path: Path) -> Look:
        """See ``Files``."""
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return Look("missing")
        except (OSError, ValueError) as error:
            return Look("error", detail=_cause(error))
        mark = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        if not stat.S_ISREG(found.st_mode):
            return Look("other", mark, found.st_ctime_ns / 1e9, "not a regular file")
        # The change time, because unlike the modification time no program can set it back.
        return Look("file", mark, found.st_ctime_ns / 1e9)

    def read(self, path: Path, limit: int) -> bytes:
        """See ``Files``."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with open(descriptor, "rb", buffering=0) as file:
            # Looked at before, but it may have been swapped for a pipe since.
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            opened = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            if self._root is not None and not opened.is_relative_to(self._root):
                raise LeadsOut
            parts: list[bytes] = []
            left = limit
            while left > 0 and (part := file.read(left)):
                parts.append(part)
                left -= len(part)
            return b"".join(parts)

    def names(self, folder: Path) -> list[str]:
        """See ``Files``."""
        try:
            return os.listdir(folder)
        except OSError:
            return []

    def now(self) -> float:
        """See ``Files``."""
        return time.time()

    def elapsed(self) -> float:
        """See ``Files``."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """See ``Files``."""
        time.sleep(seconds)


class Moment(msgspec.Struct, frozen=True):
    """Everything that tells one state of the workspace's surfaces from another without reading them."""

    paths: dict[str, str]
    looks: dict[str, Look]
    existing: list[str]


class _Paths(dict[str, Path]):
    """The paths below ``workspace``, which are looked at several times for each reading, and several times a second
    while they are watched."""

    def __init__(self, workspace: Path) -> None:
        super().__init__()
        self._workspace = workspace

    def __missing__(self, path: str) -> Path:
        if len(self) >= _PLACES_MAX:
            self.clear()
        found = self[path] = self._workspace / path
        return found


_PLACES_MAX = 128
_below = lru_cache(maxsize=8)(_Paths)
"""The places of a workspace."""


@lru_cache(maxsize=32)
def _newest(names: tuple[str, ...]) -> str:
    """The newest SSOT surface among the names in its folder, which rarely change."""
    return surfaces.newest_ssot(names)


def glance(workspace: Path, files: Files) -> Moment:
    """The surfaces as they look now: which paths, and what their marks are. Reads no content."""
    at = _below(workspace)
    newest = _newest(tuple(files.names(at[surfaces.SHARE])))
    paths = dict(surfaces.PATHS)
    if newest:
        paths[surfaces.SSOT] = f"{surfaces.SHARE}/{newest}"
    looks = {name: files.look(at[path]) for name, path in paths.items()}
    seen = {paths[name]: look for name, look in looks.items()}
    named = surfaces.named_in_state(paths[surfaces.SSOT]).values()
    kinds = ((path, (seen.get(path) or files.look(at[path])).kind) for path in named)
    existing = sorted(path for path, kind in kinds if kind in ("file", "other"))
    return Moment(paths, looks, existing)


def read_surfaces(workspace: Path, files: Files | None = None, *, request: int = 0) -> KernelObserved:
    """All surfaces of ``workspace`` (absolute) as one observation; blocks for at most about ``WAIT_S``
    seconds.

    Never raises for what the files are like: that is what the readings' statuses tell. ``request`` is the
    position of the kernel.read_requested that this answers.
    """
    world = files or RealFiles(workspace)
    began = world.elapsed()
    known: dict[str, tuple[bytes, SurfaceReading]] = {}
    while True:
        before = glance(workspace, world)
        readings = [_read(workspace, name, before, world, known) for name in surfaces.NAMES]
        after = glance(workspace, world)
        still = before == after
        needed = _needed(workspace, before, readings, world) if still else STEP_S
        if needed <= 0:
            return KernelObserved(surfaces=readings, existing=after.existing, request=request)
        left = WAIT_S - (world.elapsed() - began)
        if left <= 0:
            settled = readings if still else _moving(before, after, readings)
            return KernelObserved(surfaces=settled, existing=after.existing, request=request)
        world.sleep(min(left, needed, STEP_S))


def _needed(workspace: Path, moment: Moment, readings: Sequence[SurfaceReading], files: Files) -> float:
    """Seconds that the surfaces must still be left alone for before what was read of them counts."""
    needed, now = 0.0, files.now()
    for reading in readings:
        look = moment.looks[reading.name]
        if look.kind == "missing":
            # Some writers delete a file before they write it anew; its folder tells when that was.
            look = _nearest(_below(workspace)[reading.path], workspace, files)
        quiet = WAIT_S if look.kind == "file" and reading.status not in ("ok", "too_large") else QUIET_S
        needed = max(needed, quiet - max(0.0, now - look.changed_at))
    return needed


def _nearest(path: Path, workspace: Path, files: Files) -> Look:
    """The nearest folder above ``path`` that exists, the workspace at most."""
    while path != workspace:
        path = path.parent
        if (look := files.look(path)).kind != "missing":
            return look
    return Look("missing", changed_at=-math.inf)


def _moving(before: Moment, after: Moment, readings: Sequence[SurfaceReading]) -> list[SurfaceReading]:
    """The readings after all waiting: what changed even while it was read may be half old, half new."""
    return [
        reading
        if before.looks[reading.name] == after.looks[reading.name]
        and before.paths[reading.name] == after.paths[reading.name]
        else _unread(reading, "unreadable", "it kept changing while it was read")
        for reading in readings
    ]


def _unread(reading: SurfaceReading, status: SurfaceStatus, detail: str) -> SurfaceReading:
    return SurfaceReading(name=reading.name, path=reading.path, required=reading.required, status=status, detail=detail)


def _read(
    workspace: Path, name: str, moment: Moment, files: Files, known: dict[str, tuple[bytes, SurfaceReading]]
) -> SurfaceReading:
    """``known``: of each path, the bytes that were read last, and what they say."""
    path, look = moment.paths[name], moment.looks[name]
    blank = SurfaceReading(name=name, path=path, required=name in surfaces.REQUIRED, status="missing")
    if look.kind == "missing":
        return blank
    if look.kind != "file":
        return _unread(blank, "unreadable", look.detail)
    try:
        raw = files.read(_below(workspace)[path], SURFACE_BYTES_MAX + 1)
    except FileNotFoundError:
        return blank
    except OSError as error:
        return _unread(blank, "unreadable", _cause(error))
    if len(raw) > SURFACE_BYTES_MAX:
        return _unread(blank, "too_large", f"more than {SURFACE_BYTES_MAX} bytes")
    before = known.get(path)
    if before is not None and before[0] == raw:
        return before[1]
    reading = (_kept_reading if len(raw) <= _KEPT_BYTES_MAX else _reading)(name, path, raw)
    known[path] = raw, reading
    return reading


def parse(name: str, raw: bytes) -> tuple[SurfaceStatus, str, Any]:
    """Status, what is wrong, and the content (None unless ok) of surface ``name`` with the bytes ``raw``."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        return "not_utf8", f"byte {error.start}", None
    if not text.strip():
        return "not_json", "it is empty", None
    try:
        content = msgspec.json.decode(raw)
        json.loads(text, object_pairs_hook=_distinct)
    except RecursionError:
        return "not_json", "nested too deeply", None
    except _Doubled:
        return "not_json", "a key stands twice in one object", None
    except (msgspec.DecodeError, ValueError):
        return "not_json", "", None
    if _depth(content) > DEPTH_MAX:
        return "not_json", "nested too deeply", None
    lack = surfaces.problem(name, content)
    return ("invalid", lack, None) if lack else ("ok", "", content)


def _reading(name: str, path: str, raw: bytes) -> SurfaceReading:
    """The surface that these bytes of a file hold."""
    status, detail, content = parse(name, raw)
    return SurfaceReading(
        name=name, path=path, required=name in surfaces.REQUIRED, status=status, detail=detail,
        sha256=hashlib.sha256(raw).hexdigest(), size=len(raw), content=content,
    )


_KEPT_BYTES_MAX = 64 * 1024
_kept_reading = lru_cache(maxsize=32)(_reading)
"""Surfaces mostly are as they were when they are looked at again; nobody changes a content."""


class _Doubled(ValueError):
    """Two values for one key: readers would disagree on which one counts."""


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) != len(pairs):
        raise _Doubled


def _depth(content: Any) -> int:
    """How deeply containers nest, counted without recursion."""
    depth, layer = 0, [content]
    while layer := [inner for value in layer for inner in _inside(value)]:
        depth += 1
    return depth


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values()) or [None]
    if isinstance(value, list):
        return value or [None]
    return []


def _cause(error: Exception) -> str:
    """The system's name for an error (EACCES, EIO …), never its text."""
    if isinstance(error, LeadsOut):
        return "a link leads out of the workspace"
    number = getattr(error, "errno", None)
    return errno.errorcode.get(number, "") if isinstance(number, int) else "not a path"
