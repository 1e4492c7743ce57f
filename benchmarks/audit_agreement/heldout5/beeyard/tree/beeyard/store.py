from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, Field

SCHEMA = """
CREATE TABLE IF NOT EXISTS reading (
    hive TEXT NOT NULL, at INTEGER NOT NULL, kilograms REAL NOT NULL, celsius REAL NOT NULL, PRIMARY KEY (hive, at)
);
CREATE TABLE IF NOT EXISTS sent (hive TEXT NOT NULL, kind TEXT NOT NULL, at INTEGER NOT NULL);
"""


class Reading(BaseModel):
    at: datetime
    kilograms: float = Field(ge=0, le=200)
    celsius: float = Field(ge=-40, le=60)


class Store:
    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, timeout=15)
        self.connection.executescript(SCHEMA)

    def add(self, hive: str, reading: Reading) -> None:
        with self.connection:
            self.connection.execute(
                "INSERT OR REPLACE INTO reading VALUES (?, ?, ?, ?)",
                (hive, int(reading.at.timestamp()), reading.kilograms, reading.celsius),
            )

    def since(self, hive: str, start: datetime) -> list[Reading]:
        rows = self.connection.execute(
            "SELECT at, kilograms, celsius FROM reading WHERE hive = ? AND at >= ? ORDER BY at",
            (hive, int(start.timestamp())),
        )
        return [Reading(at=datetime.fromtimestamp(at, UTC), kilograms=kg, celsius=c) for at, kg, c in rows]

    def recently_sent(self, hive: str, kind: str, now: datetime, within: timedelta) -> bool:
        row = self.connection.execute(
            "SELECT max(at) FROM sent WHERE hive = ? AND kind = ?", (hive, kind)
        ).fetchone()
        return row[0] is not None and now.timestamp() - row[0] < within.total_seconds()

    def mark_sent(self, hive: str, kind: str, now: datetime) -> None:
        with self.connection:
            self.connection.execute("INSERT INTO sent VALUES (?, ?, ?)", (hive, kind, int(now.timestamp())))

    def close(self) -> None:
        self.connection.close()
