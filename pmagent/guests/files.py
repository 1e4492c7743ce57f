"""Questions about the files of this machine, as the facts of a call need them.

Each question is kept with its answer. So facts that were found once can be used again as long as all questions that
led to them are answered as they were: nothing is taken from memory that the machine would not say now.
"""

from __future__ import annotations

import glob
import os
import posixpath
import stat
from itertools import islice
from typing import Any, Final

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
    ``lasting``: whether ``questions`` are all that was looked at."""

    def __init__(self, moment: Moment | None = None) -> None:
        self.lasting = True
        self._moment: Moment = {} if moment is None else moment
        self._answers: Moment = {}

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

    def matches(self, pattern: str, cwd: str | None, most: int) -> list[str]:
        """The paths that a wildcard stands for, ``most`` of them."""
        found: list[str] = self._asked(_matches, pattern, cwd, most)
        return found


def answer(moment: Moment, asked: Asked) -> Any:
    """The answer to a question in this moment."""
    found = moment.get(asked, _NOT_ASKED)
    if found is _NOT_ASKED:
        found = moment[asked] = asked[0](*asked[1:])
    return found


def same(questions: Moment, moment: Moment) -> bool:
    """Whether each question is answered in this moment as it was."""
    return all(answer(moment, asked) == known for asked, known in questions.items())


def _matches(pattern: str, cwd: str | None, most: int) -> list[str]:
    return list(islice(glob.iglob(pattern, root_dir=cwd, recursive=True), most))


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
