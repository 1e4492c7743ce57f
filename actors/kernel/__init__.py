"""The kernel watcher: reads the kernel surfaces and decides the mode (docs/design.md §12.1, §12.2)."""

from typing import Final

from actors.area import Area

AREA: Final = Area(
    name="kernel",
    families=("kernel",),
    contracts=("contracts.kernel",),
    actors={"kernel": "actors.kernel.actor:KernelWatcher"},
    lines="actors.kernel.lines:LINES",
    simulated="replay.simulation.kernel:part",
    outside=("reader",),
)
