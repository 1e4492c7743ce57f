"""The railway's interface: timetable and bookings."""

from __future__ import annotations

import os
from datetime import date

import httpx
from pydantic import TypeAdapter, ValidationError

from .state import Booking, Connection

CONNECTIONS = TypeAdapter(list[Connection])


class RailError(Exception):
    """The railway did not answer, or answered what cannot be understood."""


def client() -> httpx.Client:
    return httpx.Client(
        base_url=os.environ["FERNWEH_RAIL"],
        headers={"Authorization": f"Bearer {os.environ['FERNWEH_RAIL_KEY']}"},
        timeout=httpx.Timeout(20, connect=5),
    )


def search(origin: str, destination: str, day: date) -> list[Connection]:
    try:
        with client() as http:
            reply = http.get("/connections", params={"from": origin, "to": destination, "day": day.isoformat()})
            reply.raise_for_status()
            return CONNECTIONS.validate_json(reply.content)
    except (httpx.HTTPError, ValidationError) as error:
        raise RailError(f"no timetable for {day}: {error}") from error


def book(connection: Connection, travellers: int, number: str) -> Booking:
    """Books once: the railway knows a journey's number again, so a repeated call gives the same reference."""
    try:
        with client() as http:
            reply = http.post(
                "/bookings",
                json={"connection": connection.id, "travellers": travellers},
                headers={"Idempotency-Key": number},
            )
            reply.raise_for_status()
            return Booking(reference=reply.json()["reference"], connection=connection, travellers=travellers)
    except (httpx.HTTPError, ValidationError, KeyError, ValueError) as error:
        raise RailError(f"not booked: {error}") from error
