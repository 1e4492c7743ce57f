"""Reading a log's pages from any process; the chain is checked by ``pmagent.events.reader``, as with segments."""

from __future__ import annotations

import threading
from bisect import bisect
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import accumulate
from time import monotonic, sleep
from typing import Any, Final, NamedTuple, TypeVar

from pmagent.events.errors import CorruptLog, DiskFull, EventsLost, NotFound, PmagentError
from pmagent.events.event import Tail
from pmagent.events.postgres.address import Address
from pmagent.events.postgres.schema import PREPARE, VERSION, schema_version
from pmagent.events.postgres.session import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    RUNS,
    Broken,
    DatabaseRefused,
    Failed,
    Session,
    Unreachable,
    sessions,
)
from pmagent.events.storage import CHUNK_BYTES
from pmagent.events.store import ListedLog

T = TypeVar("T")

POLL_SECONDS: Final = 1.0
"""A reader that waits looks so often, also where no notification came."""

AHEAD_BYTES: Final = 128 * 1024
"""A reader that goes on where its last reading ended gets so much at once from the server, which reads the next pages
while these are checked and decoded: a page of the largest size, or several smaller ones."""

OUTAGE_SECONDS: Final = 60.0
"""So long after a connection broke, another one is tried for."""

PAUSE_SECONDS: Final = 0.25
"""Between two rounds over all hosts."""

_PAGES_MAX: Final = 2048

_HEAD: Final = b"""
SELECT log_no, log_id, epoch, token, origin, holder, since, renewals, released, replicated, position, batch, time, sum,
  settled, moved_to FROM pm.log WHERE name = $1
"""
_PAGES: Final = b"""
SELECT first, last, lines FROM (
  SELECT first, last, lines, sum(octet_length(lines)) OVER (ORDER BY first) - octet_length(lines) AS before FROM (
    SELECT first, last, lines FROM pm.page
    WHERE log_no = $1 AND first >= coalesce((SELECT max(first) FROM pm.page WHERE log_no = $1 AND first <= $2), 0)
      AND first <= $3 ORDER BY first LIMIT $4) AS near) AS sized
WHERE before < $5 ORDER BY first
"""
_LIST: Final = b"""
SELECT l.name, l.log_id, l.position, l.time, l.holder, l.since,
  l.epoch > 0 AND NOT l.released AND l.renewed > clock_timestamp() - l.lease_ms * interval '1 ms',
  (SELECT count(*) FROM pm.standby s WHERE s.log_no = l.log_no AND s.at > clock_timestamp() - interval '15 seconds'),
  coalesce(s.text, ''), (1000 * extract(epoch FROM clock_timestamp() - coalesce(s.at, now())))::bigint, l.moved_to
FROM pm.log l LEFT JOIN pm.said s USING (log_no) WHERE l.name > $1 ORDER BY l.name LIMIT 1000
"""
_BEFORE: Final = b"""
SELECT last, batch, lines FROM pm.page WHERE log_no = $1 AND batch < $2 ORDER BY first DESC LIMIT 1
"""


class Head(NamedTuple):
    """A log's row."""

    log_no: int
    log_id: str
    epoch: int
    token: str
    origin: str
    holder: str
    since: str
    renewals: int
    released: bool
    replicated: bool
    position: int
    batch: int
    time: str
    sum: bytes
    settled: int
    moved_to: str

    @property
    def tail(self) -> Tail:
        """The end that it notes."""
        return Tail(self.position, self.batch, self.time, self.sum.hex())


def head_of(session: Session, name: str) -> Head | None:
    """The row of the log ``name``; None where there is none. Raises Broken, Failed."""
    rows = session.ask(_HEAD, name)
    return Head(*rows[0]) if rows else None


def listed(address: Address) -> list[ListedLog]:
    """All logs of the database, by name. Raises Unreachable, DatabaseRefused."""
    session, _ = connected(address)
    rows: list[tuple[Any, ...]] = []
    try:
        while more := asked(session, _LIST, rows[-1][0] if rows else ""):
            rows += more
    except Broken as broken:
        raise Unreachable(f"{address} cannot be reached: {broken}", RUNS) from broken
    finally:
        session.close()
    names = ListedLog.__struct_fields__
    return [ListedLog(**dict(zip(names, (*row[:9], row[9] / 1000, row[10]), strict=True))) for row in rows]


def asked(session: Session, sql: bytes, *given: object, seconds: float = ANSWER_SECONDS) -> list[tuple[Any, ...]]:
    """``Session.ask`` of a statement on a log's tables. Raises Broken; DatabaseRefused, CorruptLog in place of
    Failed."""
    try:
        return session.ask(sql, *given, seconds=seconds)
    except Failed as failed:
        raise explained(failed, session.host) from failed


def explained(failed: Failed, host: str) -> PmagentError:
    """An error of the server for people."""
    if failed.state.startswith("XX"):
        return CorruptLog(f"database on {host}", 0, 0, str(failed))
    if failed.state == "53100":
        return DiskFull(f"no space is left on {host}")
    if failed.state == "25006":
        mend = "see why (a role's or a database's default_transaction_read_only, or a full disk), and end that"
        return DatabaseRefused(f"the database on {host} takes no writes: {failed}", mend)
    if "is no operator's here" in str(failed):
        return DatabaseRefused(f"the database on {host} refuses: {failed}", f"{PREPARE} … --operator ROLE=NAME")
    if failed.state == "42704":  # of a role, as we name nothing else
        mend = "if it was renamed, the database's owner says so: UPDATE pm.log SET writer = 'NEW' WHERE writer = 'OLD'"
        return DatabaseRefused(f"the database on {host} refuses: {failed}, which began the log", mend)
    if failed.state in ("3F000", "42P01", "42883"):
        return DatabaseRefused(f"the database on {host} is not prepared for logs", f"its owner runs: {PREPARE}")
    may = "the owner of the database lets this role write or read logs: docs/machines.md"
    hint = may if failed.state == "42501" else ""
    return DatabaseRefused(f"the database on {host} refuses: {failed}", hint)


def connected(
    address: Address, *, standby: bool = False, seconds: float = CONNECT_SECONDS
) -> tuple[Session, Head | None]:  # fmt: skip
    """A session in which the log's row can be read, and the row. Raises Unreachable, DatabaseRefused."""
    told = ""
    for session in sessions(address, seconds, standby=standby):
        try:
            check_schema(session)
            return session, head_of(session, address.log)
        except Failed as failed:
            session.close()
            raise explained(failed, session.host) from failed
        except Broken as broken:
            told = str(broken)
            session.close()
        except BaseException:
            session.close()
            raise
    raise Unreachable(f"{address} cannot be reached: {told}", RUNS)


def check_schema(session: Session) -> None:
    """Raises DatabaseRefused where the schema is of another release; Broken, Failed."""
    version = schema_version(session)
    if version != VERSION:
        raise Failed("42P01", "") if version == 0 else _of_another_release(session, version)


def _of_another_release(session: Session, version: int) -> DatabaseRefused:
    mend = f"its owner runs {PREPARE}" if version < VERSION else "use the later release"
    return DatabaseRefused(f"the database on {session.host} has schema {version}; this release needs {VERSION}", mend)


class Line:
    """One connection, which ``connect`` makes when it is needed, and which is left where it breaks. For any thread; one
    at a time uses it."""

    def __init__(self, address: Address, connect: Callable[[], Session]) -> None:
        self.lock = threading.RLock()
        self.session: Session | None = None
        self._address = address
        self._connect = connect

    def connected(self) -> Session:
        """The session. Raises what ``connect`` raises."""
        if self.session is None:
            self.session = self._connect()
        return self.session

    def trying(self, work: Callable[[Session], T]) -> T:
        """``work`` on a session; on another one where it breaks, for ``OUTAGE_SECONDS``. Raises Unreachable; what
        ``explained`` makes of an error of the server, and then the session is left: what was sent behind the statement
        has no answer."""
        with self.lock:
            until = monotonic() + OUTAGE_SECONDS
            while True:
                try:
                    return work(session := self.connected())
                except Failed as failed:
                    self.close()
                    raise explained(failed, session.host) from failed
                except Broken as broken:
                    self.close()
                    last: PmagentError = Unreachable(f"{self._address} cannot be reached: {broken}", RUNS)
                except Unreachable as error:
                    last = error
                if monotonic() > until:
                    raise last
                sleep(PAUSE_SECONDS)

    def close(self) -> None:
        """Let go of the connection. Idempotent; the next call makes another one."""
        with self.lock:
            if self.session is not None:
                self.session.close()
                self.session = None


class PostgresReader:
    """Reads one log. A connection that breaks is made again, for ``OUTAGE_SECONDS``. For any thread.

    Raises NotFound when there is no such log; what ``connected`` raises.
    """

    reads_files = False

    def __init__(self, address: Address) -> None:
        self._address = address
        self._line = Line(address, self._opened)
        self.close = self._line.close
        self._seen = Tail()
        self._log_no, self._log_id = 0, ""
        self._ahead: list[bytes] = []  # lines that were fetched already
        self._next = 0  # the position of the first of them
        self._asked = 0  # from which position on the server reads more
        self._listens = False
        self._line.session = self._opened()

    def log_id(self) -> str:
        """See LogReader."""
        return self._log_id

    def tail(self) -> Tail:
        """See StorageReader. A standby may show a batch that nobody has acknowledged: there the last one that the
        holder settled counts, or the one before the newest."""
        return self._line.trying(self._tail)

    def read(self, position: int, bytes_max: int = CHUNK_BYTES) -> bytes:
        """See StorageReader."""
        if position < 1:
            raise ValueError("positions start at 1")
        with self._line.lock:
            end = self._seen.position
            if position > end and position > (end := self.tail().position):
                return b""
            goes_on = position == self._next
            if not goes_on or not self._ahead:
                size = AHEAD_BYTES if goes_on else bytes_max
                self._ahead = self._line.trying(partial(self._fetched, position, end, size, goes_on))
            count = bisect(list(accumulate(map(len, self._ahead))), bytes_max) or 1
            found, self._ahead = b"".join(self._ahead[:count]), self._ahead[count:]
            if len(found) > bytes_max:
                cut = found.rfind(b"\n", 0, bytes_max) + 1 or found.find(b"\n") + 1
                if cut < len(found):
                    self._ahead.insert(0, found[cut:])
                found = found[:cut]
            self._next = position + found.count(b"\n")
            return found

    def location(self, position: int) -> tuple[str, int]:
        """See StorageReader: the page, and the byte offset in it."""
        with self._line.lock:
            pages = self._line.trying(lambda session: self._pages(session, position, position, 1))
            if not pages or pages[0][1] < position:
                return f"page {pages[0][0] if pages else position}", 0
            first, _, lines = pages[0]
            return f"page {first}", _offset(lines, position - first)

    def changes(self, position: int, seconds: float) -> bool:
        """See StorageReader. Woken by a notification, which may get lost: it looks each second anyway."""
        until = monotonic() + seconds
        while self.tail().position <= position:
            left = until - monotonic()
            if left <= 0:
                return False
            with self._line.lock:
                self._line.trying(partial(self._waited, min(left, POLL_SECONDS)))
        return True

    def _opened(self) -> Session:
        session, head = connected(self._address, standby=True)
        if head is None or not head.log_id or self._log_id not in ("", head.log_id):
            session.close()
            raise NotFound(
                f"there is no log {self._address.log} in {self._address.dsn}" if head is None or not head.log_id
                else f"another log lies in {self._address} now", "pmagent up begins one where none was",
            )
        self._log_no, self._log_id, self._listens = head.log_no, head.log_id, False
        return session

    def _tail(self, session: Session) -> Tail:
        head = head_of(session, self._address.log)
        if head is None or head.log_id != self._log_id:
            raise NotFound(f"log {self._log_id} is not in {self._address} any more", "look where the log is now")
        tail = head.tail
        if session.is_standby and head.settled < head.position:
            tail = self._tail_before(session, head)
            if tail.position <= self._seen.position:  # a primary has shown more
                return self._seen
        elif tail.position < self._seen.position:
            why = f"it ends at position {tail.position}"
            raise EventsLost(str(self._address), tail.position + 1, self._seen.position, why)
        self._seen = tail
        return tail

    def _tail_before(self, session: Session, head: Head) -> Tail:
        """The end of the batch before the newest: the writer sent the newest only when that was acknowledged."""
        from pmagent.events.line import decode_line

        rows = session.ask(_BEFORE, self._log_no, head.batch)
        if not rows:
            return Tail()
        last, batch, lines = rows[0]
        line = lines[lines.rfind(b"\n", 0, -1) + 1 :]
        try:
            event = decode_line(line)
        except ValueError as error:
            raise CorruptLog(f"page that ends at {last}", 0, last, f"not an event: {error}") from error
        return Tail(last, batch, event.time, event.sum)

    def _pages(
        self, session: Session, position: int, end: int, size: int, *, posted: bool = False
    ) -> list[tuple[int, int, bytes]]:
        """The pages from ``position`` on; ``posted``: for which the server was asked already, unless something else
        was asked since."""
        found = session.answer() if posted else []
        return found or session.ask(_PAGES, self._log_no, position, end, _PAGES_MAX, size)

    def _fetched(self, position: int, end: int, size: int, goes_on: bool, session: Session) -> list[bytes]:
        """Lines from ``position`` on, whole pages up to ``size`` bytes and one more; where the reading ``goes_on``, the
        server is asked for the next ones."""
        found: list[bytes] = []
        wanted, (posted, self._asked) = position, (self._asked, 0)
        for first, last, lines in self._pages(session, position, end, size, posted=posted == position):
            if not first <= wanted <= last or (found and first != wanted):
                break  # the next reading tells
            if lines.count(b"\n") != last - first + 1 or not lines.endswith(b"\n"):
                if found:
                    break
                why = f"it does not hold {last - first + 1} whole lines"
                raise CorruptLog(f"page {first}", 0, wanted, why)
            stop = _offset(lines, end - first + 1) if last > end else len(lines)
            found.append(lines[_offset(lines, wanted - first) : stop])
            wanted = last + 1
        if not found:
            raise CorruptLog(f"page {position}", 0, position, "the page that holds it is missing")
        if goes_on and wanted <= end:
            session.post(_PAGES, self._log_no, wanted, end, _PAGES_MAX, AHEAD_BYTES)
            self._asked = wanted
        return found

    def _waited(self, seconds: float, session: Session) -> None:
        if session.is_standby:
            session.notified(seconds)  # nobody can listen there: it only waits
            return
        if not self._listens:
            with suppress(Failed):
                session.script(f"LISTEN pm_{self._log_no}")
                self._listens = True
            return  # what came before is not told of: look again
        session.notified(seconds)


def _offset(lines: bytes, count: int) -> int:
    """Where the line behind ``count`` lines begins."""
    at = 0
    for _ in range(count):
        at = lines.index(b"\n", at) + 1
    return at
