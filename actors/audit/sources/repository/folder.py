"""Reads the Python files below a folder that is there, without ever leaving it: no link is followed; blocking."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Final

from pmagent.actors.audit.detectors.code.parse import is_installed, is_python
from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.repository.tree import shown

DEPTH_MAX: Final = 100
_ENVIRONMENT: Final = b"pyvenv.cfg"
"""Lies at the top of a virtual environment, whatever that is called."""
_HEAD_BYTES: Final = 256
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def python_files(folder: str, file_bytes: int, files: int) -> list[tuple[str, bytes]]:
    """The Python files below ``folder``, in the order of their paths: path relative to it, content. ``.git`` and
    installed packages are left out, and files larger than ``file_bytes``. Raises SourceFailed: not_found; too_large,
    when there are more than ``files`` of them."""
    found: list[tuple[str, bytes]] = []
    try:
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        raise SourceFailed(
            "not_found", "the repository's path is no folder that can be read", "clone it first"
        ) from None
    for path, content in _below(top, b"", file_bytes, 0):
        found.append((path, content))
        if len(found) > files:
            raise SourceFailed("too_large", f"the folder has more than {files} Python files", "audit a smaller one")
    return sorted(found)


def _below(folder: int, prefix: bytes, file_bytes: int, depth: int) -> Iterator[tuple[str, bytes]]:
    """The files below an opened folder, which is closed at the end. Each step down is taken from the folder that is
    held open, so that nobody turns it into a way out meanwhile."""
    try:
        names = sorted(map(os.fsencode, os.listdir(folder)))
        if depth and _ENVIRONMENT in names:
            return
        for name in names:
            path = prefix + name
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    if name != b".git" and depth < DEPTH_MAX and not is_installed(f"{shown(path)}/x"):
                        inner = os.open(name, _OPEN | os.O_DIRECTORY, dir_fd=folder)
                        yield from _below(inner, path + b"/", file_bytes, depth + 1)
                elif stat.S_ISREG(status.st_mode) and status.st_size <= file_bytes:
                    content = _read(folder, name, shown(path), file_bytes)
                    if content is not None:
                        yield shown(path), content
            except OSError:  # it went while it was looked at, or nobody may read it
                continue
    finally:
        os.close(folder)


def _read(folder: int, name: bytes, path: str, file_bytes: int) -> bytes | None:
    """A Python file's content; None when it is none."""
    if not is_python(path) and b"." in name:
        return None
    handle = os.open(name, _OPEN, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        head = file.read(_HEAD_BYTES)
        return head + file.read(file_bytes) if is_python(path, head) else None
