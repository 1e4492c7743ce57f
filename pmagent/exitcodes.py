"""The exit codes, in one place (docs/design.md §11.4). Errors carry theirs as ``exit_code``; commands return theirs."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Exit(IntEnum):
    """How a command ends."""

    DONE = 0
    NO = 1
    USAGE = 2
    DIVERGED = 3
    CORRUPT = 4
    UNREACHABLE = 5
    TIMED_OUT = 6
    SECURITY = 7
    CONDITIONAL = 8
    DISK_FULL = 9
    BUG = 70
    INTERRUPTED = 130
    PIPE_CLOSED = 141


MEANINGS: Final[dict[Exit, str]] = {
    Exit.DONE: "done",
    Exit.NO: "the answer is no: refused, incoherent, failed, different, not found",
    Exit.USAGE: "usage or configuration: an option, argument or setting is wrong",
    Exit.DIVERGED: "replay diverged: today's code decides otherwise than the log says",
    Exit.CORRUPT: "the log is corrupt; file, byte offset and position are named",
    Exit.UNREACHABLE: "the daemon or the log's database is not reachable, or the daemon has dropped the request",
    Exit.TIMED_OUT: "timed out, or the outcome is unknown: what was asked may still happen",
    Exit.SECURITY: "security violation: code, files or permissions are not what they must be",
    Exit.CONDITIONAL: "allowed under conditions, which the caller must meet first",
    Exit.DISK_FULL: "no space is left on the disk; what was acknowledged is kept",
    Exit.BUG: "our bug, or a disk that failed; --debug shows where",
    Exit.INTERRUPTED: "interrupted (Ctrl-C)",
    Exit.PIPE_CLOSED: "the reader of our output went away; nothing is said about it",
}
"""Every code, for ``pmagent help exit-codes``."""

_KINDS: Final[dict[int, str]] = {
    Exit.NO: "no",
    Exit.USAGE: "usage",
    Exit.DIVERGED: "diverged",
    Exit.CORRUPT: "corrupt_log",
    Exit.UNREACHABLE: "unreachable",
    Exit.TIMED_OUT: "timed_out",
    Exit.SECURITY: "security",
    Exit.CONDITIONAL: "conditional",
    Exit.DISK_FULL: "disk_full",
    Exit.INTERRUPTED: "interrupted",
}


def kind(code: int) -> str:
    """The word for an error with this exit code, in the JSON envelope: a closed set, ``bug`` for whatever is left."""
    return _KINDS.get(code, "bug")
