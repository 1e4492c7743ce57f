"""The history in SQLite."""
from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SCHEMA = """
create table if not exists sample (
    target text not null, at real not null, up integer not null, millis real not null, note text not null default ''
);
create index if not exists sample_of_target on sample (target, at);
"""


@dataclass(frozen=True)
class Sample:
    target: str
    at: float
    up: bool
    millis: float
    note: str = ""


@dataclass(frozen=True)
class Summary:
    target: str
    up: bool
    since: float
    uptime: float
    millis: float


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, timeout=10)
    try:
        connection.executescript(SCHEMA)
        yield connection
    finally:
        connection.close()


def add(connection: sqlite3.Connection, samples: Iterable[Sample]) -> None:
    with connection:
        connection.executemany(
            "insert into sample (target, at, up, millis, note) values (?, ?, ?, ?, ?)",
            [(one.target, one.at, int(one.up), one.millis, one.note) for one in samples],
        )


def prune(connection: sqlite3.Connection, before: float) -> int:
    with connection:
        return connection.execute("delete from sample where at < ?", (before,)).rowcount


def summary(connection: sqlite3.Connection, target: str, after: float) -> Summary | None:
    """Over the samples after a time; None if there are none."""
    row = connection.execute(
        "select avg(up), avg(case when up then millis end) from sample where target = ? and at >= ?", (target, after),
    ).fetchone()
    last = connection.execute(
        "select up, at from sample where target = ? order by at desc limit 1", (target,),
    ).fetchone()
    if last is None or row[0] is None:
        return None
    change = connection.execute(
        "select max(at) from sample where target = ? and up <> ?", (target, last[0]),
    ).fetchone()[0]
    first = connection.execute(
        "select min(at) from sample where target = ? and at > ?", (target, change or 0.0),
    ).fetchone()[0]
    return Summary(target, bool(last[0]), first, row[0], row[1] or 0.0)
