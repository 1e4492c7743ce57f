"""The table of attempts that workers on other hosts make, as the holder of a log and a worker see it
(docs/design.md §4.7). The rules are ``pmagent.actors.core.claims``; here is only what a database does.

Every method blocks. Each raises TableUnreachable where the outcome of a statement is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, Protocol

from pmagent.events.errors import PmagentError

LOAD_BYTES_MAX: Final = 64 * 1024 * 1024
"""The files that one attempt may be given: a copy of the workspace's files, or what earlier tasks have left."""


class TableUnreachable(PmagentError, exit_code=5):
    """The database did not answer, or not so that it counts: nobody knows what became of the statement."""


class TableRefused(PmagentError, exit_code=2):
    """The database answered that the statement is not permitted, or cannot be; it had no effect."""


class AttemptRow(NamedTuple):
    """A row of the table; see ``pmagent.actors.core.claims.Row``. ``worker``: who claimed it."""

    position: int
    state: Literal["open", "claimed", "done", "lost"]
    epoch: int
    claim: str
    worker: str
    renewals: int
    stop: bool
    result: bytes
    timeline: int


class Claimed(NamedTuple):
    """An attempt as its worker has claimed it. ``lease_ms``: so long the claim lives after each renewal; ``wish``: what
    is wanted; ``bytes_left``: so much it may write."""

    log: str
    position: int
    renewals: int
    stop: bool
    lease_ms: int
    wish: bytes
    bytes_left: int


class Offering(NamedTuple):
    """An attempt as the holder puts it into the table for a worker with these ``labels``. ``loads``: the SHA-256 (hex)
    of its content; ``seconds``: so long it may be begun."""

    labels: Sequence[str]
    wish: bytes
    loads: Sequence[str]
    bytes: int
    lease_ms: int
    seconds: float


class Letter(NamedTuple):
    """A letter of one end of a line (``pmagent.actors.pla.wire.carried``): a sign of life, which is a number; the bytes
    that the other end has not confirmed, with the offset of the first; and the bytes confirmed here, as a count.
    ``ended``: why the worker carries it no further."""

    sign: int
    at: int
    content: bytes
    taken: int
    ended: str = ""


class HolderTable(Protocol):
    """The attempts of one log, and its line to a device elsewhere, for its holder."""

    @property
    def epoch(self) -> int:
        """The epoch that is held now; 0 for none."""

    def rows(self) -> list[AttemptRow] | None:
        """All rows; None where the database is not the one that this holder took the log in."""

    def labels(self, seconds: float) -> list[frozenset[str]]:
        """The labels of each worker for this log that was there so long ago, or later."""

    def load(self, sha256: str, content: bytes) -> None:
        """Keep ``content`` for workers."""

    def offer(self, position: int, offering: Offering) -> None:
        """Insert an open row, unless there is one."""

    def step(self, position: int, step: str, claim: str = "", renewals: int = 0) -> bool:
        """adopt, hold, stop, withdraw, lose or forget; whether a row was as it expects."""

    def output(self, position: int, part: int) -> Iterator[bytes]:
        """The output of an attempt to one stream or file."""

    def begin_line(self, life: str, role: str, worker: str) -> bool:
        """Begin a life of the line to that worker's device; whether the log is still held."""

    def hold_line(self, life: str, letter: Letter) -> Letter | None:
        """Leave a letter for the worker, and read its own; None: that life is over."""

    def end_line(self, life: str) -> None:
        """End that life."""

    def close(self) -> None:
        """Let go of the connection. Idempotent."""


class WorkerTable(Protocol):
    """The permissions of a worker."""

    def join(self, worker: str, labels: Sequence[str], logs: Sequence[str], capacity: int) -> None:
        """Say that this worker is there."""

    def claim(self, claim: str, worker: str, labels: Sequence[str], logs: Sequence[str]) -> Claimed | None:
        """Claim an open attempt that fits; None: there is none."""

    def keep(self, claim: str) -> Claimed | None:
        """Renew a claim; None: the attempt is not claimed so any more."""

    def load(self, claim: str, sha256: str) -> Iterator[bytes]:
        """The content that a claimed attempt is given, unchecked."""

    def put(self, claim: str, part: int, n: int, content: bytes) -> bool:
        """Add output; False: it is not claimed so any more, or may write no more. Durable when a report is."""

    def report(self, claim: str, result: bytes) -> str:
        """Tell the result; ``done``, or what else became of the attempt."""

    def claim_line(self, claim: str, worker: str, logs: Sequence[str]) -> str | None:
        """Claim the line that waits for this worker's device: the name of its log; None: there is none."""

    def carry_line(self, claim: str, letter: Letter) -> Letter | None:
        """Leave a letter for the holder, and read its own; None: that life is over."""

    def check(self) -> None:
        """Raises PmagentError where this worker can claim nothing."""

    def close(self) -> None:
        """Let go of the connection. Idempotent."""
