"""Questions about the files of this machine, as the facts of a call need them.

Each question is kept with its answer. So facts that were found once can be used again as long as all questions that
led to them are answered as they were: nothing is taken from memory that the machine would not say now.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from itertools import islice
from typing import Any, Final

ENTRIES_MAX: Final = 20_000
"""So many entries of folders are looked at for a call; one that needs more is not understood."""
DEPTH_MAX: Final = 100
"""A wildcard is followed so many folders down."""
_NO_FOLDER: Final = frozenset((errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG))
QUESTIONS_MAX: Final = 64
"""Facts that needed more questions are not kept."""

Asked = tuple[Any, ...]
"""A question: whom to ask, and about what."""
Moment = dict[Asked, Any]
"""All that was asked in one moment, with the answers."""
_NOT_ASKED: Final = object()


class NotResolved(Exception):
    """A path whose links cannot be followed; the name of the error."""


class Files:
    """Answers of one ``moment``, which others may share: a question that comes again has the answer that it had.
    ``lasting``: whether ``questions`` are all that was looked at; ``left``: so many entries may still be."""

    def __init__(self, moment: Moment | None = None) -> None:
        self.lasting = True
        self.left = ENTRIES_MAX
        self._moment: Moment = {} if moment is None else moment
        self._answers: Moment = {}
        self._matched: dict[tuple[str, str | None, int], tuple[list[str], bool]] = {}

    @property
    def questions(self) -> Moment | None:
        """All questions so far, with their answers; None where they are not everything, or too many to ask them
        again."""
        return self._answers if self.lasting and len(self._answers) <= QUESTIONS_MAX else None

    def _asked(self, *key: Any) -> Any:
        found = self._answers[key] = answer(self._moment, key)
        return found

    def real(self, path: str) -> tuple[str, int]:
        """A path with its links resolved, and how many names the file has, if it is one (else 0). Raises
        NotResolved."""
        found: tuple[str, int] | str = self._asked(_real, path)
        if isinstance(found, str):
            raise NotResolved(found)
        return found

    def nearest(self, path: str) -> str:
        """A path with its links resolved as far as they can be followed."""
        try:
            return self.real(path)[0]
        except NotResolved:
            found: str = self._asked(os.path.realpath, path)
            return found

    def is_folder(self, path: str) -> bool:
        """Whether a folder is there, or a link to one."""
        found: bool = self._asked(os.path.isdir, path)
        return found

    def is_there(self, path: str) -> bool:
        """Whether something is there, be it a link that leads nowhere."""
        found: bool = self._asked(os.path.lexists, path)
        return found

    def matches(self, pattern: str, cwd: str | None, most: int) -> tuple[list[str], bool]:
        """The paths that a wildcard stands for, ``most`` of them, and whether these are all."""
        key = (pattern, cwd, most)
        if key not in self._matched:
            found, left = self._asked(_matches, pattern, cwd, most + 1, self.left)
            self.left = max(left, 0)
            self._matched[key] = found[:most], left >= 0 and len(found) <= most
        return self._matched[key]

    def entries(self, folder: str) -> list[os.DirEntry[str]] | None:
        """What is in a folder; None where that is too much. Raises OSError."""
        with os.scandir(folder) as entries:
            found = list(islice(entries, self.left + 1))
        self.left -= len(found)
        return found if self.left >= 0 else None


def answer(moment: Moment, asked: Asked) -> Any:
    """The answer to a question in this moment."""
    found = moment.get(asked, _NOT_ASKED)
    if found is _NOT_ASKED:
        found = moment[asked] = asked[0](*asked[1:])
    return found


def same(questions: Moment, moment: Moment) -> bool:
    """Whether each question is answered in this moment as it was."""
    return all(answer(moment, asked) == known for asked, known in questions.items())


@lru_cache(maxsize=256)
def any_of(globs: tuple[str, ...]) -> Callable[[str], object]:
    """Whether a name fits one of these globs."""
    return re.compile("|".join(map(translate, globs)) or r"(?!)").match


def _matches(pattern: str, cwd: str | None, most: int, left: int) -> tuple[list[str], int]:
    """``most`` of the paths, and how many entries may be looked at after that; -1 if these may not be all."""
    found, search = dict[str, None](), _Search(left)
    *folders, last = pattern.split("/")
    above, parts = "/" if pattern.startswith("/") else "", [*filter(None, folders), last]
    try:
        for path in islice(search.below(cwd or "/", above, parts, 0), most):
            found[path] = None
    except _TooManyError:
        return [*found], -1
    return [*found], search.left


class _TooManyError(Exception):
    """More entries would have to be looked at, or some cannot be."""


class _Search:
    """Paths that a wildcard stands for, as a shell with ``**`` finds them. Unlike the library's, it ends: a name that
    is nowhere would be looked for in every folder of the machine."""

    def __init__(self, left: int) -> None:
        self.left = left

    def below(self, cwd: str, above: str, parts: Sequence[str], depth: int) -> Iterator[str]:
        """The paths of these parts below ``above``. Raises _TooManyError."""
        if depth > DEPTH_MAX:
            raise _TooManyError
        part, rest, deep = parts[0], parts[1:], parts[0] == "**"
        if not re.search(r"[*?\[]", part):
            if rest:
                yield from self.below(cwd, f"{above}{part}/", rest, depth + 1)
            elif above + part and os.path.lexists(posixpath.join(cwd, above + part)):  # no name: the folder above
                yield above + part
            return
        if deep:  # no folder, or more of them
            yield from self.below(cwd, above, rest or [""], depth + 1)
        for name, folder in self._listed(cwd, above, "*" if deep else part):
            if not rest:
                yield above + name
            if folder and (deep or rest):
                yield from self.below(cwd, f"{above}{name}/", parts if deep else rest, depth + 1)

    def _listed(self, cwd: str, folder: str, part: str) -> Iterator[tuple[str, bool]]:
        fits, hidden = any_of((part,)), part.startswith(".")
        try:
            with os.scandir(posixpath.join(cwd, folder)) as entries:
                found = [*islice(entries, self.left + 1)]
        except OSError as error:
            if error.errno in _NO_FOLDER:  # a shell finds nothing there, either
                return
            raise _TooManyError from error
        self.left -= len(found) + 1
        if self.left < 0:
            raise _TooManyError
        for entry in found:
            if fits(entry.name) and (hidden or not entry.name.startswith(".")):
                yield entry.name, _is_folder(entry)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # links that lead nowhere, or in a circle
        return False


def _real(path: str) -> tuple[str, int] | str:
    try:
        try:
            return _of_kernel(path)
        except FileNotFoundError:
            return _not_there(path), 0
    except (OSError, ValueError) as error:
        return type(error).__name__


def _of_kernel(path: str) -> tuple[str, int]:
    file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        real = os.readlink(f"/proc/self/fd/{file}")
        status = os.fstat(file)
    finally:
        os.close(file)
    return real, status.st_nlink if stat.S_ISREG(status.st_mode) else 0


def _not_there(path: str) -> str:
    """The same for what is not there: the kernel knows the folder that is."""
    names, folder = [], path
    while True:
        above, name = posixpath.split(folder)
        if name in ("", ".", "..") or os.path.lexists(folder):  # or a link that leads nowhere
            return os.path.realpath(path)
        names.append(name)
        folder = above
        try:
            real, links = _of_kernel(folder)
        except FileNotFoundError:
            continue
        return os.path.realpath(path) if links else posixpath.join(real, *reversed(names))
