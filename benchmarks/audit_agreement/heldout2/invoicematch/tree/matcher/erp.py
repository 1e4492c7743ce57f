"""The ERP's tables, as far as we need them."""
from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal

from .domain import Line, Order


class AlreadyPosted(Exception):
    pass


@contextmanager
def erp() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(os.environ["ERP_DB"], timeout=20)) as db:
        yield db


def order(number: str) -> Order | None:
    with erp() as db:
        head = db.execute("select number, supplier from orders where number = ?", (number,)).fetchone()
        if head is None:
            return None
        rows = db.execute("select article, quantity, price from order_lines where number = ?", (number,)).fetchall()
        got = db.execute("select article, sum(quantity) from receipts where number = ? group by article", (number,))
        received = tuple((article, Decimal(str(quantity))) for article, quantity in got)
    lines = tuple(Line(article, Decimal(str(quantity)), Decimal(str(price))) for article, quantity, price in rows)
    return Order(*head, lines, received)


def post(invoice: str, supplier: str, total: Decimal, why: str) -> None:
    """Once, whatever happens: the pair of supplier and number is the table's key."""
    with erp() as db, db:
        try:
            db.execute("insert into postings (supplier, invoice, total, why) values (?, ?, ?, ?)",
                       (supplier, invoice, str(total), why))
        except sqlite3.IntegrityError as error:
            raise AlreadyPosted(f"invoice {invoice} of {supplier} was posted before") from error
