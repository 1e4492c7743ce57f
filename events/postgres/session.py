"""One connection to PostgreSQL, with deadlines of ours (docs/design.md §2.9).

A deadline shuts the socket. It never cancels: a statement that is cancelled while it waits for a standby is committed
all the same, and everybody sees rows that no standby has. So whoever hears ``Broken`` does not know the outcome of the
statement that was under way.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, Final

from pmagent.events.errors import PmagentError
from pmagent.events.postgres.address import Address

try:
    from psycopg import pq
    from psycopg.errors import Error as PsycopgError
except ImportError:

    class ClientMissing(PmagentError, exit_code=2):
        """The extra that reaches PostgreSQL is not installed."""

    raise ClientMissing(
        "the log lies in PostgreSQL, and psycopg is not installed, which reaches it",
        "install pmagent with its extra pg: uv tool install 'pmagent[pg]'",
    ) from None

CONNECT_SECONDS: Final = 5.0
"""So long one host has to let us in."""

ANSWER_SECONDS: Final = 30.0
"""So long a statement may take that waits for no standby."""

RUNS: Final = "see that the database and its standbys run; pmagent doctor"

_BINARY: Final = pq.Format.BINARY
_TEXT: Final = pq.Format.TEXT
_GOOD: Final = frozenset((pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.EMPTY_QUERY))
_GONE: Final = ("08", "57P", "58", "XX000")
"""SQLSTATEs after which the connection is not to be used any more."""

_SETTINGS: Final = b"""
SET statement_timeout = 0; SET lock_timeout = 0; SET idle_session_timeout = 0;
SET idle_in_transaction_session_timeout = 0; SET default_transaction_isolation = 'read committed';
SET client_min_messages = warning; SET search_path = pg_catalog;
SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;
SET tcp_user_timeout = 75000;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off;
SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply'
    THEN 'remote_apply' ELSE 'on' END, false);
SELECT pg_is_in_recovery(), pg_backend_pid();
"""
"""The settings of each session of ours, whatever the role or the database has been given; the plan of a page's
lookup must not depend on statistics that nobody has taken yet. Statements that meet on a log's row wait for each other
and look again; under another isolation one of them fails. The server gives the session of a host that lost its power,
and its lock, up after 75 s, when a holder that is merely cut off has given up, too; by itself that takes hours."""

_PID: Final = b"SELECT pg_backend_pid()"

_KEEPALIVE: Final = {
    "keepalives_idle": "5", "keepalives_interval": "2", "keepalives_count": "3", "tcp_user_timeout": "15000",
    "application_name": "pmagent", "client_encoding": "UTF8",
}  # fmt: skip


class Unreachable(PmagentError, exit_code=5):
    """No host of the address let us in."""


class DatabaseRefused(PmagentError, exit_code=2):
    """The database does not let us do what a log needs."""


class Broken(Exception):
    """The connection is gone: whether the statement that was under way took effect is unknown."""


class Failed(Exception):
    """The server answered with an error: the statement had no effect. ``state`` is its SQLSTATE."""

    def __init__(self, state: str, text: str) -> None:
        super().__init__(text)
        self.state = state


class Session:
    """One connection to one host, ``target`` in libpq's words. For one thread at a time. Raises Broken when that host
    does not let us in, DatabaseRefused when what is there must not be used."""

    def __init__(self, target: str, seconds: float = CONNECT_SECONDS) -> None:
        self.warnings: list[str] = []
        """The server's warnings since this was last emptied. A commit with a warning is no acknowledgement."""
        self.target = target
        self._prepared: dict[bytes, bytes] = {}
        self._posted = False
        until = monotonic() + seconds
        try:
            self._connection = pq.PGconn.connect_start(_located(target, seconds).encode())
            self._connect(until)
            self._connection.nonblocking = 1
            self._connection.notice_handler = self._noticed
            self._connection.send_query(_SETTINGS)
            found = self._collect(until)
            standby, pid = (found.get_value(0, column) or b"" for column in range(2))
        except PsycopgError as error:
            raise Broken(_line(str(error))) from error
        self.host = self._connection.host.decode("utf-8", "replace") or "the server"
        """The host, for people."""
        self.is_standby = standby == b"t"
        if int(pid) != self._connection.backend_pid and self._shares_backends(until):
            self.close()
            raise DatabaseRefused(
                f"{self.host} is a connection pooler: statements of one session reach several backends",
                "name the database server itself, or pool by session",
            )
        if not self._is_private():
            self.close()
            raise DatabaseRefused(
                f"{self.host} is reached over a network, and sslmode is not verify-full: anybody could answer for it",
                "put sslmode=verify-full into the address, and the authority's certificate where sslrootcert says",
            )

    def ask(self, sql: bytes, *given: object, seconds: float = ANSWER_SECONDS) -> list[tuple[Any, ...]]:
        """Run one statement, in a transaction of its own, and return its rows. int, str, bytes and None are given;
        bytes are bytea. Raises Broken, Failed."""
        until = monotonic() + seconds
        with self._unbroken():
            self._send(sql, given, until)
            return _rows(self._collect(until))

    def ask_two(
        self, first: tuple[bytes, Sequence[object]], then: tuple[bytes, Sequence[object]],
        seconds: float = ANSWER_SECONDS,
    ) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:  # fmt: skip
        """Run two statements, each with what it is given, in transactions of their own, in one round trip; the second
        begins when the first is committed. Raises Broken; Failed where the first had no effect."""
        until, connection = monotonic() + seconds, self._connection
        with self._unbroken():
            self._clear(until)
            for sql, _ in (first, then):
                self._prepare(sql, until)
            connection.enter_pipeline_mode()
            for sql, given in (first, then):
                self._send_prepared(sql, given)
                connection.pipeline_sync()
            found, failed = [], []
            for _ in range(2):
                try:
                    found.append(self._collect(until, syncs=1))
                except Failed as error:  # the session goes on, so the other answer has to be taken
                    failed.append(error)
            connection.exit_pipeline_mode()
        if failed:
            raise failed[0]
        return _rows(found[0]), _rows(found[1])

    def script(self, sql: str, seconds: float = ANSWER_SECONDS) -> None:
        """Run several statements, which have no parameters; one transaction unless they say otherwise. Raises Broken,
        Failed."""
        until = monotonic() + seconds
        with self._unbroken():
            self._clear(until)
            self._connection.send_query(sql.encode())
            self._collect(until)

    def post(self, sql: bytes, *given: object, seconds: float = ANSWER_SECONDS) -> None:
        """Send a statement whose answer nobody waits for, or ``answer`` takes; nothing, while an earlier one has not
        been answered. Raises Broken, Failed."""
        with self._unbroken():
            if self._posted:
                self._connection.consume_input()
                if self._connection.is_busy():
                    return
            self._send(sql, given, monotonic() + seconds)
            self._connection.flush()
            self._posted = True

    def answer(self, seconds: float = ANSWER_SECONDS) -> list[tuple[Any, ...]]:
        """The rows of the statement that was posted last; none, where another one was run since, or none posted. Raises
        Broken, Failed."""
        with self._unbroken():
            found = self._clear(monotonic() + seconds)
            return _rows(found) if found is not None else []

    def notified(self, seconds: float) -> bool:
        """Wait for a notification, for ``seconds`` at most; whether one came. Raises Broken."""
        until = monotonic() + seconds
        with self._unbroken():
            while True:
                self._connection.consume_input()
                found = False
                while self._connection.notifies() is not None:
                    found = True
                if found:
                    return True
                if (left := until - monotonic()) <= 0 or not _ready(self._connection.socket, select.POLLIN, left):
                    return False

    def cut(self) -> None:
        """Shut the socket, so that nothing more of ours is sent, and nothing waited for."""
        with suppress(OSError, PsycopgError), socket.socket(fileno=os.dup(self._connection.socket)) as wire:
            wire.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the connection. Idempotent."""
        self._connection.finish()

    def _connect(self, until: float) -> None:
        while (state := self._connection.connect_poll()) != pq.PollingStatus.OK:
            if state == pq.PollingStatus.FAILED:
                text = _line(self._connection.get_error_message())
                self._connection.finish()
                raise Broken(text)
            wanted = select.POLLIN if state == pq.PollingStatus.READING else select.POLLOUT
            if not _ready(self._connection.socket, wanted, until - monotonic()):
                self._connection.finish()
                raise Broken("it does not answer")

    def _send(self, sql: bytes, given: Sequence[object], until: float) -> None:
        self._clear(until)
        self._prepare(sql, until)
        self._send_prepared(sql, given)

    def _prepare(self, sql: bytes, until: float) -> None:
        if sql not in self._prepared:
            name = b"s%d" % len(self._prepared)
            self._connection.send_prepare(name, sql)
            self._collect(until)
            self._prepared[sql] = name

    def _send_prepared(self, sql: bytes, given: Sequence[object]) -> None:
        values = [one if one is None or isinstance(one, bytes) else _text(one) for one in given]
        formats = [_BINARY if isinstance(one, bytes) else _TEXT for one in given]
        self._connection.send_query_prepared(self._prepared[sql], values, formats, _BINARY)

    @contextmanager
    def _unbroken(self) -> Iterator[None]:
        """Raises Broken where the client library cannot go on, and then nothing more is sent or waited for."""
        try:
            yield
        except PsycopgError as error:
            self.cut()
            raise Broken(_line(str(error))) from error

    def _clear(self, until: float) -> pq.abc.PGresult | None:
        """Take the answer that nobody waited for."""
        posted, self._posted = self._posted, False
        return self._collect(until) if posted else None

    def _collect(self, until: float, syncs: int = 0) -> pq.abc.PGresult:
        """Send what is left to send, and take the last of all results (of the next one of a pipeline, where ``syncs``
        is 1). Raises Broken, Failed, PsycopgError."""
        connection = self._connection
        wire = connection.socket
        while connection.flush():
            self._wait(wire, select.POLLIN | select.POLLOUT, until)
            connection.consume_input()
        last: pq.abc.PGresult | None = None
        failed: pq.abc.PGresult | None = None
        while True:
            while connection.is_busy():
                self._wait(wire, select.POLLIN, until)
                connection.consume_input()
            result = connection.get_result()
            if result is None:
                if syncs and last is not None and connection.status == pq.ConnStatus.OK:
                    continue  # the end of one statement; that of its transaction follows
                break
            if result.status == pq.ExecStatus.PIPELINE_SYNC:
                break
            last = result
            if result.status not in _GOOD and failed is None:
                failed = result
        if failed is not None:
            self._fail(failed)
        assert last is not None, "a statement has a result"
        return last

    def _wait(self, wire: int, wanted: int, until: float) -> None:
        if not _ready(wire, wanted, until - monotonic()):
            self.cut()
            raise Broken(f"{self.host} did not answer in time")

    def _fail(self, result: pq.abc.PGresult) -> None:
        state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
        text = _line((result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode("utf-8", "replace"))
        if not state or state.startswith(_GONE):
            self.cut()
            raise Broken(text or _line(self._connection.get_error_message()))
        raise Failed(state, text)

    def _noticed(self, notice: pq.abc.PGresult) -> None:
        if notice.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED) == b"WARNING":
            text = notice.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b""
            self.warnings.append(_line(text.decode("utf-8", "replace")))

    def _shares_backends(self, until: float) -> bool:
        """Whether the pooler in between lends one backend to several sessions. Poolers hand out the backend that was
        given back last, or the one that has been idle longest: the first shows while a second session holds one, the
        other when this session asks twice. Raises Broken."""
        try:
            seen = {self._asked(_PID, until) for _ in range(3)}
            other = pq.PGconn.connect(f"{self.target} connect_timeout={CONNECT_SECONDS:.0f}".encode())
            try:
                if other.exec_(b"BEGIN").status not in _GOOD:
                    return True  # it pools by statement
                seen.add(self._asked(_PID, until))
                return len(seen) > 1 or other.exec_(_PID).get_value(0, 0) in seen
            finally:
                other.finish()
        except PsycopgError as error:
            raise Broken(_line(str(error))) from error

    def _asked(self, sql: bytes, until: float) -> bytes | None:
        self._connection.send_query(sql)
        return self._collect(until).get_value(0, 0)

    def _is_private(self) -> bool:
        """Whether nobody else can answer: a socket of this machine, or a server whose certificate was checked."""
        with socket.socket(fileno=os.dup(self._connection.socket)) as wire:
            if wire.family == socket.AF_UNIX or str(wire.getpeername()[0]) in ("127.0.0.1", "::1"):
                return True
        return next((one.val for one in self._connection.info if one.keyword == b"sslmode"), b"") == b"verify-full"


def sessions(address: Address, seconds: float = CONNECT_SECONDS, *, standby: bool = False) -> Iterator[Session]:
    """A session on each host in turn that is a primary, or says that it is: two may, after a failure, so who takes one
    tries what it needs there. ``standby``: those of standbys, too, behind the primaries. The caller closes each.

    Raises Unreachable where none lets us in; DatabaseRefused.
    """
    told, later = [], []
    found = False
    for name, target in targets(address):
        try:
            session = Session(target, seconds)
        except Broken as broken:
            told.append(f"{name}: {broken}")
            continue
        if session.is_standby:
            told.append(f"{name}: it is a standby")
            session.close()
            later.append(target)
            continue
        found = True
        yield session
    for target in later if standby else ():
        with suppress(Broken):
            found = True
            yield Session(target, seconds)
    if not found:
        raise Unreachable(f"{address} cannot be reached: {'; '.join(told)}", RUNS)


def targets(address: Address) -> list[tuple[str, str]]:
    """The hosts of an address one by one: their name for people, and libpq's words for them."""
    try:
        parsed = {one.keyword.decode(): one.val.decode() for one in pq.Conninfo.parse(address.dsn.encode()) if one.val}
    except PsycopgError as error:
        raise DatabaseRefused(f"{address} is not understood: {_line(str(error))}", "correct it") from error
    parsed.pop("target_session_attrs", None)  # it finds whichever of two primaries stands first
    for name, variable in (("host", "PGHOST"), ("port", "PGPORT")):
        if name not in parsed and "service" not in parsed and os.environ.get(variable):
            parsed[name] = os.environ[variable]
    many = max(parsed.get("host", "").count(","), parsed.get("hostaddr", "").count(",")) + 1
    found = []
    for index in range(many):
        one = dict(parsed)
        for name in ("host", "hostaddr", "port"):
            if name in one:
                parts = one[name].split(",")
                one[name] = parts[index if len(parts) > 1 else 0]
        name = one.get("host") or one.get("hostaddr") or "the local socket"
        words = " ".join(f"{key}='{_quoted(value)}'" for key, value in (_KEEPALIVE | one).items())
        found.append((f"{name}:{one['port']}" if one.get("port") else name, words))
    return found


def _located(target: str, seconds: float) -> str:
    """``target`` with the addresses of its host: libpq would wait for as long as the resolver does. Raises Broken."""
    words = {one.keyword.decode(): one.val.decode() for one in pq.Conninfo.parse(target.encode()) if one.val}
    host = words.get("host", "")
    if not host or host[0] in "/@" or "hostaddr" in words or os.environ.get("PGHOSTADDR"):
        return target
    found, trouble = list[str](), list[str]()

    def look() -> None:
        try:
            answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            trouble.append(f"its name is not known: {error.strerror}")
        else:
            found.extend(dict.fromkeys(str(one[4][0]) for one in answers))

    looking = threading.Thread(target=look, daemon=True)  # which ends when the resolver gives up
    looking.start()
    looking.join(seconds)
    if not found:
        raise Broken(trouble[0] if trouble else f"its name was not found within {seconds:g} s")
    names = ",".join(host for _ in found)
    return f"{target} host='{_quoted(names)}' hostaddr='{','.join(found)}'"


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'")


def _ready(wire: int, wanted: int, seconds: float) -> bool:
    waiting = select.poll()
    waiting.register(wire, wanted)
    return bool(waiting.poll(max(0, seconds) * 1000))


def _text(value: object) -> bytes:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ("{" + ",".join(map(str, value)) + "}").encode()
    return str(value).encode()


def _value(kind: int, raw: bytes | None) -> Any:
    """A value as Python has it: whole numbers, truth, bytes; everything else is text."""
    if raw is None or kind == 17:
        return raw
    if kind in (20, 21, 23):
        return int.from_bytes(raw, "big", signed=True)
    if kind == 26:
        return int.from_bytes(raw, "big")
    return raw == b"\1" if kind == 16 else raw.decode("utf-8", "replace")


def _rows(result: pq.abc.PGresult) -> list[tuple[Any, ...]]:
    return [
        tuple(_value(result.ftype(column), result.get_value(row, column)) for column in range(result.nfields))
        for row in range(result.ntuples)
    ]


def _line(text: str) -> str:
    return " ".join(text.split())
