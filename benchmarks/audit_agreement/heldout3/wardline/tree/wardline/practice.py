"""The practice's database."""
import os
import sqlite3
from contextlib import closing
from pathlib import Path

HOME = Path(os.environ.get("WARDLINE_HOME", "."))
SCHEMA = """
create table if not exists appointment (patient text, day text, reason text);
create table if not exists medication (patient text, name text, until text);
create table if not exists outbox (message text primary key, patient text, reply text, nurse text, at text default current_timestamp);
create table if not exists urgent (message text primary key, patient text, flags text, at text default current_timestamp);
"""


def connect() -> sqlite3.Connection:
    connection = sqlite3.connect(HOME / "practice.sqlite", timeout=5)
    connection.executescript(SCHEMA)
    return connection


def appointments(patient: str) -> list[str]:
    with closing(connect()) as db:
        rows = db.execute("select day, reason from appointment where patient = ? order by day desc limit 5", (patient,))
        return [f"appointment {day}: {reason}" for day, reason in rows]


def medication(patient: str) -> list[str]:
    with closing(connect()) as db:
        rows = db.execute("select name, until from medication where patient = ? order by name", (patient,))
        return [f"takes {name} until {until}" for name, until in rows]


def mark_urgent(message: str, patient: str, flags: list[str]) -> None:
    with closing(connect()) as db, db:
        db.execute("insert or ignore into urgent (message, patient, flags) values (?, ?, ?)", (message, patient, ", ".join(flags)))


def send(message: str, patient: str, reply: str, nurse: str) -> bool:
    """False if a reply to this message was sent before."""
    with closing(connect()) as db, db:
        done = db.execute("insert or ignore into outbox (message, patient, reply, nurse) values (?, ?, ?, ?)", (message, patient, reply, nurse))
        return done.rowcount == 1
