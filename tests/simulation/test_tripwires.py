"""The tripwires of a simulated world: they are seen only where they are hit (``test_catches.py`` hits them)."""

from __future__ import annotations

import gc
import time
import weakref

from pmagent.replay.simulation.tripwires import tripwires


class Held:
    """Something that a caller holds."""


def _calls() -> weakref.ref[Held]:
    held = Held()
    time.monotonic()
    return weakref.ref(held)


def test_a_call_that_goes_through_keeps_nothing_of_its_callers() -> None:
    was_on = gc.isenabled()
    gc.disable()
    try:
        with tripwires():
            held = _calls()
        assert held() is None
    finally:
        if was_on:
            gc.enable()
