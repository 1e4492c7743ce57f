"""The process that reads the code of others: ``python -I -m actors.audit.repository.survey_child``, run by ``limited``.

Before each file it says on standard error which one it is (``@<index>``), so that a file that ends the process is known
by the one who started it. The request stands on standard input, the answer goes to standard output.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Final

import msgspec

from actors.audit.code.parse import LFS_MARK, is_installed, is_python, parsed
from actors.audit.code.survey import CodeFacts, CodeReader
from actors.audit.repository.confined import OUT_OF_MEMORY
from actors.audit.repository.objects import Missing, Objects
from actors.audit.repository.tree import Entry, named
from contracts.audit_events import Question
from contracts.audit_facts import History, Unparsed

FILE_CPU_SECONDS: Final = 60
"""A file that takes longer ends the process."""
END: Final = "@end"

_HEAD_BYTES: Final = 256
_SCRIPT_BYTES: Final = 2**20
_POINTER_BYTES: Final = 1024
_POINTERS_READ: Final = 20_000
_STACK_BYTES: Final = 256 * 2**20
_PARSED_DEPTH: Final = 1_000
_WALKED_DEPTH: Final = 50_000
"""No tree that is parsed within the first is so deep that to walk it wants the second."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """``files`` of the repository ``git_dir`` (``config``: git's configuration), in the order of their paths. Of
    ``skip``, with the reasons, the process before this one died. ``read_max`` files of at most ``file_bytes`` are
    read."""

    git_dir: str
    config: str
    files: list[Entry]
    questions: list[Question]
    history: History
    file_bytes: int
    read_max: int
    skip: dict[str, str] = {}


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What there is in the code; ``notes``: what was left out."""

    code: CodeFacts
    notes: list[str]


class _Survey:
    """One survey."""

    def __init__(self, request: Request, objects: Objects) -> None:
        self._request = request
        self._objects = objects
        self._by_path = {entry.path: entry for entry in request.files}
        self._reader = CodeReader(request.questions)
        self._large: list[str] = []
        self._installed: list[str] = []
        self._missing: list[str] = []
        self._read = 0
        self._unread = 0

    def run(self) -> Answer:
        """Read every file that is Python."""
        for index, entry in enumerate(self._request.files):
            if self._is_wanted(entry):
                self._take(index, entry)
        sys.stderr.write(f"{END}\n")
        pointers = self._pointers()
        return Answer(code=self._reader.facts(list(self._by_path)), notes=list(self._notes(pointers)))

    def _is_wanted(self, entry: Entry) -> bool:
        """By its name; what may be a script is opened to see."""
        bare = "." not in entry.path.rpartition("/")[2]
        if is_python(entry.path) or (bare and 0 < entry.size <= _SCRIPT_BYTES and self._is_script(entry)):
            if is_installed(entry.path):
                self._installed.append(entry.path)
                return False
            return True
        return False

    def _is_script(self, entry: Entry) -> bool:
        content = self.content(entry.path)
        return content is not None and is_python(entry.path, content[:_HEAD_BYTES])

    def _take(self, index: int, entry: Entry) -> None:
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
            sys.stderr.write(f"@{index}\n")
            signal.setitimer(signal.ITIMER_PROF, FILE_CPU_SECONDS)
            sys.setrecursionlimit(_PARSED_DEPTH)
            source = parsed(entry.path, content)
            sys.setrecursionlimit(_WALKED_DEPTH)
            self._reader.take(source)
            signal.setitimer(signal.ITIMER_PROF, 0)

    def content(self, path: str) -> bytes | None:
        """What is in a file; None when there is none, or it is too large."""
        entry = self._by_path.get(path)
        if entry is None or entry.size > self._request.file_bytes:
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
            yield f"{len(self._installed)} Python files of installed packages were left out: {named(self._installed)}"
        if self._large:
            most = self._request.file_bytes
            yield f"{len(self._large)} files were not read, for they are larger than {most} bytes: {named(self._large)}"
        if self._unread:
            yield f"{self._unread} Python files were not read: more than {self._request.read_max}"
        if self._missing:
            yield f"{len(self._missing)} files are missing from git's objects: {named(self._missing)}"
        if pointers:
            yield f"{pointers} files are Git LFS pointers; what they point to was not fetched"


def answer(request: bytes) -> bytes:
    """Do what is asked."""
    asked = msgspec.json.decode(request, type=Request)
    with Objects(asked.git_dir, asked.config) as objects:
        return msgspec.json.encode(_Survey(asked, objects).run())


def _run(done: threading.Event) -> None:
    try:
        sys.stdout.buffer.write(answer(sys.stdin.buffer.read()))
        sys.stdout.buffer.flush()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)  # nothing is tidied up: that would want memory
    done.set()


def main() -> None:
    """Answer on a stack on which deep trees can be walked."""
    threading.stack_size(_STACK_BYTES)
    done = threading.Event()
    thread = threading.Thread(target=_run, args=(done,))
    thread.start()
    thread.join()
    sys.exit(0 if done.is_set() else 1)


if __name__ == "__main__":
    main()
