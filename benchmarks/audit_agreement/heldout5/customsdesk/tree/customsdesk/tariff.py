"""The tariff in SQLite with full-text search."""

from __future__ import annotations

import csv
import os
import re
import sqlite3
import sys
from decimal import Decimal
from pathlib import Path

from .records import Candidate


def home() -> Path:
    folder = Path(os.environ.get("CUSTOMSDESK_HOME", Path.home() / ".customsdesk"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def connect() -> sqlite3.Connection:
    connection = sqlite3.connect(home() / "tariff.db", timeout=10)
    connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS tariff USING fts5(code UNINDEXED, text, duty UNINDEXED)")
    return connection


def load(path: Path) -> int:
    connection = connect()
    with connection, path.open(encoding="utf-8", newline="") as file:
        rows = [Candidate.model_validate(row) for row in csv.DictReader(file)]
        connection.execute("DELETE FROM tariff")
        connection.executemany(
            "INSERT INTO tariff VALUES (?, ?, ?)", [(one.code, one.text, str(one.duty)) for one in rows]
        )
    connection.close()
    return len(rows)


def candidates(text: str, most: int = 12) -> list[Candidate]:
    """The tariff numbers whose texts share words with a position."""
    words = re.findall(r"\w{3,}", text)[:20]
    if not words:
        return []
    connection = connect()
    rows = connection.execute(
        "SELECT code, text, duty FROM tariff WHERE tariff MATCH ? ORDER BY rank LIMIT ?",
        (" OR ".join(f'"{word}"' for word in words), most),
    ).fetchall()
    connection.close()
    return [Candidate(code=code, text=found, duty=Decimal(duty)) for code, found, duty in rows]


def duty_of(code: str) -> Decimal | None:
    connection = connect()
    row = connection.execute("SELECT duty FROM tariff WHERE code = ?", (code,)).fetchone()
    connection.close()
    return Decimal(row[0]) if row else None


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "load":
        sys.exit("usage: python -m customsdesk.tariff load CSV")
    print(f"{load(Path(sys.argv[2]))} tariff numbers")
