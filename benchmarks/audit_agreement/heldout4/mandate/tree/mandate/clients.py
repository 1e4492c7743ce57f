"""The clinic's parties."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing


class Unavailable(Exception):
    """The database cannot be asked, so no conflict can be excluded."""


def connect() -> sqlite3.Connection:
    return sqlite3.connect(os.environ.get("MANDATE_DB", "clinic.db"), timeout=10, check_same_thread=False)


def represented(name: str) -> list[str]:
    """Cases in which the clinic stands on the side of this name."""
    try:
        with closing(connect()) as db:
            rows = db.execute("SELECT reference FROM parties WHERE lower(name) = lower(?) AND role = 'client'", (name,))
            return [reference for (reference,) in rows]
    except sqlite3.Error as error:
        raise Unavailable(str(error)) from error


def precedents(area: str) -> list[str]:
    try:
        with closing(connect()) as db:
            rows = db.execute("SELECT summary FROM precedents WHERE area = ? ORDER BY decided DESC LIMIT 3", (area,))
            return [summary for (summary,) in rows]
    except sqlite3.Error as error:
        raise Unavailable(str(error)) from error
