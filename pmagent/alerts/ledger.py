"""The messages that each channel has had (``.pmagent/data/notifications.json``): a restart neither forgets nor floods.

It follows from no event and decides nothing; without it each channel begins with what comes from then on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec

from pmagent.events.atomic import write_atomic
from pmagent.workspace.layout import Layout

FILE: Final = "notifications.json"


class Told(msgspec.Struct, forbid_unknown_fields=True):
    """One channel. ``begin``: alerts that opened up to this position are none of its business; ``done``: the positions
    at which those opened that it was told of, or that were given up, while they are open. ``error``: why the last try
    failed, since ``error_at``; "" when it succeeded."""

    begin: int
    done: list[int] = []
    sent: int = 0
    given_up: int = 0
    error: str = ""
    error_at: str = ""
    sent_at: str = ""


class Ledger(msgspec.Struct, forbid_unknown_fields=True):
    """Of the log ``log_id``: channel -> what it was told."""

    log_id: str
    channels: dict[str, Told] = {}
    version: Literal[1] = 1


def path_of(layout: Layout) -> Path:
    """Where it lies."""
    return layout.home / FILE


def read(layout: Layout, log_id: str = "") -> Ledger:
    """The ledger; an empty one where there is none, it is of another log than ``log_id``, or not understood."""
    try:
        found = msgspec.json.decode(path_of(layout).read_bytes(), type=Ledger)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Ledger(log_id)
    return found if log_id in ("", found.log_id) else Ledger(log_id)


def write(layout: Layout, ledger: Ledger) -> None:
    """Make it durable. Raises OSError."""
    write_atomic(path_of(layout), msgspec.json.encode(ledger), 0o600)


def troubles(layout: Layout) -> list[str]:
    """A line for each channel whose last try failed, or that has given something up."""
    found = []
    for name, told in read(layout).channels.items():
        parts = [f"{told.error}, since {told.error_at}"] if told.error else []
        parts += [f"{told.given_up} not delivered"] if told.given_up else []
        found += [f"{name}: {'; '.join(parts)}"] if parts else []
    return found
