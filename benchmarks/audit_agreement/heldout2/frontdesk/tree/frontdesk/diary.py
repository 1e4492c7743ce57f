"""The practice's diary in SQLite."""

import os
import sqlite3
from contextlib import closing, contextmanager
from datetime import datetime, timedelta

from .forms import Slot, Urgency

WITHIN = {Urgency.today: timedelta(days=1), Urgency.week: timedelta(days=7), Urgency.routine: timedelta(days=42)}


class SlotTaken(Exception):
    pass


@contextmanager
def opened():
    with closing(sqlite3.connect(os.environ.get("FRONTDESK_DB", "practice.sqlite"), timeout=10)) as db:
        db.execute("create table if not exists slots (id integer primary key, starts text not null, patient text)")
        yield db


def free_slot(urgency: Urgency, now: datetime) -> Slot | None:
    latest = now + WITHIN[urgency]
    with opened() as db:
        row = db.execute(
            "select id, starts from slots where patient is null and starts between ? and ? order by starts limit 1",
            (now.isoformat(), latest.isoformat()),
        ).fetchone()
    return Slot(id=row[0], starts=row[1]) if row else None


def book(slot: Slot, patient: str) -> None:
    with opened() as db, db:
        done = db.execute("update slots set patient = ? where id = ? and patient is null", (patient, slot.id))
        if done.rowcount != 1:
            raise SlotTaken(f"slot {slot.id} is gone")
