"""The book itself: bottles, and a line for each change."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

from .amounts import Amount
from .hazards import Group, cas_valid, clash

SCHEMA = """
CREATE TABLE IF NOT EXISTS bottles (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, cas TEXT, kind TEXT NOT NULL, nanos INTEGER NOT NULL CHECK (nanos >= 0),
    place TEXT NOT NULL, expires TEXT, hazard TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS changes (
    at TEXT NOT NULL, bottle INTEGER NOT NULL REFERENCES bottles(id), who TEXT NOT NULL, what TEXT NOT NULL
);
"""


class BookError(Exception):
    """A request that the book refuses; the text is for the user."""


@dataclass(frozen=True)
class Bottle:
    name: str
    amount: Amount
    place: str
    cas: str | None = None
    expires: date | None = None
    hazard: Group = Group.NONE
    id: int | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise BookError("a bottle needs a name")
        if self.cas and not cas_valid(self.cas):
            raise BookError(f"CAS number {self.cas} has a wrong check digit")

    @property
    def shelf(self) -> str:
        return self.place.split("/")[0]


class Book:
    def __init__(self, path: Path) -> None:
        try:
            self.db = sqlite3.connect(path, timeout=15)
            self.db.row_factory = sqlite3.Row
            self.db.executescript(SCHEMA)
        except sqlite3.Error as error:
            raise BookError(f"{path}: {error}") from error

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """One transaction that locks the book from its start, since several benches write to it."""
        try:
            self.db.execute("BEGIN IMMEDIATE")
            yield self.db
            self.db.commit()
        except sqlite3.OperationalError as error:
            self.db.rollback()
            raise BookError(f"the book is in use: {error}") from error
        except BaseException:
            self.db.rollback()
            raise

    def _log(self, db: sqlite3.Connection, bottle: int, who: str, what: str) -> None:
        db.execute("INSERT INTO changes VALUES (?, ?, ?, ?)",
                   (datetime.now(timezone.utc).isoformat(timespec="seconds"), bottle, who, what))

    def add(self, bottles: Iterable[Bottle], who: str) -> list[int]:
        """All bottles or none."""
        ids = []
        with self.change() as db:
            for one in bottles:
                done = db.execute(
                    "INSERT INTO bottles (name, cas, kind, nanos, place, expires, hazard) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (one.name, one.cas, one.amount.kind, one.amount.nanos, one.place,
                     one.expires and one.expires.isoformat(), one.hazard.value),
                )
                assert done.lastrowid is not None
                self._log(db, done.lastrowid, who, f"added {one.amount} at {one.place}")
                ids.append(done.lastrowid)
        return ids

    def take(self, id: int, amount: Amount, who: str) -> Bottle:
        with self.change() as db:
            left = self._get(id).amount - amount
            db.execute("UPDATE bottles SET nanos = ? WHERE id = ?", (left.nanos, id))
            self._log(db, id, who, f"took {amount}, {left} left")
        return self._get(id)

    def move(self, id: int, place: str, who: str) -> Bottle:
        with self.change() as db:
            old = self._get(id).place
            db.execute("UPDATE bottles SET place = ? WHERE id = ?", (place, id))
            self._log(db, id, who, f"moved from {old} to {place}")
        return self._get(id)

    def _get(self, id: int) -> Bottle:
        row = self.db.execute("SELECT * FROM bottles WHERE id = ?", (id,)).fetchone()
        if row is None:
            raise BookError(f"there is no bottle {id}")
        return self._bottle(row)

    @staticmethod
    def _bottle(row: sqlite3.Row) -> Bottle:
        return Bottle(id=row["id"], name=row["name"], cas=row["cas"], amount=Amount(row["kind"], row["nanos"]),
                      place=row["place"], hazard=Group(row["hazard"]),
                      expires=date.fromisoformat(row["expires"]) if row["expires"] else None)

    def find(self, words: str) -> list[Bottle]:
        like = f"%{words}%"
        rows = self.db.execute("SELECT * FROM bottles WHERE (name LIKE ? OR cas LIKE ?) AND nanos > 0 ORDER BY name",
                               (like, like))
        return [self._bottle(row) for row in rows]

    def due(self, today: date, days: int) -> list[Bottle]:
        until = (today + timedelta(days=days)).isoformat()
        rows = self.db.execute("SELECT * FROM bottles WHERE expires <= ? AND nanos > 0 ORDER BY expires", (until,))
        return [self._bottle(row) for row in rows]

    def clashes(self) -> list[tuple[Bottle, Bottle]]:
        """Pairs of bottles on one shelf that must be apart."""
        bottles = self.find("")
        return [(one, other) for place, one in enumerate(bottles) for other in bottles[place + 1:]
                if one.shelf == other.shelf and clash(one.hazard, other.hazard)]

    def changes(self, id: int) -> list[tuple[str, str, str]]:
        self._get(id)
        return [tuple(row) for row in self.db.execute(
            "SELECT at, who, what FROM changes WHERE bottle = ? ORDER BY rowid", (id,))]
