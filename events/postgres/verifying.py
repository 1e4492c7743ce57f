"""Every check that can be made of a log in PostgreSQL: the lines as with segments, the pages that hold them, and the
row that notes the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pmagent.events.head import HeadSlot
from pmagent.events.line import ChainChecker
from pmagent.events.named_blobs import BlobCheck
from pmagent.events.postgres.reader import Head, asked
from pmagent.events.postgres.session import Session
from pmagent.events.store import Finding, Verification
from pmagent.events.verify import LineVerifier

_PAGES: Final = b"""
SELECT first, last, batch, epoch, lines FROM pm.page WHERE log_no = $1 AND first > $2 ORDER BY first LIMIT $3
"""
_BEYOND: Final = b"""
SELECT min(p.first) FROM pm.log l JOIN pm.page p ON p.log_no = l.log_no AND p.first > l.position WHERE l.log_no = $1
"""
_PAGES_AT_ONCE: Final = 16


class PageVerifier(LineVerifier):
    """Verifies the log of ``head`` in ``session``."""

    def __init__(
        self, session: Session, head: Head, decode: bool, blobs: BlobCheck | None,
        progress: Callable[[int], None] | None,
    ) -> None:
        super().__init__(decode, blobs, progress)
        self._session = session
        self._head = head
        self._slot = HeadSlot(head.log_id, head.position, head.batch, head.time, head.sum.hex())

    def run(self) -> Verification:
        """See ``LogStore.verify``. Raises Broken, DatabaseRefused, CorruptLog (a page that the server cannot read)."""
        finding, blobs = self._with_blobs(self._check_pages())
        tail = self._checker.tail
        return Verification(
            finding is None, self._log_id, tail.position, self._bytes, 1, tail, self._slot.tail(), 0, finding, None,
            blobs,
        )

    def _check_pages(self) -> Finding | None:
        after, epoch = 0, 0
        while after < self._head.position:  # a live writer's later pages are for another time
            pages = asked(self._session, _PAGES, self._head.log_no, after, _PAGES_AT_ONCE)
            for first, last, batch, written, lines in pages:
                if first > self._head.position:
                    break
                if (found := self._check_page(first, last, batch, lines)) is not None:
                    return found
                if written < epoch:
                    why = f"epoch {written} wrote it, behind a page of epoch {epoch}"
                    return Finding(f"page {first}", 0, first, why)
                after, epoch = first, written
            if not pages or pages[-1][0] > self._head.position or self._checker.tail.position >= self._head.position:
                break
        tail = self._checker.tail
        if tail.position < self._head.position:
            missing = self._head.position - tail.position
            return Finding(f"page {tail.position + 1}", 0, tail.position + 1, f"{missing} durable events are missing")
        ((beyond,),) = asked(self._session, _BEYOND, self._head.log_no)
        if beyond is not None:
            return Finding(f"page {beyond}", 0, beyond, "it lies behind the end that the log's row notes")
        return None

    def _check_page(self, first: int, last: int, batch: int, lines: bytes) -> Finding | None:
        name, before = f"page {first}", self._checker.tail
        if first != before.position + 1:
            if first <= before.position:
                return Finding(name, 0, before.position, f"the page before it ends at position {before.position}")
            return Finding(f"page {before.position + 1}", 0, before.position + 1, f"it is missing; {name} follows")
        fault = self._checker.check(lines)
        intact = lines[: fault.offset] if fault else lines
        if (found := self._check_run(intact, name, 0, before, self._slot)) is not None:
            self._checker = ChainChecker(before)  # only what precedes the finding is intact
            self._checker.check(lines[: found.offset])
            self._bytes += found.offset
            return found
        self._bytes += len(intact)
        self._tell()
        tail = self._checker.tail
        if fault is not None:
            return Finding(name, fault.offset, tail.position + 1, fault.reason)
        if (last, batch) != (tail.position, tail.batch):
            return Finding(name, 0, tail.position, f"it is kept as batch {batch} up to position {last}")
        return None
