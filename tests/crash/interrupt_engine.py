"""A command in whose first reaction to TYPE the engine hangs: ``python interrupt_engine.py TYPE WORKSPACE COMMAND…``.

It says "in" when it hangs there, and "heard" for each interrupt before it does what an interrupt does; two end it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from pmagent.actors.core.ledger import Cancel, EffectLedger
from pmagent.cli.app import run
from pmagent.events.event import Event

book = EffectLedger.book


def hang(self: EffectLedger, event: Event) -> tuple[Sequence[Event], Sequence[Cancel]]:
    """Book it; an event of the type only after a time that no test waits for."""
    if event.type == sys.argv[1]:
        handler: Any = signal.getsignal(signal.SIGINT)

        def heard(*arguments: object) -> None:
            os.write(1, b"heard\n")
            handler(*arguments)

        signal.signal(signal.SIGINT, heard)
        os.write(1, b"in\n")
        for _ in range(12_000):  # an interrupt between Python's look for one and the sleep ends no sleep
            time.sleep(0.05)
    return book(self, event)


signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started this may ignore it
EffectLedger.book = hang  # type: ignore[method-assign]
sys.exit(run(["--workspace", sys.argv[2], *sys.argv[3:]]))
