"""Writing a log in PostgreSQL: one statement a batch, and what became of a batch whose answer was lost.

The statement compares the holder's epoch, the end that it knows and its sum, and adds the batch behind it. One batch is
under way at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic, sleep
from typing import Final, NoReturn

from pmagent.events.errors import Deposed, EventsLost, OutcomeUnknown, PmagentError, TailMoved
from pmagent.events.event import LogTakenOver, Tail
from pmagent.events.line import check_batch
from pmagent.events.postgres import reader as reading
from pmagent.events.postgres.checks import Unsafe, check_server
from pmagent.events.postgres.hold import Hold
from pmagent.events.postgres.lease import Ended, LeaseKeeper
from pmagent.events.postgres.reader import PAUSE_SECONDS, PostgresReader, explained
from pmagent.events.postgres.session import RUNS, Broken, Failed, Session
from pmagent.events.storage import CHUNK_BYTES

APPEND_SECONDS: Final = 10.0
"""So long a batch may take before its outcome is looked for on another connection."""

CHECK_SECONDS: Final = 60.0
"""So often the server's settings are checked while a log is written."""

TELL_SECONDS: Final = 0.005
"""Readers are woken so often at most. They look by themselves, too."""

PAGE_BYTES: Final = 256 * 1024
"""A page holds so many bytes at most, or one line."""

_APPEND: Final = b"SELECT pm.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
_TELL: Final = b"SELECT pm.tell($1, $2, $3, false)"
_WAKE: Final = b"SELECT pg_notify($1, '')"


class PostgresStorage:
    """The log whose lease ``lease`` is, opened for writing. Reading has a connection of its own, and so has telling
    readers: a notification must never wait for standbys, as it keeps every other one of the server waiting."""

    recovered: None = None
    is_local = False
    reads_files = False

    def __init__(self, lease: LeaseKeeper, log_id: str) -> None:
        self.lease = lease
        self._hold = hold = lease.hold
        self._log_id = log_id
        self._tail = hold.head.tail
        self._poison: OutcomeUnknown | None = None
        self._closed = False
        self._reader: PostgresReader | None = None
        self._side: Session | None = None
        self._told = 0.0
        self._trouble: Exception = Broken("the lease is over")
        self._checked = self._vouched = monotonic()

    @property
    def taken_over(self) -> LogTakenOver | None:
        """See Storage."""
        return self.lease.taken_over

    @property
    def age(self) -> tuple[int, int]:
        """See Storage."""
        return self._hold.head.epoch, self._hold.timeline

    def log_id(self) -> str:
        """See LogReader."""
        return self._log_id

    def tail(self) -> Tail:
        """See StorageReader."""
        return self._tail

    def read(self, position: int, bytes_max: int = CHUNK_BYTES) -> bytes:
        """See StorageReader."""
        if position > self._tail.position:
            return b""
        return self._reading().read(position, bytes_max)

    def location(self, position: int) -> tuple[str, int]:
        """See StorageReader."""
        return self._reading().location(position)

    def changes(self, position: int, seconds: float) -> bool:
        """See StorageReader."""
        return self._tail.position > position or self._reading().changes(position, seconds)

    def append_batch(self, expected: Tail, lines: Sequence[bytes], tail: Tail) -> None:
        """See Storage. Where the answer is lost, the outcome is found out, for ``OUTAGE_SECONDS``: raises
        OutcomeUnknown (Deposed, EventsLost) only then."""
        if self._poison is not None:
            raise self._poison
        if expected is not self._tail and expected != self._tail:
            raise TailMoved(f"the tail is at position {self._tail.position}, not {expected.position}")
        check_batch(expected, lines, tail)
        try:
            sent = self.lease.begin()
            try:
                self._append(expected, lines, tail)
            except (Broken, Failed) as trouble:
                self._resolve(expected, lines, tail, sent, trouble)
            else:
                self.lease.landed(sent)
        except Ended as ended:
            self._end(ended)
        self._tail = tail
        self._wake()

    def settle(self) -> None:
        """See Storage: the lease is renewed where that is due, and readers are told that all of it is acknowledged."""
        if self._poison is not None:
            raise self._poison
        now = monotonic()
        try:
            self.lease.attend()
            side = self._beside()
            ((held,),) = side.ask(_TELL, self._hold.head.log_no, self._hold.head.epoch, self._tail.position)
            if now - self._checked > CHECK_SECONDS:
                self._check()
                self._checked = now
        except Ended as ended:
            self._end(ended)
        except (Broken, Failed, Unsafe) as trouble:
            self._leave_side()
            if now - self._vouched < reading.OUTAGE_SECONDS and not isinstance(trouble, Unsafe):
                return  # nothing is under way; the next batch finds out
            self._fail(_unknown(trouble, self._hold))
        self._vouched = now
        if not held:
            self._end(Ended("deposed"))

    def close(self) -> None:
        """Settle (unless poisoned), and close what reads and tells; the lease goes on."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._poison is None:
                self.settle()
        finally:
            self._leave_side()
            if self._reader is not None:
                self._reader.close()

    def _append(self, expected: Tail, lines: Sequence[bytes], tail: Tail) -> None:
        """Send one batch. It is acknowledged when this returns. Raises Broken, Failed where it may not be."""
        hold = self._hold
        head = hold.head
        data = b"".join(lines)
        lasts, ends = _pages(expected.position, lines, len(data))
        ((pages,),) = hold.commit(
            _APPEND, head.log_no, head.epoch, expected.position, bytes.fromhex(expected.sum), tail.position, tail.batch,
            tail.time, bytes.fromhex(tail.sum), data, lasts, ends, seconds=APPEND_SECONDS,
        )
        if pages != len(lasts):
            raise Broken("the log is not as this writer left it")

    def _resolve(
        self, expected: Tail, lines: Sequence[bytes], tail: Tail, sent: int, trouble: Exception
    ) -> None:  # fmt: skip
        """Find out whether the batch is in the log, and send it again where it is not and cannot come any more. Raises
        Ended."""
        until = monotonic() + reading.OUTAGE_SECONDS
        while True:
            self._leave_side()
            self._trouble = trouble
            self.lease.resolve(sent)
            found = self._hold.head.tail
            if found == tail:
                return
            if found != expected:
                why = f"the log ends at position {found.position} there"
                first = min(found.position, expected.position - 1) + 1
                self._fail(EventsLost(str(self._hold.address), first, expected.position, why))
            sent = self.lease.begin()
            try:
                self._append(expected, lines, tail)
            except (Broken, Failed) as again:
                trouble = again
                if monotonic() > until:
                    self._fail(_unknown(again, self._hold))
                sleep(PAUSE_SECONDS)
            else:
                self.lease.landed(sent)
                return

    def _end(self, ended: Ended) -> NoReturn:
        """The lease says that this process must end."""
        if ended.reason == "deposed":
            self._fail(Deposed(str(self._hold.address), self.lease.successor or "another process"))
        trouble = self.lease.trouble or self._trouble
        self._fail(_unknown(self._trouble if isinstance(trouble, Unsafe) else trouble, self._hold))

    def _check(self) -> None:
        """Raises Unsafe, Broken, Failed."""
        if self._hold.session is not None:
            check_server(self._hold.session, replicated=self._hold.claim.replicated)

    def _fail(self, poison: OutcomeUnknown) -> NoReturn:
        self._poison = poison
        raise poison

    def _reading(self) -> PostgresReader:
        if self._reader is None:
            self._reader = PostgresReader(self._hold.address)
        return self._reader

    def _beside(self) -> Session:
        """The connection that tells: of the same host as the one that appends, and nobody waits for its commits."""
        if self._side is None:
            if self._hold.session is None:
                raise Broken("the connection is gone")
            self._side = Session(self._hold.session.target)
            self._side.script("SET synchronous_commit = off")
        return self._side

    def _leave_side(self) -> None:
        if self._side is not None:
            self._side.close()
            self._side = None

    def _wake(self) -> None:
        """Tell readers that there is something new; nobody waits for the answer."""
        now = monotonic()
        if now - self._told < TELL_SECONDS:
            return
        self._told = now
        try:
            self._beside().post(_WAKE, f"pm_{self._hold.head.log_no}")
        except (Broken, Failed):  # readers look by themselves
            self._leave_side()


def _pages(before: int, lines: Sequence[bytes], size: int) -> tuple[list[int], list[int]]:
    """How a batch of ``size`` bytes behind position ``before`` is cut into pages: the last position of each, and where
    it ends."""
    if size <= PAGE_BYTES:
        return [before + len(lines)], [size]
    lasts: list[int] = []
    ends: list[int] = []
    start = at = 0
    for position, line in enumerate(lines, before):
        if at > start and at + len(line) - start > PAGE_BYTES:
            lasts.append(position)
            ends.append(at)
            start = at
        at += len(line)
    return [*lasts, before + len(lines)], [*ends, at]


def _unknown(trouble: Exception, hold: Hold) -> OutcomeUnknown:
    if isinstance(trouble, Failed):
        trouble = explained(trouble, hold.host)
    if isinstance(trouble, OutcomeUnknown):
        return trouble
    if isinstance(trouble, PmagentError):
        return OutcomeUnknown(trouble.message, trouble.hint or RUNS)
    return OutcomeUnknown(str(trouble), RUNS)
