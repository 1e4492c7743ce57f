"""The faults of a world of machines, and what must have followed from them somewhere."""

from __future__ import annotations

from typing import Final

from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.faults import Faults

TROUBLES: Final[dict[str, float]] = {
    "database: crashes and starts again": 0.1,
    "database: primary lost": 0.1,
    "database: primary frozen, another promoted": 0.06,
    "database: a standby is down": 0.1,
    "database: a standby lags": 0.15,
    "database: a commit's wait is cancelled": 0.15,
    "database: a commit's wait is terminated": 0.1,
    "database: standby names emptied": 0.04,
    "database: promoted by hand": 0.04,
    "network: daemon cut off from the primary": 0.1,
    "network: daemon cut off from everything": 0.1,
    "network: worker cut off from everything": 0.1,
    "process: daemon killed": 0.1,
    "process: daemon stopped": 0.12,
    "process: daemon asked to end": 0.06,
    "process: worker killed": 0.06,
    "process: worker stopped": 0.1,
    "host: power lost": 0.06,
    "host: suspended": 0.06,
    "clock: set wrong": 0.1,
    "effects: paused": 0.06,
    "effects: cancelled": 0.2,
}
"""Each fault that may happen every few seconds -> its chance, at its most frequent."""

CHANCES: Final[dict[str, float]] = TROUBLES | {
    "network: request lost": 0.04,
    "network: answer lost": 0.04,
    "network: answer late": 0.03,
    "network: answer doubled": 0.03,
    "process: stopped before a check of the lease": 0.03,
    "process: stopped after a check of the lease": 0.03,
    "process: stopped between two statements": 0.01,
    "clock: wrong rate": 0.5,
    "box: killed": 0.05,
}

CONSEQUENCES: Final = (
    "taken over: released", "taken over: silent", "taken over: its session ended",
    "take-over: waits for the old lease", "take-over: its answer was lost", "two take-overs at once",
    "acknowledged after the take-over", "a start is held: no live lease", "a start is refused: its lease is over",
    "an attended effect ends with it", "an effect ends with the lease", "the lease is live again",
    "ended from outside at the lease's end", "deposed", "released",
    "append in doubt: it is there", "append in doubt: sent again", "append refused by the settings",
    "acknowledged with a warning",
    "claim in doubt: it was made", "claim in doubt: it was not", "claim known too late",
    "attempt adopted", "attempt offered anew", "attempt held", "attempt withdrawn", "attempt stopped elsewhere",
    "attempt lost",
    "attempt done", "result refused", "result sent again", "elsewhere: ended from outside at the lease's end",
    "database behind what is known", "events lost", "follower begins anew",
)
"""Counted too, to prove that they occurred."""


def machine_faults(chance: Chance, only: frozenset[str] | None) -> Faults:
    """The faults of one run."""
    return Faults(chance, "machines", only, CHANCES, CONSEQUENCES)
