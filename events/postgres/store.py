"""The store of a log in PostgreSQL. Its blobs lie there, too, or in S3; a folder of this machine is their cache."""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from pmagent.events.blobs import BlobStore
from pmagent.events.damage import sum_of
from pmagent.events.disk import RealDisk
from pmagent.events.errors import LogLocked, NotFound
from pmagent.events.event import format_time
from pmagent.events.far_blobs import FarBlobs
from pmagent.events.lock import WriterLock, holder_of, is_locked
from pmagent.events.named_blobs import BlobCheck
from pmagent.events.postgres.address import Address
from pmagent.events.postgres.attempts import PostgresHolderTable
from pmagent.events.postgres.blobs import PostgresBlobs
from pmagent.events.postgres.checks import faults_in
from pmagent.events.postgres.hold import TIMELINE, Claim, Was
from pmagent.events.postgres.lease import LeaseKeeper
from pmagent.events.postgres.reader import Head, PostgresReader, asked, connected, explained
from pmagent.events.postgres.session import CONNECT_SECONDS, Broken, DatabaseRefused, Failed, Session, Unreachable
from pmagent.events.postgres.storage import PostgresStorage
from pmagent.events.storage import Blobs, Standby
from pmagent.events.store import (
    Fault,
    Holder,
    Identity,
    LocalFiles,
    Part,
    Sharing,
    Size,
    Standing,
    Verification,
    Waiting,
)

T = TypeVar("T")

NEAR_SECONDS: Final = 1.5
"""So long one host has to let us in that is asked who holds the log, where a process of this machine may."""

_NOTE: Final = re.compile(r"pid ([0-9]{1,9}) on (\S*), (.*)", re.DOTALL)
_LOCK_NOTE: Final = re.compile(r"pid ([0-9]{1,9}), (.*)", re.DOTALL)
_BEGIN: Final = b"SELECT pm.begin($1, $2, $3)"
_MOVE: Final = b"SELECT pm.move($1, $2, $3)"
_BYTES: Final = b"SELECT coalesce(sum(octet_length(lines)), 0)::bigint FROM pm.page WHERE log_no = $1"
_LOCKED: Final = b"""
SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
WHERE l.locktype = 'advisory' AND l.classid = 28781 AND l.objid = $1 AND l.objsubid = 2 AND l.granted
"""
_LEASE: Final = b"""
SELECT lease_ms, lease_ms - (1000 * extract(epoch FROM clock_timestamp() - renewed))::bigint FROM pm.log
WHERE log_no = $1
"""
_STANDBYS: Final = b"""
SELECT note, position, (1000 * extract(epoch FROM clock_timestamp() - at))::bigint FROM pm.standby
WHERE log_no = $1 AND at > clock_timestamp() - interval '15 seconds' ORDER BY note, token
"""
_PLACE: Final = b"""
SELECT s.system_id, d.oid, d.datname FROM pm.system() s, pg_database d WHERE d.datname = current_database()
"""


class PostgresLog:
    """The log at ``address`` (see ``pmagent.events.store.LogStore``).

    ``blobs``: the folder in which its blobs are cached, ``kept``: those of which it is the cache (None: beside the
    log); ``lock``: a file that each of its writers on this machine locks (None: they know of each other by the
    database alone); ``replicated``: what no standby has confirmed does not count. ``permit`` raises where the database
    must not be connected to.
    """

    def __init__(
        self, address: Address, blobs: Path, lock: Path | None = None, *, replicated: bool = True,
        permit: Callable[[], None] = lambda: None, kept: Callable[[BlobStore], Blobs] | None = None,
    ) -> None:  # fmt: skip
        self.place = str(address)
        self._kept = kept
        self._keeper: LeaseKeeper | None = None
        """The lease that was taken last."""
        self._address = address
        self._blobs = blobs
        self._lock = lock
        self._replicated = replicated
        self._permit = permit

    def exists(self) -> bool:
        """See LogStore."""
        return self._asking(lambda _session, head: head is not None and bool(head.log_id))

    def reader(self) -> PostgresReader:
        """See LogStore."""
        self._permit()
        return PostgresReader(self._address)

    def blobs(self) -> Blobs:
        """See LogStore."""
        cache = BlobStore(RealDisk(), str(self._blobs))
        return self._kept(cache) if self._kept is not None else FarBlobs(self._beside(), cache)

    def _beside(self) -> PostgresBlobs:
        return PostgresBlobs(
            self._address, replicated=self._replicated, permit=self._permit, epoch=self._held_epoch
        )

    def _held_epoch(self) -> int:
        return self._keeper.hold.head.epoch if self._keeper is not None else 0

    @contextmanager
    def lease(
        self, role: str, *, standby: Standby | None = None, seize: bool = False
    ) -> Iterator[PostgresLease]:  # fmt: skip
        """See LogStore. ``seize``: take the log over from a holder whose lease is known to have ended; its session may
        still hold its lock. Raises LogMoved; Unreachable, Unsafe, DatabaseRefused, too."""
        self._permit()
        note = f"pid {os.getpid()} on {socket.gethostname()}, {role}"
        lock = WriterLock(self._lock, f"pid {os.getpid()}, {role}") if self._lock is not None else None
        try:
            origin, since = self._origin(), format_time(datetime.now(UTC))
            claim = Claim(secrets.token_hex(16), origin, note, since, self._replicated)

            def gone(was: Was) -> bool:  # it held the lock that we hold now
                return seize or (bool(origin) and was.origin == origin)

            keeper = LeaseKeeper(self._address, claim, gone)
            keeper.take(standby)
            try:
                self._keeper = keeper
                yield PostgresLease(keeper)
            finally:
                keeper.release()
        finally:
            if lock is not None:
                lock.release()

    def holder(self) -> Holder:
        """See LogStore. A holder elsewhere lives while its session does, or its lease. Where the database is away,
        a process that has the lock here counts: what it holds can be stopped."""
        here = self._lock is not None and is_locked(self._lock)
        try:
            head, locked, sharing = self._asking(
                lambda session, head: (head, _is_locked(session, head), _sharing(session, head)),
                seconds=NEAR_SECONDS if here else CONNECT_SECONDS,
            )
        except (Unreachable, DatabaseRefused):
            noted = _LOCK_NOTE.fullmatch(holder_of(self._lock)) if here and self._lock is not None else None
            if noted is None:
                raise
            return Holder(live=True, note=noted[0], pid=int(noted[1]), role=noted[2])
        note = head.holder if head is not None else ""
        match = _NOTE.fullmatch(note)
        if head is None or sharing is None or match is None:
            return Holder(here or locked, note)
        if self._lock is None:
            here, ours = locked, match[2] == socket.gethostname()
        else:
            ours = head.origin == self._origin()
        live = here if ours else locked or (not head.released and sharing.left_s > 0)
        if here and not live:  # it is about to take the log
            return Holder(here, holder_of(self._lock) if self._lock is not None else "")
        return Holder(live, note, int(match[1]) if ours else 0, match[3], head.since, elsewhere=not ours)

    def sharing(self) -> Sharing | None:
        """See LogStore."""
        return self._asking(_sharing)

    def verify(
        self, *, decode: bool = False, blobs: BlobCheck | None = None, progress: Callable[[int], None] | None = None
    ) -> Verification:
        """See LogStore."""
        from pmagent.events.postgres.verifying import PageVerifier

        return self._asking(
            lambda session, head: PageVerifier(session, self._begun(head), decode, blobs, progress).run()
        )

    def stat(self) -> Standing:
        """See LogStore. All pages are one part."""
        return self._asking(self._standing)

    def size(self) -> Size:
        """See LogStore."""
        lines = self._asking(lambda session, head: _bytes_of(session, head) if head is not None else 0)
        if self._kept is None:
            return Size(lines, self._beside().total())
        return Size(lines, sum(path.lstat().st_size for path in self._blobs.glob("??/*")))

    def identity(self) -> Identity:
        """See LogStore: the database cluster, the database and the log's number in it."""
        return self._asking(self._identified)

    def age(self) -> tuple[int, int]:
        """See LogStore: the log's epoch and the timeline of the database."""
        return self._asking(lambda session, head: (self._begun(head).epoch, int(asked(session, TIMELINE)[0][0])))

    def written(self, position: int) -> tuple[int, str]:
        """See LogStore."""
        with closing(self.reader()) as reader:
            last = reader.tail().position
            line = reader.read(position, 1) if 0 < position <= last else b""
            return last, sum_of(line, 0) if line else ""

    def attempts(self) -> PostgresHolderTable:
        """See LogStore."""
        return PostgresHolderTable(
            self._address, self._held_epoch, replicated=self._replicated, permit=self._permit
        )

    def files(self) -> LocalFiles:
        """See LogStore: the blobs, and the lock of this machine."""
        return LocalFiles((self._blobs,), (), (self._lock,) if self._lock is not None else ())

    def faults(self) -> list[Fault]:
        """See LogStore."""

        def looked(session: Session, _head: Head | None) -> list[Fault]:
            try:
                return faults_in(session, replicated=self._replicated)
            except Failed as failed:
                raise explained(failed, session.host) from failed

        return self._asking(looked, standby=False)

    def _asking(
        self, work: Callable[[Session, Head | None], T], *, standby: bool = True, seconds: float = CONNECT_SECONDS
    ) -> T:  # fmt: skip
        """``work`` with a session and the log's row, if there is one."""
        self._permit()
        session, head = connected(self._address, standby=standby, seconds=seconds)
        with closing(session):
            try:
                return work(session, head)
            except Broken as broken:
                raise Unreachable(f"the connection to {session.host} broke: {broken}", "try again") from broken

    def _begun(self, head: Head | None) -> Head:
        if head is None or not head.log_id:
            hint = "pmagent init makes a workspace, pmagent up starts its log"
            raise NotFound(f"there is no log in {self.place}", hint)
        return head

    def _standing(self, session: Session, head: Head | None) -> Standing:
        if head is None or not head.log_id:
            return Standing("", (), None, [], 0, 0, [], "")
        size = _bytes_of(session, head)
        parts = [Part("pages", 1, head.position, size, sealed=bool(head.moved_to))] if head.position else []
        trouble = f"it was moved to {head.moved_to}" if head.moved_to else ""
        return Standing(head.log_id, (head.tail,), head.tail, parts, 0, size, [], trouble)

    def _identified(self, session: Session, head: Head | None) -> Identity:
        number = self._begun(head).log_no
        ((system_id, database, name),) = asked(session, _PLACE)
        place = f"postgresql://{system_id}/{name}#{self._address.log}"
        return Identity(place, (system_id, database << 32 | number), os.getuid())

    def _origin(self) -> str:
        """The same for all that hold this machine's lock of the log, one after the other; "" where there is none."""
        if self._lock is None:
            return ""
        try:
            found = self._lock.stat()
        except FileNotFoundError:
            return ""
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}:{found.st_dev}:{found.st_ino}"


class PostgresLease:
    """See Lease."""

    def __init__(self, keeper: LeaseKeeper) -> None:
        self._keeper = keeper

    def open(self, new_log_id: str = "") -> PostgresStorage:
        """See Lease."""
        return PostgresStorage(self._keeper, str(self._call(_BEGIN, new_log_id or secrets.token_hex(16))))

    def close_for_good(self, to: str) -> None:
        """Nobody writes the log any more: a copy goes on at ``to``. Raises Unreachable, DatabaseRefused, LogLocked."""
        if not self._call(_MOVE, to):
            raise LogLocked(str(self._keeper.hold.address), "another process")

    def _call(self, sql: bytes, given: str) -> Any:
        """Run one of the functions that change the row; what it returns, which is durable then."""
        hold = self._keeper.hold
        try:
            rows = hold.commit(sql, hold.head.log_no, hold.head.epoch, given)
        except Failed as failed:
            raise explained(failed, hold.host) from failed
        except Broken as broken:
            raise Unreachable(f"the connection to {hold.host} broke: {broken}", "try again") from broken
        return rows[0][0] if rows else None


def _sharing(session: Session, head: Head | None) -> Sharing | None:
    if head is None:
        return None
    ((length_ms, left_ms),) = asked(session, _LEASE, head.log_no)
    standbys = [Waiting(note, position, ms / 1e3) for note, position, ms in asked(session, _STANDBYS, head.log_no)]
    return Sharing(
        head.holder, head.since, head.epoch, head.released, "replicated" if head.replicated else "one server",
        length_ms / 1e3, 0.0 if head.released else max(0, left_ms) / 1e3, head.position, standbys,
    )  # fmt: skip


def _bytes_of(session: Session, head: Head) -> int:
    return int(asked(session, _BYTES, head.log_no)[0][0])


def _is_locked(session: Session, head: Head | None) -> bool:
    if head is None:
        return False
    ((count,),) = asked(session, _LOCKED, head.log_no)
    return bool(count)
