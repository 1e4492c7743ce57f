"""Whether the files of a workspace's log are such that nobody else can have them changed: no links, no second names,
not writable for others, of one owner, on a disk of this machine."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pmagent.clean import clean_line
from pmagent.events.errors import PmagentError
from pmagent.workspace.layout import Layout

NETWORK: Final = frozenset((
    "9p", "afs", "ceph", "cifs", "fuse.ceph", "fuse.cephfs", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs",
    "gfs2", "glusterfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb2", "smb3", "smbfs",
))  # fmt: skip
"""File systems that several machines may write at once: a lock need not hold on the others, what one has written
another may see late, and device and inode numbers change. Other FUSE file systems are taken for local ones."""

_LINKS_ALLOWED: Final = frozenset(("config.toml", ".gitignore"))
"""Names in ``.pmagent`` that may be links: what they hold is not believed for where it lies."""


class LogFilesUnsafe(PmagentError, exit_code=7):
    """Somebody else may be able to change the files of the log, or have them changed; so nothing acts on it."""


def shown(path: str | os.PathLike[str]) -> str:
    """A path for people, on one line."""
    return clean_line(os.fsencode(path).decode("utf-8", "replace"))


def check_files(layout: Layout, uid: int | None) -> None:
    """Look at ``.pmagent``, the log, the blobs and the lock, as far as they are there. ``uid``: their owner, if it is
    to be another user than this one. Raises LogFilesUnsafe, OSError."""
    owners = {os.getuid(), uid if uid is not None else os.getuid()}
    writable: list[Path] = []
    for path in _concerned(layout):
        try:
            found = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        if stat.S_ISLNK(found.st_mode):
            raise LogFilesUnsafe(f"{shown(path)} is a symbolic link", "put what it leads to in its place, or remove it")
        if not stat.S_ISDIR(found.st_mode):
            _check_file(path, found)
        if found.st_uid not in owners:
            what = f"{shown(path)} belongs to user {found.st_uid}, not to {os.getuid()}"
            raise LogFilesUnsafe(what, "pmagent log adopt accepts that, or chown it")
        if found.st_mode & 0o022:
            writable.append(path)
    if writable:
        names = " ".join(shlex.quote(shown(path)) for path in writable[:4])
        what = f"others may write {', '.join(shown(path) for path in writable[:4])}{', …' if writable[4:] else ''}"
        raise LogFilesUnsafe(what, f"look what they wrote, then: chmod go-w {names}{' …' if writable[4:] else ''}")
    _check_disk(layout.log)


def _check_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise LogFilesUnsafe(f"{shown(path)} is no file", "move it away")
    if found.st_nlink > 1:
        what = f"{shown(path)} has {found.st_nlink} names (hard links), so it may be written elsewhere"
        raise LogFilesUnsafe(what, f"copy it over itself: cp -p {shlex.quote(shown(path))} X && mv X ...")


def _concerned(layout: Layout) -> Iterator[Path]:
    """Folders from ``.pmagent`` on, first those above, with the locks; then what is written in place. Each once."""
    files = layout.store.files()
    ends = (*files.folders, layout.snapshot.parent, *files.lease)
    within = (path for end in ends for path in (*reversed(end.parents), end))
    places = (path for path in within if path in ends or path.is_relative_to(layout.folder))
    links = (path for path in _entries(layout.folder) if path.is_symlink() and path.name not in _LINKS_ALLOWED)
    yield from dict.fromkeys((layout.folder, *places, *links, *files.written))


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _check_disk(folder: Path) -> None:
    """Raises LogFilesUnsafe for a file system of the network."""
    kind = file_system(os.path.realpath(folder))
    if kind in NETWORK:
        raise LogFilesUnsafe(
            f"{shown(folder)} lies on a network file system ({kind}), where no lock keeps a second writer away",
            "keep the log on a disk of this machine",
        )


def file_system(path: str, mounts: str = "/proc/self/mountinfo") -> str:
    """The type of the file system that ``path``, a real path, lies on; "" where nobody can tell."""
    try:
        lines = Path(mounts).read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, types = before.split(" "), after.split(" ")
        if len(fields) < 5 or not types[0]:
            continue
        point = _unescaped(fields[4])
        if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, types[0]  # of several at one place the last one is seen
    return kind


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
