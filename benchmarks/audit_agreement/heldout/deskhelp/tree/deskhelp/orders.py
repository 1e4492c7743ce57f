"""The shop's orders, read-only except for refunds."""
import sqlite3
from contextlib import closing
from dataclasses import dataclass

from .settings import settings


class UnknownOrder(LookupError):
    pass


@dataclass(frozen=True)
class Order:
    number: int
    customer: str
    total: float
    status: str


def _connect() -> sqlite3.Connection:
    db = sqlite3.connect(settings.db, timeout=5)
    db.execute("create table if not exists orders (number integer primary key, customer text, total real, status text)")
    return db


def find(number: int) -> Order:
    with closing(_connect()) as db:
        row = db.execute("select number, customer, total, status from orders where number = ?", (number,)).fetchone()
    if row is None:
        raise UnknownOrder(f"there is no order {number}")
    return Order(*row)


def refund(number: int) -> None:
    with closing(_connect()) as db, db:
        changed = db.execute("update orders set status = 'refunded' where number = ? and status != 'refunded'", (number,))
        if changed.rowcount != 1:
            raise UnknownOrder(f"order {number} cannot be refunded")
