"""The clock: durable timers. It has nothing to decide; a timer is an effect whose outcome comes when it is due."""

from typing import Final

from actors.area import Area

AREA: Final = Area(
    name="clock",
    families=("timer",),
    contracts=("contracts.clock",),
    lines="actors.clock.lines:LINES",
    simulated="replay.simulation.kernel:clock",
)
