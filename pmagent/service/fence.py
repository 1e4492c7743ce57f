"""A process that kills another one if anything of it runs when its lease ends: also where that one is stopped.

It imports nothing of ours. Its arguments are two descriptors: of memory that both share, and of the other process.
"""

from __future__ import annotations

import mmap
import select
import signal
import sys
import time
from typing import Final

ENDS: Final = 0
"""The cell that holds when the lease ends, on CLOCK_BOOTTIME in ns."""

RUNS: Final = 1
"""The cell that says whether anything runs that must have ended by then."""

LOOK_MS: Final = 20
"""So often it looks: a lease that is live when something starts has a tenth of its length left."""


def main(shared: int, process: int) -> None:
    """Look until the other process has ended."""
    cells = memoryview(mmap.mmap(shared, mmap.PAGESIZE, prot=mmap.PROT_READ)).cast("q")
    ended = select.poll()
    ended.register(process, select.POLLIN)
    while not ended.poll(LOOK_MS):
        if cells[RUNS] and time.clock_gettime_ns(time.CLOCK_BOOTTIME) >= cells[ENDS]:
            signal.pidfd_send_signal(process, signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
