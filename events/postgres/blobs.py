"""Blobs in the database of their log, in pieces (see ``pmagent.events.far_blobs.Far``)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, TypeVar

from pmagent.events.blobs import FileBlobReader
from pmagent.events.errors import DiskFull
from pmagent.events.far_blobs import BlobsUnreachable, missing
from pmagent.events.postgres.address import Address
from pmagent.events.postgres.hold import committed
from pmagent.events.postgres.reader import Line, connected
from pmagent.events.postgres.session import Broken, DatabaseRefused, Session, Unreachable

T = TypeVar("T")

PIECE_BYTES: Final = 256 * 1024
_PIECES_AT_ONCE: Final = 4
_NAMES_AT_ONCE: Final = 1000

_TOUCH: Final = b"SELECT pm.touch_blob($1, $2)"
_PIECE: Final = b"SELECT pm.put_piece($1, $2, $3, $4)"
_BLOB: Final = b"SELECT pm.put_blob($1, $2, $3, $4, $5)"
_DROP: Final = b"SELECT blobs, size FROM pm.drop_blobs($1, $2, $3)"
_FIND: Final = b"""
SELECT b.log_no, b.size, b.upload FROM pm.blob b JOIN pm.log l USING (log_no) WHERE l.name = $1 AND b.sha256 = $2
"""
_READ: Final = b"SELECT bytes FROM pm.piece WHERE log_no = $1 AND upload = $2 AND n >= $3 ORDER BY n LIMIT $4"
_SUM: Final = b"""
SELECT coalesce(sum(b.size), 0)::bigint FROM pm.blob b JOIN pm.log l USING (log_no) WHERE l.name = $1
"""


class PostgresBlobs:
    """The blobs of the log at ``address``. ``replicated``: what no standby has confirmed does not count; ``permit``
    raises where the database must not be connected to; ``epoch``: that of the lease which is held, 0 for none. The
    connection is made when it is needed, and ends with this object."""

    def __init__(
        self, address: Address, *, replicated: bool, permit: Callable[[], None], epoch: Callable[[], int]
    ) -> None:
        self._address = address
        self._replicated = replicated
        self._permit = permit
        self._epoch = epoch
        self._line = Line(address, lambda: connected(address, standby=True)[0])
        self.close = self._line.close

    def put(self, name: str, content: FileBlobReader) -> int:
        """See Far. Each step may be done again: what was sent in vain has a name of its own, and is cleared away."""
        return self._trying(lambda session: self._put(session, name, content))

    def pieces(self, name: str) -> Iterator[bytes]:
        """See Far. Raises CorruptLog for a row that the server cannot read."""
        sha256, at = bytes.fromhex(name), 0
        found = self._trying(lambda session: session.ask(_FIND, self._address.log, sha256), standby=True)
        if not found:
            raise missing(name)
        log_no, left, upload = found[0]
        while left > 0:
            rows = self._trying(partial(_read, log_no, upload, at), standby=True)
            if not rows:
                return  # whoever checks the content finds that some is missing
            for (piece,) in rows:
                at, left = at + 1, left - len(piece)
                yield piece

    def remove(self, names: Iterable[str]) -> tuple[int, int]:
        """See Far."""
        gone, removed, size = list(names), 0, 0
        for start in range(0, len(gone), _NAMES_AT_ONCE):
            count, freed = self._dropped(",".join(gone[start : start + _NAMES_AT_ONCE]))
            removed, size = removed + count, size + freed
        return removed, size

    def clear_unfinished(self) -> int:
        """See Far."""
        return self._dropped("")[0]

    def total(self) -> int:
        """See Far."""
        ((found,),) = self._trying(lambda session: session.ask(_SUM, self._address.log), standby=True)
        return int(found)

    def _dropped(self, names: str) -> tuple[int, int]:
        given = self._address.log, self._epoch(), names
        ((count, size),) = self._trying(lambda session: committed(session, self._replicated, _DROP, *given))
        return int(count), int(size)

    def _put(self, session: Session, name: str, content: FileBlobReader) -> int:
        log, sha256, upload = self._address.log, bytes.fromhex(name), secrets.token_bytes(16)
        whole: bytes | None = None
        if content.size > PIECE_BYTES:
            ((found,),) = committed(session, self._replicated, _TOUCH, log, sha256)
            if found is not None:
                return int(found)
            for n, start in enumerate(range(0, content.size, PIECE_BYTES)):
                session.ask(_PIECE, log, upload, n, content.read_at(start, PIECE_BYTES))
        else:
            whole = content.read_at(0, content.size)
        ((size,),) = committed(session, self._replicated, _BLOB, log, sha256, content.size, upload, whole)
        return int(size)

    def _trying(self, work: Callable[[Session], T], *, standby: bool = False) -> T:
        """``work`` on a session; on another one where it breaks. Raises BlobsUnreachable, CorruptLog."""
        self._permit()

        def on(session: Session) -> T:
            if session.is_standby and not standby:
                raise Broken("it is a standby")
            return work(session)

        try:
            return self._line.trying(on)
        except (Unreachable, DatabaseRefused, DiskFull) as error:
            what = f"the blobs in {self._address} are not reached: {error.message}"
            raise BlobsUnreachable(what, error.hint) from error


def _read(log_no: int, upload: bytes, at: int, session: Session) -> list[tuple[Any, ...]]:
    return session.ask(_READ, log_no, upload, at, _PIECES_AT_ONCE)
