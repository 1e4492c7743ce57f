from __future__ import annotations

import csv
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from .model import Checked

TABLE = """
CREATE TABLE IF NOT EXISTS invoices (
    iban TEXT, number TEXT, issued TEXT, net TEXT, vat TEXT, total TEXT, supplier TEXT, file TEXT, doubts TEXT,
    PRIMARY KEY (iban, number)
)"""


class Ledger:
    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, timeout=10)
        self.db.execute(TABLE)

    def knows(self, iban: str, number: str) -> bool:
        row = self.db.execute("SELECT 1 FROM invoices WHERE iban = ? AND number = ?", (iban, number)).fetchone()
        return row is not None

    def add(self, one: Checked) -> None:
        """An invoice that is there already stays as it is."""
        bill = one.invoice
        with self.db:
            self.db.execute(
                "INSERT OR IGNORE INTO invoices VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (bill.iban, bill.number, bill.issued.isoformat(), str(bill.net), str(bill.vat), str(bill.total),
                 one.supplier, bill.file, "; ".join(one.doubts)),
            )

    def doubtful(self) -> list[tuple[str, str, str]]:
        return self.db.execute("SELECT number, supplier, doubts FROM invoices WHERE doubts != '' ORDER BY issued").fetchall()

    def accept(self, number: str) -> int:
        with self.db:
            return self.db.execute("UPDATE invoices SET doubts = '' WHERE number = ?", (number,)).rowcount

    def clear(self) -> list[tuple[str, ...]]:
        return self.db.execute(
            "SELECT issued, number, supplier, net, vat, total, iban, file FROM invoices WHERE doubts = '' ORDER BY issued, number"
        ).fetchall()


def write_table(rows: Iterable[tuple[str, ...]], target: Path) -> None:
    """In one step: the accountant never sees half a table."""
    draft = target.with_suffix(".tmp")
    with draft.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["date", "number", "supplier", "net", "vat", "total", "iban", "file"])
        writer.writerows(rows)
    os.replace(draft, target)
