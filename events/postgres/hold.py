"""The lease of a log in PostgreSQL: who holds it raised its epoch last (docs/design.md §2.9).

A take-over waits for whatever an earlier holder has under way, and is itself a commit that standbys confirm: when it is
answered, all that stands before it is durable, and nothing of an earlier epoch comes any more.
"""

from __future__ import annotations

from time import monotonic, sleep
from typing import Any, Final, NamedTuple

from pmagent.events.errors import LogMoved, PmagentError
from pmagent.events.postgres.address import Address
from pmagent.events.postgres.checks import Unsafe, check_server
from pmagent.events.postgres.reader import PAUSE_SECONDS, Head, explained, head_of
from pmagent.events.postgres.session import ANSWER_SECONDS, RUNS, Broken, Failed, Session, Unreachable, sessions

TAKE_SECONDS: Final = 10.0
"""So long one host has to confirm a take-over: without a standby it never does."""

_TAKE: Final = b"SELECT taken FROM pm.take($1, $2, $3, $4, $5, $6, $7)"
_UNSAFE: Final = b"SELECT pm.unsafe($1)"
TIMELINE: Final = b"SELECT timeline FROM pm.system()"
_LOCK: Final = b"SELECT pg_try_advisory_lock(28781, $1)"


class Claim(NamedTuple):
    """The words of one holder about itself. ``token``: this lease's alone; ``origin``: the same for all that hold one
    lock of one machine while they live; ``note`` and ``since``: for people. ``replicated``: what a standby has not
    confirmed does not count."""

    token: str
    origin: str
    note: str
    since: str
    replicated: bool


class Taken(Exception):
    """Somebody else has the log, as its row says."""

    def __init__(self, head: Head) -> None:
        super().__init__(head.holder)
        self.head = head


def committed(
    session: Session, replicated: bool, sql: bytes, *given: object, seconds: float = ANSWER_SECONDS
) -> list[tuple[Any, ...]]:
    """Run one statement in ``session``, and return its rows when it is as durable as promised. Raises Failed; Broken
    where it may not be: also after a warning, and when the server does not wait for standbys any more (then nobody
    waited for the commit)."""
    session.warnings.clear()
    # The server reads its settings between statements, and has been told of a change before any commit that waits for
    # standbys is let go because of it.
    rows, ((unsafe,),) = session.ask_two((sql, given), (_UNSAFE, (replicated,)), seconds)
    if session.warnings:
        raise Broken(f"the server warned: {session.warnings[0]}")
    if unsafe:
        raise Broken(f"{unsafe} was changed meanwhile")
    return rows


class Hold:
    """A held log: ``session`` appends, ``head`` is its row as of the take-over. For one thread at a time."""

    def __init__(self, address: Address, claim: Claim, expected: int) -> None:
        self.address = address
        self.claim = claim
        self.timeline = 0
        self.session, self.head = self._take(expected, 0.0)

    def take_again(self, seconds: float) -> Head:
        """Raise the epoch anew, on a connection of its own, for ``seconds`` at least; the log's row then. Raises Taken,
        LogMoved; Unreachable, Unsafe, DatabaseRefused where nothing let us."""
        self.session.close()
        self.session, self.head = self._take(self.head.epoch, seconds)
        return self.head

    def commit(self, sql: bytes, *given: object, seconds: float = ANSWER_SECONDS) -> list[tuple[Any, ...]]:
        """``committed`` in ``session``. Raises Broken, Failed."""
        return committed(self.session, self.claim.replicated, sql, *given, seconds=seconds)

    def close(self) -> None:
        """Let go of the connection. Idempotent."""
        self.session.close()

    def _take(self, expected: int, seconds: float) -> tuple[Session, Head]:
        until = monotonic() + seconds
        while True:
            error: PmagentError = Unreachable(f"{self.address} cannot be reached", RUNS)
            try:
                for session in sessions(self.address):
                    try:
                        return session, self._take_on(session, expected)
                    except Broken as broken:
                        what = f"{session.host} did not let the log {self.address.log} be taken: {broken}"
                        error = Unreachable(what, RUNS)
                    except Failed as failed:
                        error = explained(failed, session.host)
                    except Unsafe as unsafe:
                        error = unsafe
                    except BaseException:
                        session.close()
                        raise
                    session.close()
            except Unreachable as unreachable:
                error = unreachable
            if monotonic() >= until:
                raise error
            sleep(PAUSE_SECONDS)

    def _take_on(self, session: Session, expected: int) -> Head:
        claim = self.claim
        check_server(session, replicated=claim.replicated)
        given = (self.address.log, expected, claim.token, claim.origin, claim.note, claim.since, claim.replicated)
        self.session = session
        ((taken,),) = self.commit(_TAKE, *given, seconds=TAKE_SECONDS)
        head = head_of(session, self.address.log)
        if head is None:
            raise Failed("42501", f"this role may not begin the log {self.address.log}")
        if head.moved_to:
            raise LogMoved(str(self.address), head.moved_to)
        if not taken and head.epoch == expected:
            raise Failed("42501", f"the log {self.address.log} belongs to another role")
        if not taken or head.token != claim.token:
            raise Taken(head)
        ((self.timeline,),) = session.ask(TIMELINE)
        session.ask(_LOCK, head.log_no)  # a hint for others: an earlier connection of ours may have it still
        return head
