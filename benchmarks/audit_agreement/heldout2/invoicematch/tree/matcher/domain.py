"""Values. No I/O in this module."""
from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal


@dataclass(frozen=True, slots=True)
class Line:
    article: str
    quantity: Decimal
    price: Decimal


@dataclass(frozen=True, slots=True)
class Order:
    number: str
    supplier: str
    lines: tuple[Line, ...]
    received: tuple[tuple[str, Decimal], ...]


@dataclass(frozen=True, slots=True)
class Difference:
    article: str
    kind: Literal["not ordered", "not received", "price"]
    cents: int


@dataclass(frozen=True, slots=True)
class Outcome:
    number: str
    state: Literal["posted", "rejected"]
    reason: str
    differences: tuple[Difference, ...] = ()


def cents(amount: Decimal) -> int:
    return int((amount * 100).to_integral_value())


def compare(invoiced: list[Line], order: Order) -> tuple[Difference, ...]:
    """Three-way match. Cents are always what we would pay too much."""
    ordered = {line.article: line for line in order.lines}
    received = dict(order.received)
    found: list[Difference] = []
    for line in invoiced:
        ours = ordered.get(line.article)
        if ours is None:
            found.append(Difference(line.article, "not ordered", cents(line.quantity * line.price)))
            continue
        missing = line.quantity - received.get(line.article, Decimal(0))
        if missing > 0:
            found.append(Difference(line.article, "not received", cents(missing * line.price)))
        dearer = line.price - ours.price
        if dearer > 0:
            found.append(Difference(line.article, "price", cents(dearer * line.quantity)))
    return tuple(found)
