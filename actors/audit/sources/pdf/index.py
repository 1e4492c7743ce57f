"""Finds the segments of a report that a question is about: BM25, by SQLite's full-text index in memory
(docs/design.md §15.5)."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from pmagent.actors.audit.sources.pdf.wire import Segment
from pmagent.actors.audit.sources.pdf.words import apart, clipped, parts, sentences, telling, words
from pmagent.events.errors import PmagentError

TOP: Final = 5
"""So many excerpts answer a question."""
EXCERPT_CHARS: Final = 600
WORDS_MAX: Final = 64
"""So many words of a question are looked for."""


class SearchUnavailable(PmagentError, exit_code=1):
    """SQLite was built without its full-text index."""


class Hit(NamedTuple):
    """An excerpt that answers a question: of the segment with this index, on ``page_no``."""

    text: str
    page_no: int
    segment: int


class DocStore:
    """The segments of a report, searchable from any thread; close it, or let go of it.

    Raises SearchUnavailable where SQLite lacks FTS5."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = tuple(segments)
        self._lock = threading.Lock()
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._finalizer = weakref.finalize(self, self._database.close)
        try:
            self._database.execute(
                "CREATE VIRTUAL TABLE segment USING fts5"
                "(text, content='', tokenize='porter unicode61 remove_diacritics 2')"
            )
        except sqlite3.OperationalError as error:
            self.close()
            raise SearchUnavailable(
                "this Python's SQLite has no full-text index (FTS5), so reports cannot be searched",
                "use a Python whose sqlite3 module has FTS5, such as the system's or python.org's",
            ) from error
        self._database.executemany(
            "INSERT INTO segment(rowid, text) VALUES (?, ?)",
            ((number, apart(segment["text"])) for number, segment in enumerate(self.segments)),
        )
        self._database.commit()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the memory back; the store cannot be asked any more."""
        self._finalizer()

    def search(self, question: str, top: int = TOP) -> list[Hit]:
        """Excerpts with any of the question's telling words, the best first."""
        return self._hits(" OR ".join(_quoted(word) for word in _distinct(telling(question))), question, top)

    def with_all(self, phrase: str, top: int = TOP) -> list[Hit]:
        """Excerpts of segments that hold every word of ``phrase``, wherever it stands; the best first."""
        return self._hits(" AND ".join(_quoted(word) for word in _distinct(words(phrase))), phrase, top)

    def _hits(self, query: str, question: str, top: int) -> list[Hit]:
        if not query:
            return []
        with self._lock:
            found = self._database.execute(
                "SELECT rowid FROM segment WHERE segment MATCH ? ORDER BY bm25(segment), rowid LIMIT ?", (query, top)
            ).fetchall()
        hits = []
        for (number,) in found:
            segment = self.segments[number]
            hits.append(Hit(excerpt(segment["text"], question), segment["page_no"], number))
        return hits


def excerpt(text: str, question: str, most: int = EXCERPT_CHARS) -> str:
    """The neighbouring sentences of ``text``, up to ``most`` characters, that share most words with ``question``."""
    pieces = list(sentences(text))
    sought = {_stem(part) for part in parts(" ".join(telling(question)))}
    shared = [len(sought & {_stem(part) for part in parts(piece)}) for piece in pieces]
    best, chosen = -1, (0, 0)
    for first in range(len(pieces)):
        size, count, last = 0, 0, first
        while last < len(pieces) and (last == first or size + len(pieces[last]) < most):
            size += len(pieces[last]) + 1
            count += shared[last]
            last += 1
        if count > best and (shared[first] or best < 0):
            best, chosen = count, (first, last)
    return clipped(" ".join(pieces[slice(*chosen)]), most)


def _stem(word: str) -> str:
    """``word`` without its commonest endings: enough to choose between sentences."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _distinct(found: list[str]) -> list[str]:
    return list(dict.fromkeys(found))[:WORDS_MAX]


def _quoted(word: str) -> str:
    """A string of the index's query language: nothing in it is syntax."""
    return '"' + word.replace('"', '""') + '"'
