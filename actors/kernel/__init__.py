"""The kernel watcher: reads the kernel surfaces and decides the mode (docs/design.md §12.1, §12.2)."""

from typing import Final

from pmagent.actors.core.area import Area

AREA: Final = Area(
    name="kernel", families=("kernel",), contracts=("pmagent.contracts.kernel",),
    actors={"kernel": "pmagent.actors.kernel.actor:KernelWatcher"}, lines="pmagent.actors.kernel.lines:LINES",
    alerts="pmagent.actors.kernel.lines:ALERTS", simulated="pmagent.replay.areas.kernel:part", impure=("reader",),
    words=(
        "pmagent.actors.kernel.surfaces:WORDS", "pmagent.contracts.kernel:Mode",
        "pmagent.contracts.kernel:SurfaceStatus",
    ),
)  # fmt: skip
