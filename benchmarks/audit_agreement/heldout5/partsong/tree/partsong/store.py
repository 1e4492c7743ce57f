"""The database. One file, and every change is a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from .model import Loan, PartsongError, Piece

SCHEMA = """
CREATE TABLE IF NOT EXISTS piece (
    title TEXT PRIMARY KEY COLLATE NOCASE, composer TEXT NOT NULL, voices TEXT NOT NULL, copies INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS loan (
    title TEXT NOT NULL COLLATE NOCASE REFERENCES piece(title),
    copy INTEGER NOT NULL,
    singer TEXT NOT NULL,
    since TEXT NOT NULL,
    back TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS one_loan_per_copy ON loan(title, copy) WHERE back IS NULL;
"""


class Store:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def put(self, pieces: Iterable[Piece]) -> int:
        """Adds pieces, or changes those that are there. All or none; returns their number."""
        rows = [(one.title, one.composer, one.voices, one.copies) for one in pieces]
        with self.connection:
            for title, *_, copies in rows:
                lent = self.connection.execute(
                    "SELECT max(copy) FROM loan WHERE title = ? AND back IS NULL", (title,)
                ).fetchone()[0]
                if lent is not None and lent > copies:
                    raise PartsongError(f"{title}: copy {lent} is lent, there cannot be only {copies}")
            self.connection.executemany(
                "INSERT INTO piece VALUES (?, ?, ?, ?) ON CONFLICT(title) DO UPDATE SET"
                " composer = excluded.composer, voices = excluded.voices, copies = excluded.copies",
                rows,
            )
        return len(rows)

    def pieces(self) -> list[Piece]:
        return [Piece(*row) for row in self.connection.execute("SELECT * FROM piece ORDER BY composer, title")]

    def piece(self, title: str) -> Piece:
        row = self.connection.execute("SELECT * FROM piece WHERE title = ?", (title,)).fetchone()
        if row is None:
            raise PartsongError(f"no piece is called {title!r}")
        return Piece(*row)

    def lend(self, title: str, copy: int, singer: str, today: date) -> Loan:
        piece = self.piece(title)
        if not 1 <= copy <= piece.copies:
            raise PartsongError(f"{piece.title} has the copies 1 to {piece.copies}, not {copy}")
        try:
            with self.connection:
                self.connection.execute(
                    "INSERT INTO loan (title, copy, singer, since) VALUES (?, ?, ?, ?)",
                    (piece.title, copy, singer, today.isoformat()),
                )
        except sqlite3.IntegrityError as error:
            (holder,) = [one.singer for one in self.loans() if (one.title, one.copy) == (piece.title, copy)]
            raise PartsongError(f"copy {copy} of {piece.title} is with {holder}") from error
        return Loan(piece.title, copy, singer, today)

    def give_back(self, title: str, copy: int, today: date) -> None:
        with self.connection:
            done = self.connection.execute(
                "UPDATE loan SET back = ? WHERE title = ? AND copy = ? AND back IS NULL",
                (today.isoformat(), title, copy),
            )
        if done.rowcount == 0:
            raise PartsongError(f"copy {copy} of {title} is not lent")

    def loans(self) -> list[Loan]:
        rows = self.connection.execute(
            "SELECT title, copy, singer, since FROM loan WHERE back IS NULL ORDER BY since, title, copy"
        )
        return [Loan(title, copy, singer, date.fromisoformat(since)) for title, copy, singer, since in rows]


@contextmanager
def opened(path: Path) -> Iterator[Store]:
    try:
        connection = sqlite3.connect(path, timeout=10)
    except sqlite3.OperationalError as error:
        raise PartsongError(f"{path}: {error}") from error
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.executescript(SCHEMA)
        yield Store(connection)
    except sqlite3.DatabaseError as error:
        raise PartsongError(f"{path}: {error}") from error
    finally:
        connection.close()
