"""The process that reads a PDF: a ``Task`` on standard input, an ``Answer`` on standard output (``wire``).

It is started by ``run_limited``. Everything that PyMuPDF prints goes to standard error.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import Final

import msgspec

from pmagent.actors.audit.sources.pdf.wire import Answer, Opened, Refused, Task
from pmagent.actors.core.extras import install

_UNAVAILABLE: Final = Refused("pdf_unavailable", "cannot be read: PyMuPDF is not installed", install("audit"))

_UNLOADABLE: Final = Refused(
    "pdf_unavailable", "cannot be read: PyMuPDF is installed, but cannot be loaded",
    "python -c 'import pymupdf' says why",
)
_NO_MEMORY: Final = re.compile(r"failed to map segment|cannot allocate memory|not enough memory", re.IGNORECASE)


def main() -> None:
    """Answer the one task there is."""
    answers = os.dup(1)
    os.dup2(2, 1)
    task = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Task)
    encoded = memoryview(msgspec.msgpack.encode(_answer(task)))
    while encoded:
        encoded = encoded[os.write(answers, encoded) :]


def _answer(task: Task) -> Answer:
    try:
        import pymupdf
    except ImportError as error:
        if error.name == "pymupdf":
            return _UNAVAILABLE
        if any(isinstance(each, MemoryError) or _NO_MEMORY.search(str(each)) for each in _causes(error)):
            raise MemoryError from error
        return _UNLOADABLE
    assert pymupdf.VersionBind
    from pmagent.actors.audit.sources.pdf import gallery, gathering, opening

    try:
        if task.what == "opening":
            opening.open_pdf(task.pdf, task.pages)
            return Opened()
        if task.what == "reading":
            return gathering.read(task)
        return gathering.cut(task) if task.what == "segments" else gallery.collect(task)
    except opening.Unreadable as error:
        return Refused(error.code, error.text, error.hint)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and those that it was raised upon: PyMuPDF tries another way when its library cannot be loaded."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


if __name__ == "__main__":
    main()
