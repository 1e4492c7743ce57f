"""Errors of the log. Each says what happened, where, and what to do next (docs/design.md §11.5).

``exit_code`` is the code with which a command ends when the error reaches it; the codes themselves are
listed once, in ``pmagent.exitcodes``.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class PmagentError(Exception):
    """Base of every error that a person may meet.

    ``message`` says what happened and where, ``hint`` what to do next (may be empty), ``facts`` what a program needs to
    know besides. A class that names no ``exit_code`` has its base's.
    """

    exit_code = 1
    facts: Mapping[str, str] = MappingProxyType({})

    def __init_subclass__(cls, *, exit_code: int | None = None) -> None:
        if exit_code is not None:
            cls.exit_code = exit_code

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CorruptLog(PmagentError, exit_code=4):
    """The log holds bytes that no writer of it can have written, or lacks bytes that were durable.

    ``file`` is the segment's name ("" where the reader of an event does not know it), ``offset`` the byte offset of
    the first bad line in it, ``position`` the position of the first bad event (0: it is no event that is bad, but HEAD
    or a blob). Everything before it is intact and readable.
    """

    def __init__(self, file: str, offset: int, position: int, reason: str) -> None:
        place = [f"{file}, byte {offset}"] if file else []
        place += [f"position {position}"] if position else []
        intact = f"what precedes it is intact: pmagent log export --until {position - 1}; " if position > 1 else ""
        super().__init__(
            f"the log is corrupt: {', '.join(place)}: {reason}",
            f"{intact}restore {'the rest' if intact else 'it'} from a copy of the workspace's .pmagent",
        )
        self.file = file
        self.offset = offset
        self.position = position
        self.reason = reason


class LogLocked(PmagentError, exit_code=1):
    """Another process holds the log (``holder`` is what it wrote about itself, for people)."""

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(
            f"{path} is held by another process ({holder or 'unknown'})",
            "use that daemon (pmagent status), or stop it first",
        )
        self.holder = holder


class OutcomeUnknown(PmagentError, exit_code=70):
    """A write or sync failed, so it is unknown whether the event is durable (docs/design.md §2.2).

    The log object is poisoned: nothing more is written through it. Opening the log again tells what is durable.
    """

    def __init__(self, reason: str, mend: str = "mend the disk (space, errors)") -> None:
        super().__init__(
            f"writing the log failed ({reason}); whether the last events are durable is unknown",
            f"nothing acknowledged is lost; {mend}, then start again",
        )


FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT))
"""Error numbers of a disk, or of a user's share of it, that has no space left."""


class DiskFull(OutcomeUnknown, exit_code=9):
    """The log could not be written because no space is left."""


class ForeignChange(OutcomeUnknown):
    """Somebody else changed the log's files while this process had them open for writing: removed, replaced, moved,
    linked, extended or cut them. ``path`` says which. A write there might never be read: the log object
    is poisoned before it acknowledges anything more.
    """

    def __init__(self, path: str, what: str) -> None:
        PmagentError.__init__(
            self, f"the log was changed from outside: {path} {what}; nothing more is acknowledged",
            "put the log back as it was (a copy, or the trash), check it with pmagent log verify, then start again",
        )
        self.path = path


class Deposed(OutcomeUnknown, exit_code=1):
    """Another process has taken the log over, or it was moved, while this one held it (``by`` says who or where).
    Events acknowledged before are in the log; nothing more is."""

    def __init__(self, place: str, by: str) -> None:
        PmagentError.__init__(
            self, f"{place} was taken over by {by or 'another process'}; nothing more is acknowledged here",
            "pmagent status says who holds the log; pmagent log tail shows whether the last events are in it",
        )


class EventsLost(OutcomeUnknown, exit_code=4):
    """Events that were acknowledged here are not in the log any more: what answers for it now is older, or another."""

    def __init__(self, place: str, first: int, last: int, why: str) -> None:
        PmagentError.__init__(
            self, f"events {first} to {last} were acknowledged and are not in {place}: {why}",
            "bring the newer one back; pmagent log accept-restore goes on without them",
        )


class LogMoved(PmagentError, exit_code=1):
    """The log was closed for good when a copy of it was made, which went on elsewhere."""

    def __init__(self, place: str, to: str) -> None:
        super().__init__(
            f"the log in {place} was moved to {to}, and is only read here",
            "name that place in .pmagent/config.toml, under [storage]: as log, if it is a database, else as log_dir",
        )


class NoStandby(PmagentError, exit_code=2):
    """The log lies in a folder, so nobody else can hold it, and nobody can wait for that."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"the log in {place} has no standby: another machine cannot reach it",
            "docs/machines.md says how it is moved into a database",
        )


class GaveUp(PmagentError):
    """A standby was told to stop before it held the log."""


class TailMoved(PmagentError, exit_code=70):
    """``append_batch`` was given another tail than the storage has: there is a second writer."""


class BadEvent(PmagentError, exit_code=70):
    """An event that may not be appended: too large, or its fields break a rule of the log."""


class NotFound(PmagentError, exit_code=1):
    """A position or a blob that the log does not hold."""
