"""The table of attempts, and the line to a device elsewhere, in PostgreSQL (see ``pmagent.events.attempts``)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pmagent.events.attempts import AttemptRow, Claimed, Letter, Offering, TableRefused, TableUnreachable
from pmagent.events.errors import PmagentError
from pmagent.events.postgres.address import Address
from pmagent.events.postgres.checks import check_server
from pmagent.events.postgres.hold import committed
from pmagent.events.postgres.reader import explained
from pmagent.events.postgres.schema import PREPARE
from pmagent.events.postgres.session import Broken, Failed, Session, sessions

PIECE_BYTES: Final = 256 * 1024

_ANSWER_SECONDS: Final = 10.0
"""So long a step of an attempt has to be acknowledged; then nobody knows what became of it."""

_LETTER_SECONDS: Final = 2.0
"""So long a letter may take: by then the lease of the line is over."""

_ROWS: Final = b"""
SELECT a.position, a.state, a.epoch, a.claim, a.worker, a.renewals, a.stop,
  CASE a.state WHEN 'done' THEN a.result ELSE '' END, s.timeline
FROM pm.attempt a JOIN pm.log l USING (log_no), pm.system() s WHERE l.name = $1 AND l.epoch = $2
"""
_HELD: Final = b"SELECT count(*) FROM pm.log WHERE name = $1 AND epoch = $2"
_WORKERS: Final = b"""
SELECT array_to_string(labels, ',') FROM pm.worker
WHERE $1 = ANY (logs) AND seen > now() - $2::float8 * interval '1 second'
"""
_OUTPUT: Final = b"""
SELECT o.n, o.bytes FROM pm.output o JOIN pm.log l USING (log_no)
WHERE l.name = $1 AND o.position = $2 AND o.part = $3 AND o.n >= $4 ORDER BY o.n LIMIT 8
"""
_OFFER: Final = b"SELECT pm.offer($1, $2, $3, $4, $5, $6, $7, $8, $9)"
_STEP: Final = b"SELECT pm.step($1, $2, $3, $4, $5, $6)"
_PUT_LOAD: Final = b"SELECT pm.put_load($1, $2, $3, $4, $5)"
_COLUMNS: Final = b"SELECT log, pos, rounds, stopped, lease, wish, left_bytes FROM "
_CLAIM: Final = _COLUMNS + b"pm.claim($1, $2, $3, $4)"
_KEEP: Final = _COLUMNS + b"pm.keep_claim($1)"
_MAY: Final = b"SELECT has_function_privilege('pm.claim(text, text, text[], text[])', 'EXECUTE')"
_JOIN: Final = b"SELECT pm.join_workers($1, $2, $3, $4)"
_TAKE_LOAD: Final = b"SELECT pm.take_load($1, $2, $3)"
_PUT: Final = b"SELECT pm.put_output($1, $2, $3, $4)"
_REPORT: Final = b"SELECT pm.report($1, $2)"
_BEGIN_LINE: Final = b"SELECT pm.begin_line($1, $2, $3, $4, $5)"
_END_LINE: Final = b"SELECT pm.end_line($1, $2, $3)"
_CLAIM_LINE: Final = b"SELECT log FROM pm.claim_line($1, $2, $3)"
_LETTER: Final = b"SELECT sign, first, content, confirmed, why FROM "
_HOLD_LINE: Final = _LETTER + b"pm.hold_line($1, $2, $3, $4, $5, $6, $7)"
_CARRY_LINE: Final = _LETTER + b"pm.carry_line($1, $2, $3, $4, $5, $6)"


class _Line:
    """One connection, which is made when it is needed, and left where it breaks; any thread may use it."""

    def __init__(self, address: Address, replicated: bool, permit: Callable[[], None] = lambda: None) -> None:
        self._address = address
        self._replicated = replicated
        self._permit = permit
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._over = False

    def ask(
        self, sql: bytes, *given: object, commits: bool = False, seconds: float = _ANSWER_SECONDS
    ) -> list[tuple[Any, ...]]:
        """Run one statement; ``commits``: what it did counts only as durable as promised. Raises TableUnreachable,
        TableRefused."""
        with self._lock:
            try:
                if self._session is None:
                    self._permit()
                    self._session = next(sessions(self._address))
                if self._over:  # whoever waited for its turn makes no connection that nobody closes
                    raise Broken("it was let go of")
                if commits:
                    return committed(self._session, self._replicated, sql, *given, seconds=seconds)
                return self._session.ask(sql, *given, seconds=seconds)
            except Broken as broken:
                self._drop()
                raise TableUnreachable(f"the attempts in {self._address} are not reached: {broken}") from broken
            except Failed as failed:
                assert self._session is not None, "it has answered"
                host = self._session.host
                self._drop()  # what was sent behind the statement has no answer
                if failed.state.startswith("PM"):
                    raise TableUnreachable(f"{self._address}: {failed}") from failed
                error = explained(failed, host)
                raise TableRefused(error.message, error.hint) from failed
            except PmagentError as error:
                if isinstance(error, TableUnreachable | TableRefused) or error.exit_code != TableUnreachable.exit_code:
                    raise
                raise TableUnreachable(error.message, error.hint) from error

    def check(self) -> None:
        """Raises Unsafe where the server promises too little, and what ``ask`` raises."""
        self.ask(b"SELECT 1")
        assert self._session is not None, "just made"
        try:
            check_server(self._session, replicated=self._replicated)
        except (Broken, Failed) as error:
            raise TableRefused(f"the database on {self._session.host} refuses: {error}") from error

    def close(self) -> None:
        """Let go of the connection for good."""
        self._over = True
        self._drop()

    def _drop(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


class PostgresHolderTable:
    """See HolderTable. ``held``: the epoch that is held now."""

    def __init__(
        self, address: Address, held: Callable[[], int], *, replicated: bool, permit: Callable[[], None]
    ) -> None:
        self._log = address.log
        self._held = held
        self._line = _Line(address, replicated, permit)

    @property
    def epoch(self) -> int:
        """See HolderTable."""
        return self._held()

    def rows(self) -> list[AttemptRow] | None:
        """See HolderTable."""
        given = self._log, self.epoch
        rows = [AttemptRow(*row) for row in self._line.ask(_ROWS, *given)]
        return rows if rows or self._line.ask(_HELD, *given)[0][0] else None

    def labels(self, seconds: float) -> list[frozenset[str]]:
        """See HolderTable."""
        return [frozenset(filter(None, one.split(","))) for (one,) in self._line.ask(_WORKERS, self._log, seconds)]

    def load(self, sha256: str, content: bytes) -> None:
        """See HolderTable."""
        for n, start in enumerate(range(0, max(1, len(content)), PIECE_BYTES)):
            piece = content[start : start + PIECE_BYTES]
            self._line.ask(_PUT_LOAD, self._log, self.epoch, bytes.fromhex(sha256), n, piece)

    def offer(self, position: int, offering: Offering) -> None:
        """See HolderTable."""
        self._line.ask(
            _OFFER, self._log, self.epoch, position, list(offering.labels), offering.wish, ",".join(offering.loads),
            offering.bytes, offering.lease_ms, offering.seconds, commits=True,
        )  # fmt: skip

    def step(self, position: int, step: str, claim: str = "", renewals: int = 0) -> bool:
        """See HolderTable."""
        ((taken,),) = self._line.ask(_STEP, self._log, self.epoch, position, step, claim, renewals, commits=True)
        return bool(taken)

    def output(self, position: int, part: int) -> Iterator[bytes]:
        """See HolderTable."""
        following = 0
        while rows := self._line.ask(_OUTPUT, self._log, position, part, following):
            for n, piece in rows:
                following = n + 1
                yield piece

    def begin_line(self, life: str, role: str, worker: str) -> bool:
        """See HolderTable."""
        return bool(self._line.ask(_BEGIN_LINE, self._log, self.epoch, life, role, worker)[0][0])

    def hold_line(self, life: str, letter: Letter) -> Letter | None:
        """See HolderTable."""
        rows = self._line.ask(_HOLD_LINE, self._log, self.epoch, life, *letter[:4], seconds=_LETTER_SECONDS)
        return Letter(*rows[0]) if rows else None

    def end_line(self, life: str) -> None:
        """See HolderTable."""
        self._line.ask(_END_LINE, self._log, self.epoch, life, seconds=_LETTER_SECONDS)

    def close(self) -> None:
        """See HolderTable."""
        self._line.close()


class PostgresWorkerTable:
    """See WorkerTable."""

    def __init__(self, address: Address, *, replicated: bool) -> None:
        self._line = _Line(address, replicated)

    def check(self) -> None:
        """Raises Unsafe, TableRefused, TableUnreachable where this worker can claim nothing there."""
        self._line.check()
        ((may,),) = self._line.ask(_MAY)
        if not may:
            mend = f"the owner of the database runs: {PREPARE} … --worker ROLE"
            raise TableRefused("this role may claim no attempts", mend)

    def join(self, worker: str, labels: Sequence[str], logs: Sequence[str], capacity: int) -> None:
        """See WorkerTable."""
        self._line.ask(_JOIN, worker, list(labels), list(logs), capacity)

    def claim(self, claim: str, worker: str, labels: Sequence[str], logs: Sequence[str]) -> Claimed | None:
        """See WorkerTable."""
        rows = self._line.ask(_CLAIM, claim, worker, list(labels), list(logs), commits=True)
        return Claimed(*rows[0]) if rows else None

    def keep(self, claim: str) -> Claimed | None:
        """See WorkerTable."""
        rows = self._line.ask(_KEEP, claim, commits=True)
        return Claimed(*rows[0]) if rows else None

    def load(self, claim: str, sha256: str) -> Iterator[bytes]:
        """See WorkerTable."""
        n = 0
        while (piece := self._line.ask(_TAKE_LOAD, claim, bytes.fromhex(sha256), n)[0][0]) is not None:
            n += 1
            yield piece

    def put(self, claim: str, part: int, n: int, content: bytes) -> bool:
        """See WorkerTable."""
        return bool(self._line.ask(_PUT, claim, part, n, content)[0][0])

    def report(self, claim: str, result: bytes) -> str:
        """See WorkerTable."""
        return str(self._line.ask(_REPORT, claim, result, commits=True)[0][0])

    def claim_line(self, claim: str, worker: str, logs: Sequence[str]) -> str | None:
        """See WorkerTable."""
        rows = self._line.ask(_CLAIM_LINE, claim, worker, list(logs))
        return str(rows[0][0]) if rows else None

    def carry_line(self, claim: str, letter: Letter) -> Letter | None:
        """See WorkerTable."""
        rows = self._line.ask(_CARRY_LINE, claim, *letter, seconds=_LETTER_SECONDS)
        return Letter(*rows[0]) if rows else None

    def close(self) -> None:
        """See WorkerTable."""
        self._line.close()
