"""Has a PDF read by a process of its own (docs/design.md §15.5); blocking."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import stat
import threading
import time
from typing import Any, Final, TypeVar

import msgspec

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.pdf.wire import AT, MODULE, Answer, Refused, Task
from pmagent.actors.audit.sources.pdf.words import clean, clipped
from pmagent.actors.sandbox.reader.run import Limited, run_limited
from pmagent.contracts.audit_events import AuditLimits

T = TypeVar("T", bound=msgspec.Struct)

ANSWER_BYTES: Final = 64 * 2**20
BREAKS_MAX: Final = 5
"""So many pages may bring the reading process down: each is left out, and the rest is read by another."""
_CHUNK: Final = 2**20
_SHORT: Final = 200


def asked(path: str, limits: AuditLimits, kind: type[T], stop: threading.Event | None, **wishes: Any) -> T:
    """The answer of the ``kind`` to the task ``wishes`` about the PDF at ``path``. Raises SourceFailed."""
    pdf = content(path, limits.pdf_bytes)
    tesseract = shutil.which("tesseract") or ""
    task = Task(
        pdf=pdf, sha256=hashlib.sha256(pdf).hexdigest(), seconds=limits.pdf_seconds, pages=limits.pdf_pages,
        tesseract=os.path.realpath(tesseract) if tesseract else "", **wishes,
    )
    over = time.monotonic() + limits.pdf_seconds
    while True:
        ended = _run(task, max(over - time.monotonic(), 0.0), limits.pdf_memory, stop)
        page = _broke_at(ended)
        if page is None or page in task.skip or len(task.skip) == BREAKS_MAX:
            return _said(ended, path, limits, kind)
        task = msgspec.structs.replace(task, skip=[*task.skip, page])


def _run(task: Task, seconds: float, memory: int, stop: threading.Event | None) -> Limited:
    try:
        return run_limited(
            MODULE, msgspec.msgpack.encode(task), seconds=seconds, memory_bytes=memory, output_bytes=ANSWER_BYTES,
            stop=stop, readable=(task.tesseract,) if task.tesseract else (),
        )
    except OSError as error:
        reason = errno.errorcode.get(error.errno or 0, "unknown")
        raise SourceFailed(
            "failed", f"the process that reads PDFs could not be started ({reason})", "see what the machine is short of"
        ) from error


def _broke_at(ended: Limited) -> int | None:
    """The page at which a signal has ended the process, if that is how it ended."""
    if ended.ended != "crashed" or not ended.signal:
        return None
    pages = re.findall(rb"^%s(\d+)$" % AT, ended.stderr_tail, re.MULTILINE)
    return int(pages[-1]) if pages else None


def content(path: str, limit: int) -> bytes:
    """The bytes of the regular file at ``path`` (links are followed), at most ``limit``. Raises SourceFailed."""
    name = shown(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        raise _not_opened(name, error) from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise SourceFailed("pdf_missing", f"{name} is not a file", "give the path of a PDF")
        read = bytearray()
        while found.st_size <= limit >= len(read) and (chunk := os.read(descriptor, _CHUNK)):
            read += chunk
    except OSError as error:
        raise _not_opened(name, error) from error
    finally:
        os.close(descriptor)
    if max(found.st_size, len(read)) > limit:
        raise _too_many_bytes(name, limit)
    return bytes(read)


def shown(path: str) -> str:
    """A path as messages have it: without what is not seen, and not longer than a line."""
    return clipped(clean(path).replace("\n", " "), _SHORT)


def _not_opened(name: str, error: OSError | ValueError) -> SourceFailed:
    number = error.errno if isinstance(error, OSError) else None
    if number in {errno.EACCES, errno.EPERM}:
        return SourceFailed("pdf_missing", f"{name} may not be read", "give yourself the right to read it")
    if number in {errno.ENOENT, errno.ENOTDIR, None}:
        return SourceFailed("pdf_missing", f"there is no file {name}", "give the path of a PDF")
    reason = errno.errorcode.get(number or 0, "unknown")
    return SourceFailed("pdf_missing", f"{name} cannot be read ({reason})", "give the path of a PDF")


def _too_many_bytes(name: str, limit: int) -> SourceFailed:
    return SourceFailed(
        "pdf_too_large", f"{name} has more than {limit:,} bytes, the limit",
        "audit a smaller report, or raise pdf_bytes",
    )


def _said(ended: Limited, path: str, limits: AuditLimits, kind: type[T]) -> T:
    """The answer of the process. Raises SourceFailed."""
    name = shown(path)
    match ended.ended:
        case "stopped":
            raise SourceFailed("cancelled", f"reading {name} was cancelled", "ask for the audit again")
        case "timed_out":
            raise SourceFailed(
                "pdf_timed_out", f"{name} could not be read within {limits.pdf_seconds:g} seconds, the limit",
                "audit a shorter report, or raise pdf_seconds",
            )
        case "memory":
            raise SourceFailed(
                "pdf_too_large", f"{name} cannot be read with {limits.pdf_memory // 2**20:,} MiB of memory, the limit",
                "audit a smaller report, or raise pdf_memory",
            )
        case "output":
            raise SourceFailed(
                "pdf_too_large", f"what was read of {name} is longer than {ANSWER_BYTES // 2**20} MiB",
                "audit a shorter report",
            )
        case "crashed" if ended.signal:
            raise SourceFailed(
                "pdf_damaged",
                f"{name} cannot be read: the process that reads it broke down (signal {ended.signal}); it is damaged, "
                f"or wants more than {limits.pdf_memory // 2**20:,} MiB of memory, the limit",
                "export the report again, mend it (mutool clean), or raise pdf_memory",
            )
        case "crashed":
            raise SourceFailed(
                "failed",
                f"{name} was not read: the process that reads PDFs ended by an error of its own, not of the file's",
                "see whether pmagent and PyMuPDF are installed whole (pip check), and report it",
            )
    answer = msgspec.msgpack.decode(ended.output, type=Answer)
    if isinstance(answer, Refused):
        raise SourceFailed(answer.code, f"{name} {answer.text}", answer.hint)
    assert isinstance(answer, kind)
    return answer
