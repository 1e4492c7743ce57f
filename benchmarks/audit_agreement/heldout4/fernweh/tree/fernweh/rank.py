"""The order of options, by rules that a customer can be told."""

from __future__ import annotations

from .state import Connection, Wish

SHOWN = 4
HOUR = 12.0
"""Euros that an hour on the way counts."""
CHANGE = 8.0
"""Euros that a change counts."""


def allowed(connection: Connection, wish: Wish) -> bool:
    return (
        connection.departs.hour >= wish.after_hour
        and (wish.night_trains or not connection.night)
        and (wish.budget is None or connection.price * wish.travellers <= wish.budget)
    )


def cost(connection: Connection) -> float:
    hours = (connection.arrives - connection.departs).total_seconds() / 3600
    return connection.price + hours * HOUR + connection.changes * CHANGE


def best(found: list[Connection], wish: Wish) -> list[Connection]:
    return sorted((one for one in found if allowed(one, wish)), key=cost)[:SHOWN]
