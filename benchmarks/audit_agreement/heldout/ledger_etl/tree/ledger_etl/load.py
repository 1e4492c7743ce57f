import sqlite3
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from .rows import Booking

SCHEMA = """
create table if not exists files (digest text primary key, name text not null, loaded_at text default current_timestamp);
create table if not exists bookings (
    reference text primary key, booked text not null, amount text not null, currency text not null, text text not null,
    file text not null references files (digest)
);
"""


@contextmanager
def ledger(path: Path) -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(path, timeout=30)
    try:
        db.executescript(SCHEMA)
        yield db
    finally:
        db.close()


def known(db: sqlite3.Connection, digest: str) -> bool:
    return db.execute("select 1 from files where digest = ?", (digest,)).fetchone() is not None


def load(db: sqlite3.Connection, digest: str, name: str, bookings: Iterable[Booking]) -> int:
    """All bookings of a file, or none: one transaction."""
    count = 0
    with db:
        db.execute("insert into files (digest, name) values (?, ?)", (digest, name))
        for b in bookings:
            done = db.execute(
                "insert into bookings values (?, ?, ?, ?, ?, ?) on conflict (reference) do nothing",
                (b.reference, b.booked.isoformat(), str(b.amount), b.currency, b.text, digest),
            )
            count += done.rowcount
    return count
