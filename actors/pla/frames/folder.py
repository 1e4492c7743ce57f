"""The newest picture of a folder (docs/design.md §16.10); blocking.

Only regular files of the folder itself count: no link leads out of it, nothing is waited for, and what another program
is still writing is left for the next look.
"""

from __future__ import annotations

import errno
import heapq
import os
import stat
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from pmagent.actors.pla.frames.pictures import NotAPicture, Picture, TooLarge, picture
from pmagent.actors.pla.frames.problem import NoFrame

BYTES_MAX: Final = 16 * 2**20
"""A larger file is no frame."""
ENDINGS: Final = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
UNFINISHED_MAX: Final = 8
"""So many of the newest pictures may be unfinished; the next older one is taken."""
OLD_SECONDS: Final = 60
"""Of an older picture it is noted how old it is."""
AHEAD_SECONDS: Final = 5
"""Of one that is dated further ahead it is noted: it stays the newest until then."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Taken(NamedTuple):
    """A frame's picture: its name, its bytes, what they are, and what is to be noted."""

    name: str
    content: bytes
    picture: Picture
    notes: list[str]


def newest(path: str) -> Taken:
    """The newest picture in the folder at ``path`` that is all there. Raises NoFrame, OSError."""
    folder = os.open(path, _FOLDER)
    try:
        notes: list[str] = []
        for changed, name in _newest_first(folder):
            content = _content(folder, name)
            if content is None:
                continue
            try:
                found = picture(content)
            except NotAPicture as error:
                if not error.unfinished:
                    raise NoFrame("not_a_picture", f"{_quoted(name)}: {error.text}", _MEND) from error
                notes.append(f"{_quoted(name)} is not all there, and an older one was taken")
                continue
            except TooLarge as error:
                raise NoFrame("too_large", f"{_quoted(name)}: {error.text}", "have smaller frames taken") from error
            age = time.time() - changed / 1e9
            if age > OLD_SECONDS:
                notes.append(f"the picture is {age:.0f} s old")
            elif age < -AHEAD_SECONDS:
                notes.append(f"the picture is dated {-age:.0f} s ahead of now, and others may be newer")
            return Taken(_quoted(name), content, found, notes)
        if notes:
            raise NoFrame("not_a_picture", "the newest pictures in the folder are not all there", "ask again")
        raise NoFrame("no_frame", "there is no picture in the folder of frames", _MEND)
    finally:
        os.close(folder)


_MEND: Final = f"put a picture there ({', '.join(ending[1:] for ending in ENDINGS)}), or name another folder"


def _newest_first(folder: int) -> list[tuple[int, str]]:
    """When and under which names regular files that are called pictures were changed, the newest ones."""
    return heapq.nlargest(UNFINISHED_MAX + 1, _pictures(folder))


def _pictures(folder: int) -> Iterator[tuple[int, str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or not entry.name.lower().endswith(ENDINGS):
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # gone meanwhile
                continue
            if stat.S_ISREG(found.st_mode):
                yield found.st_mtime_ns, entry.name


def _content(folder: int, name: str) -> bytes | None:
    """The file's bytes; None when it is gone, or no regular file any more. Raises NoFrame, OSError."""
    try:
        file = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
            return None
        raise
    with open(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            return None
        content = opened.read(BYTES_MAX + 1)
    if len(content) > BYTES_MAX:
        raise NoFrame("too_large", f"{_quoted(name)} is larger than {BYTES_MAX} bytes", "have smaller frames taken")
    return content


def _quoted(name: str) -> str:
    """A file's name as a fact can hold it: names may be any bytes."""
    return name.encode("utf-8", "replace").decode()
