"""The session of a log's holder in PostgreSQL: taking the log over, and commits that count (docs/design.md §2.9).

A take-over waits for whatever an earlier holder has under way, and is itself a commit that standbys confirm: when it is
answered, all that stands before it is durable, and nothing of an earlier epoch comes any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from pmagent.events.errors import LogMoved, PmagentError
from pmagent.events.lease import SECOND
from pmagent.events.lease import Head as LeaseHead
from pmagent.events.postgres.address import Address
from pmagent.events.postgres.checks import Unsafe, check_server
from pmagent.events.postgres.reader import Head, explained, head_of
from pmagent.events.postgres.session import (
    ANSWER_SECONDS,
    RUNS,
    Broken,
    DatabaseRefused,
    Failed,
    Session,
    Unreachable,
    sessions,
)

T = TypeVar("T")

TAKE_SECONDS: Final = 10.0
"""So long one host has to confirm a take-over, or a renewal: without a standby it never does."""

_TAKE: Final = b"SELECT * FROM pm.take($1, $2, $3, $4, $5, $6, $7)"
_RENEW: Final = b"SELECT pm.renew($1, $2, $3, $4)"
_UNSAFE: Final = b"SELECT pm.unsafe($1)"
TIMELINE: Final = b"SELECT timeline FROM pm.system()"
_LOCK: Final = b"SELECT pg_try_advisory_lock(28781, $1)"


class Claim(NamedTuple):
    """The words of one holder about itself. ``token``: this process's alone; ``origin``: the same for all that hold one
    lock of one machine while they live; ``note`` and ``since``: for people. ``replicated``: what a standby has not
    confirmed does not count."""

    token: str
    origin: str
    note: str
    since: str
    replicated: bool


class Was(NamedTuple):
    """A log's row as a take-over found it."""

    epoch: int
    token: str
    origin: str
    holder: str
    renewals: int
    released: bool
    lease_ms: int
    timeline: int

    def head(self, *, gone: bool = False) -> LeaseHead:
        """The same for the lease; ``gone``: its holder is known to have ended, as if it had let go."""
        lease = self.lease_ms * SECOND // 1000
        return LeaseHead(self.epoch, self.token, self.renewals, self.released or gone, lease, self.timeline)


class Taken(Exception):
    """Somebody else has the log: ``was`` is its row."""

    def __init__(self, was: Was) -> None:
        super().__init__(was.holder)
        self.was = was


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
    """The session of the holder ``claim``: ``session`` appends, ``head`` is the log's row as of the take-over. For one
    thread at a time."""

    head: Head

    def __init__(self, address: Address, claim: Claim) -> None:
        self.address = address
        self.claim = claim
        self.timeline = 0
        self.session: Session | None = None

    def take(self, expected: int) -> Was:
        """Raise the epoch from ``expected``, on a connection of its own: the row as it was. Raises Taken; LogMoved,
        Unreachable, Unsafe, DatabaseRefused: in all of these but the first it may have been raised."""
        self.close()
        return self._anywhere(lambda session: self._take_on(session, expected))

    def renew(self, *, released: bool = False, seconds: float | None = None) -> bool:
        """Renew the lease, or let go of the log; False: somebody else has it. Where the connection is gone, on another
        one, unless there are only so many ``seconds``. Raises Failed, where nothing was done; Unreachable, Unsafe,
        DatabaseRefused."""

        def renewed() -> bool:
            given = self.head.log_no, self.head.epoch, self.claim.token, "true" if released else "false"
            ((held,),) = self.commit(_RENEW, *given, seconds=seconds or TAKE_SECONDS)
            return bool(held)

        def on_another(session: Session) -> bool:
            check_server(session, replicated=self.claim.replicated)
            self.session = session
            if held := renewed():
                session.ask(_LOCK, self.head.log_no)
            return held

        if self.session is not None:
            try:
                return renewed()
            except Broken:
                self.close()
        if seconds is not None:
            raise Unreachable(f"the connection to {self.address} is gone", RUNS)
        return self._anywhere(on_another)

    def commit(self, sql: bytes, *given: object, seconds: float = ANSWER_SECONDS) -> list[tuple[Any, ...]]:
        """``committed`` in ``session``. Raises Broken, Failed."""
        if self.session is None:
            raise Broken("the connection is gone")
        return committed(self.session, self.claim.replicated, sql, *given, seconds=seconds)

    @property
    def host(self) -> str:
        """The server, for people."""
        return self.session.host if self.session is not None else "the server"

    def close(self) -> None:
        """Let go of the connection. Idempotent."""
        if self.session is not None:
            self.session.close()
            self.session = None

    def _anywhere(self, work: Callable[[Session], T]) -> T:
        """``work`` on each host in turn that takes itself for the primary, until one has done it."""
        error: PmagentError = Unreachable(f"{self.address} cannot be reached", RUNS)
        for session in sessions(self.address):
            try:
                return work(session)
            except Broken as broken:
                what = f"{session.host} did not let the log {self.address.log} be taken: {broken}"
                error = Unreachable(what, RUNS)
            except Failed as failed:
                error = explained(failed, session.host)
            except (Unsafe, DatabaseRefused) as refused:
                error = refused
            except BaseException:
                self._leave(session)
                raise
            self._leave(session)
        raise error

    def _leave(self, session: Session) -> None:
        session.close()
        if self.session is session:
            self.session = None

    def _take_on(self, session: Session, expected: int) -> Was:
        claim = self.claim
        check_server(session, replicated=claim.replicated)
        given = (self.address.log, expected, claim.token, claim.origin, claim.note, claim.since, claim.replicated)
        self.session = session
        rows = self.commit(_TAKE, *given, seconds=TAKE_SECONDS)
        head = head_of(session, self.address.log)
        if not rows or head is None:
            raise DatabaseRefused(f"this role may not begin the log {self.address.log}", "docs/machines.md")
        taken, was = rows[0][0], Was(*rows[0][1:])
        if head.moved_to:
            raise LogMoved(str(self.address), head.moved_to)
        if not taken and was.epoch == expected:
            raise DatabaseRefused(f"the log {self.address.log} belongs to another role", "docs/machines.md")
        if not taken or head.token != claim.token:
            raise Taken(was)
        self.head, self.timeline = head, was.timeline
        session.ask(_LOCK, head.log_no)  # a hint for others: an earlier connection of ours may have it still
        return was
