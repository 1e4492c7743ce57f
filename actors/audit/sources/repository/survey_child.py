"""The process that reads the code of others: ``python -I -m pmagent.actors.audit.sources.repository.survey_child``,
run by ``limited``. It gets its request on standard input, answers on standard output, and announces each file before it
reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from pmagent.actors.audit.detectors.code.parse import LFS_MARK, is_installed, is_python
from pmagent.actors.audit.detectors.code.survey import CodeFacts, CodeReader
from pmagent.actors.audit.sources.repository import announced
from pmagent.actors.audit.sources.repository.functions import functions_of
from pmagent.actors.audit.sources.repository.objects import Missing, Objects
from pmagent.actors.audit.sources.repository.tree import Entry, counted, named
from pmagent.contracts.audit_facts import Function, History, Unparsed

_ENVIRONMENT: Final = "pyvenv.cfg"
"""Lies at the top of a virtual environment, whatever that is called."""
_HEAD_BYTES: Final = 256
_SCRIPT_BYTES: Final = 2**20
_POINTER_BYTES: Final = 1024
_POINTERS_READ: Final = 20_000


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """``files`` of the repository ``git_dir`` (``config``: git's configuration), in the order of their paths. Of
    ``skip``, with the reasons, the process before this one died. ``read_max`` files of at most ``file_bytes`` are
    read; ``function_bytes`` of code around the findings are kept."""

    git_dir: str
    config: str
    files: list[Entry]
    history: History
    file_bytes: int
    read_max: int
    skip: dict[str, str] = {}
    function_bytes: int = 0


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The facts found in the code; ``notes``: what was left out."""

    code: CodeFacts
    notes: list[str]
    functions: list[Function] = []


class _Survey:
    """One survey."""

    def __init__(self, request: Request, objects: Objects) -> None:
        self._request = request
        self._objects = objects
        self._by_path = {entry.path: entry for entry in request.files}
        marks = [entry.path for entry in request.files if entry.path.endswith(f"/{_ENVIRONMENT}")]
        self._environments = tuple(mark.removesuffix(_ENVIRONMENT) for mark in marks)
        self._reader = CodeReader(list(self._by_path))
        self._large: list[str] = []
        self._installed: list[str] = []
        self._missing: list[str] = []
        self._read = 0
        self._unread = 0

    def run(self) -> Answer:
        """Read every file that is Python."""
        for entry in self._request.files:
            if self._is_wanted(entry):
                self._take(entry)
        announced.finish()
        code = self._reader.facts(list(self._by_path), self.content, self._request.history)
        unread = len(self._large) + len(self._missing) + self._unread
        if unread:
            code = msgspec.structs.replace(code, examined={**code.examined, "unread": unread})
        pointers = self._pointers()
        functions = functions_of(
            code.findings, code.graphs, self._readable, list(self._by_path), self._request.function_bytes
        )
        return Answer(code=code, notes=list(self._notes(pointers)), functions=functions)

    def _readable(self, path: str) -> bytes | None:
        return None if path in self._request.skip else self.content(path)

    def _is_wanted(self, entry: Entry) -> bool:
        """By its name; what may be a script is opened to see."""
        if entry.link:
            return False
        bare = "." not in entry.path.rpartition("/")[2]
        if is_python(entry.path) or (bare and 0 < entry.size <= _SCRIPT_BYTES and self._is_script(entry)):
            if is_installed(entry.path) or entry.path.startswith(self._environments):
                self._installed.append(entry.path)
                return False
            return True
        return False

    def _is_script(self, entry: Entry) -> bool:
        content = self.content(entry.path)
        return content is not None and is_python(entry.path, content[:_HEAD_BYTES])

    def _take(self, entry: Entry) -> None:
        if reason := self._request.skip.get(entry.path):
            self._reader.refuse(Unparsed(path=entry.path, line=0, reason=reason))
        elif entry.size > self._request.file_bytes:
            self._large.append(entry.path)
        elif self._read >= self._request.read_max:
            self._unread += 1
        else:
            self._read += 1
            content = self.content(entry.path)
            if content is None:
                self._missing.append(entry.path)
                return
            announced.take(entry.path, content, self._reader.take)

    def content(self, path: str) -> bytes | None:
        """The content of a file; None when there is none, or it is too large."""
        entry = self._by_path.get(path)
        if entry is None or entry.link or entry.size > self._request.file_bytes:
            return None
        try:
            return self._objects.read(entry.object)
        except Missing:
            return None

    def _pointers(self) -> int:
        """How many files are kept elsewhere by Git LFS."""
        attributes = [path for path in self._by_path if path.rpartition("/")[2] == ".gitattributes"]
        if not any(b"filter=lfs" in (self.content(path) or b"") for path in attributes[:_POINTERS_READ]):
            return 0
        small = [entry.path for entry in self._request.files if len(LFS_MARK) < entry.size <= _POINTER_BYTES]
        return sum((self.content(path) or b"").startswith(LFS_MARK) for path in small[:_POINTERS_READ])

    def _notes(self, pointers: int) -> Iterator[str]:
        if self._installed:
            yield f"{counted(len(self._installed), 'file')} of installed packages, left out: {named(self._installed)}"
        if self._large:
            most = self._request.file_bytes
            yield f"{counted(len(self._large), 'file')} larger than {most} bytes, not read: {named(self._large)}"
        if self._unread:
            yield f"{counted(self._unread, 'Python file')}, not read: there are more than {self._request.read_max}"
        if self._missing:
            yield f"{counted(len(self._missing), 'file')}, missing from git's objects: {named(self._missing)}"
        if pointers:
            yield f"{counted(pointers, 'pointer')} of Git LFS; what they point to was not fetched"


def answer(request: bytes) -> bytes:
    """Do what is asked."""
    asked = msgspec.json.decode(request, type=Request)
    with Objects(asked.git_dir, asked.config) as objects:
        return msgspec.json.encode(_Survey(asked, objects).run())


if __name__ == "__main__":
    announced.answering(answer)
