"""The clock: durable timers. It has nothing to decide; a timer is an effect whose outcome comes when it is due."""

from typing import Final

from pmagent.actors.core.area import Area

AREA: Final = Area(
    name="clock", families=("timer",), contracts=("pmagent.contracts.clock",), lines="pmagent.actors.clock.lines:LINES",
    simulated="pmagent.replay.areas.kernel:clock",
)
