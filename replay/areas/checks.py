"""Configured checks in the simulation: what the operator asks for, and how runs of programs end; with faults."""

from __future__ import annotations

from typing import Final, get_args

from pmagent.contracts.checks import (
    CheckKind,
    CheckRan,
    CheckRequested,
    CheckRunRequested,
    CheckUnstarted,
    ConfiguredCheck,
)
from pmagent.events.event import Event
from pmagent.replay.simulation.performance import Performance, Performances, PerformerContext
from pmagent.replay.simulation.world import World

KINDS: Final[tuple[CheckKind, ...]] = get_args(CheckKind)


class Checks:
    """The operator's part that has to do with checks, and the performer of their runs."""

    def __init__(self, world: World, secret: str) -> None:
        self._world = world
        self._random = world.chance.stream("checks")
        self._secret = secret

    def demand(self, n: int) -> CheckRequested:
        """A request for a few checks; ``n`` tells it from all others."""
        random = self._random
        names = [f"check {number}" for number in range(random.randrange(1, 8))]
        if self._world.faults.strike("check: same name twice"):
            names.append(names[0])
        return CheckRequested(
            kind=random.choice(KINDS),
            checks=[ConfiguredCheck(name=name, argv=["make", name, f"--password={self._secret}"]) for name in names],
            seconds=random.choice((0.5, 5.0, 60.0)), reads=["/opt/tools"] if n % 2 else [],
        )

    def outcome(self, event: Event) -> CheckRan | CheckUnstarted:
        """How the run that ``event`` requests ends."""
        faults = self._world.faults
        asked: CheckRunRequested = event.data
        if faults.strike("check: not there"):
            text = f"there is no program {asked.argv[0]}: {self._secret}"
            return CheckUnstarted(request=event.position, text=text, mend="install it")
        killed = faults.strike("check: killed by a signal")
        fails = faults.strike("check: exits with a failure")
        return CheckRan(
            request=event.position, exit_code=None if killed else int(fails), signal=9 if killed else None,
            timed_out=faults.strike("check: takes too long"),
            duration_ms=int(self._world.chance.uniform("check: duration") * 1000),
            stdout="all is well\n" * 40_000 if faults.strike("check: floods") else f"token={self._secret}\n",
            stderr=f"what {asked.name} found: {self._secret}\n", cut=False,
            exceeded="it filled its disk" if faults.strike("check: exceeds a bound") else "", unenforced=["no cgroup"],
        )


def part(context: PerformerContext) -> Performances:
    """See ``Area.simulated``."""
    return {CheckRunRequested: Performance(Checks(context.world, context.secret).outcome)}
