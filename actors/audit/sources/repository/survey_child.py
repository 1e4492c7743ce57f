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
from pmagent.actors.audit.sources.repository.side_by_side import PARTS_MAX, side_by_side
from pmagent.actors.audit.sources.repository.tree import Entry, counted, named
from pmagent.contracts.audit_facts import Function, History, Unparsed

_ENVIRONMENT: Final = "pyvenv.cfg"
"""Lies at the top of a virtual environment, whatever that is called."""
_PART_BYTES: Final = 2**18
_HEAD_BYTES: Final = 256
_SCRIPT_BYTES: Final = 2**20
_POINTER_BYTES: Final = 1024
_POINTERS_READ: Final = 20_000


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """``files`` of the repository ``git_dir`` (``config``: git's configuration), in the order of their paths. Of
    ``skip``, with the reasons, the process before this one died. ``read_max`` files of at most ``file_bytes`` are
    read, by so many ``processes``; ``function_bytes`` of code around the findings are kept."""

    git_dir: str
    config: str
    files: list[Entry]
    history: History
    file_bytes: int
    read_max: int
    skip: dict[str, str] = {}
    function_bytes: int = 0
    processes: int = 1


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
        self._large: list[str] = []
        self._installed: list[str] = []
        self._missing: list[str] = []
        self._unread = 0
        self._left = request.read_max

    def run(self) -> Answer:
        """Read every file that is Python."""
        reader = self._read()
        announced.finish()
        code = reader.facts(list(self._by_path), self.content, self._request.history)
        unread = len(self._large) + len(self._missing) + self._unread
        if unread:
            code = msgspec.structs.replace(code, examined={**code.examined, "unread": unread})
        pointers = self._pointers()
        functions = functions_of(
            code.findings, code.graphs, self._readable, list(self._by_path), self._request.function_bytes
        )
        return Answer(code=code, notes=list(self._notes(pointers)), functions=functions)

    def _read(self) -> CodeReader:
        parts = _parts([entry for entry in self._request.files if self._is_wanted(entry) and self._is_read(entry)])
        whole = CodeReader(list(self._by_path))
        for reader, missing in side_by_side(len(parts), self._request.processes, lambda part: self._part(parts[part])):
            whole.join(reader)
            self._missing += missing
        return whole

    def _part(self, entries: list[Entry]) -> tuple[CodeReader, list[str]]:
        """The contents of some files, and which of them git's objects lack."""
        reader, missing = CodeReader(list(self._by_path)), list[str]()
        with Objects(self._request.git_dir, self._request.config) as objects:
            for entry in entries:
                if reason := self._request.skip.get(entry.path):
                    reader.refuse(Unparsed(path=entry.path, line=0, reason=reason))
                    continue
                try:
                    content = objects.read(entry.object)
                except Missing:
                    missing.append(entry.path)
                else:
                    announced.take(entry.path, content, reader.take)
        return reader, missing

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

    def _is_read(self, entry: Entry) -> bool:
        """By its size, and by how many there are before it; who died of it is told of in its place."""
        if entry.path in self._request.skip:
            return True
        if entry.size > self._request.file_bytes:
            self._large.append(entry.path)
        elif self._left:
            self._left -= 1
            return True
        else:
            self._unread += 1
        return False

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


def _parts(entries: list[Entry]) -> list[list[Entry]]:
    """The files in parts of some hundred kilobytes, or of so many that a part is worth while."""
    most = max(_PART_BYTES, sum(entry.size for entry in entries) // (PARTS_MAX // 2))
    parts, size = list[list[Entry]](), most
    for entry in entries:
        if size >= most:
            parts.append([])
            size = 0
        parts[-1].append(entry)
        size += entry.size
    return parts


def answer(request: bytes) -> bytes:
    """Do what is asked."""
    asked = msgspec.json.decode(request, type=Request)
    with Objects(asked.git_dir, asked.config) as objects:
        return msgspec.json.encode(_Survey(asked, objects).run())


if __name__ == "__main__":
    announced.answering(answer)
