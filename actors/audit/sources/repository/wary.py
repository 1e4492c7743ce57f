"""The outer half of reading code of others: a process that dies of a file is started again without that file."""

from __future__ import annotations

import errno
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pmagent.actors.audit.failures import SourceFailed
from pmagent.actors.audit.sources.repository.announced import FILE_CPU_SECONDS, MARK
from pmagent.actors.sandbox.reader.run import Limited, run_limited
from pmagent.contracts.audit_events import AuditLimits

RESTARTS: Final = 8
"""So many files may end the process that reads them."""

_ANSWER_BYTES: Final = 64 * 2**20


def answered(
    module: str,
    request: Callable[[Mapping[str, str]], bytes],
    limits: AuditLimits,
    *,
    readable: Sequence[str],
    stop: threading.Event | None = None,
) -> bytes:
    """The answer of ``module``. ``request`` is asked for what to ask it: given the files to leave out, with reasons in
    words of ours. Raises SourceFailed: timed_out, cancelled, too_large, failed."""
    deadline = time.monotonic() + limits.survey_seconds
    skip: dict[str, str] = {}
    while True:
        try:
            ended = run_limited(
                module,
                request(skip),
                seconds=max(deadline - time.monotonic(), 0.0),
                memory_bytes=limits.survey_memory,
                output_bytes=_ANSWER_BYTES,
                stop=stop,
                readable=readable,
            )
        except OSError as error:
            reason = errno.errorcode.get(error.errno or 0, "unknown")
            raise SourceFailed(
                "failed",
                f"the process that reads the repository's code could not be started ({reason})",
                "see what the machine is short of",
            ) from error
        if ended.ended == "done":
            return ended.output
        blamed = _blamed(ended)
        if not blamed or blamed in skip or len(skip) >= RESTARTS:
            raise _given_up(ended)
        skip[blamed] = _why(ended)


def _blamed(ended: Limited) -> str:
    """The file that was being read when the process ended; "" where it was none. Raises SourceFailed where the process
    was ended from outside."""
    match ended.ended:
        case "stopped":
            raise SourceFailed("cancelled", "reading the repository was cancelled", "ask again if it is still wanted")
        case "timed_out":
            raise SourceFailed(
                "timed_out", "reading the repository's code took longer than its limit", "raise survey_seconds"
            )
        case "output":
            raise SourceFailed("too_large", "what there is to say of the repository is too much", "audit a smaller one")
    told = [line for line in ended.stderr_tail.decode("utf-8", "replace").split("\n")[:-1] if line.startswith(MARK)]
    return told[-1].removeprefix(MARK) if told else ""


def _given_up(ended: Limited) -> SourceFailed:
    if ended.ended == "memory":
        return SourceFailed("too_large", "to read the repository's code takes more memory", "raise survey_memory")
    return SourceFailed(
        "failed", "the process that reads the repository's code ended by itself", "report it, with the repository"
    )


def _why(ended: Limited) -> str:
    if ended.ended == "memory":
        return "takes more memory to be read than there is"
    if ended.signal == signal.SIGPROF:
        return f"takes longer to be read than {FILE_CPU_SECONDS} s"
    return "cannot be read: it ends the process that reads it"
