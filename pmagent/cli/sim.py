"""``pmagent sim``: run seeds of the simulation."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import click
import msgspec

from pmagent.cli.frame import App, command
from pmagent.cli.output import Output, Styled
from pmagent.exitcodes import Exit
from pmagent.when import spoken

if TYPE_CHECKING:
    from collections.abc import Callable

    from pmagent.replay.simulation.runner import Rests, SimResult, SimSummary

_PROGRESS_SECONDS = 2.0


@command("pmagent sim --seed 7", "pmagent sim --seed 1 --count 2 --twice", "pmagent sim --part machines --seed 1")
@click.option("--seed", type=click.IntRange(min=0), required=True, metavar="N", help="The first seed.")
@click.option("--count", type=click.IntRange(min=1), default=1, show_default=True, metavar="M", help="How many seeds.")
@click.option(
    "--part", type=click.Choice(["engine", "machines"]), default="engine", show_default=True,
    help="One daemon with its engine, or several machines that share a log.",
)
@click.option("--twice", is_flag=True, help="Run each seed twice; both histories must be the same.")
def sim(app: App, seed: int, count: int, part: str, twice: bool, format: str) -> int:
    """Run the real engine, actors and segment store in a world of one thread, one virtual clock and one seed.

    Disk, surfaces, effects and operator are simulated; faults strike, then stop, and everything must come to an end.
    With --part machines: the real leases, claims and scheduler of daemons and workers around a replicated database.
    Exit 0 when every invariant held in every seed; 1 when one did not (or, with --twice, two histories of a seed
    differ): the seed that reproduces it is named. See docs/simulation.md."""
    from pmagent import __version__
    from pmagent.projections.core.documents import Documents
    from pmagent.projections.registry import all_projections
    from pmagent.replay.machines.runner import simulate
    from pmagent.replay.simulation.runner import run_seeds

    histories: dict[int, str] = {}
    rests: Rests = {}
    unequal: list[str] = []
    begun = time.perf_counter()

    def runs(report: Callable[[SimResult], None]) -> SimSummary:
        return run_seeds(
            seed, count, documents=lambda: Documents(all_projections()), version=__version__, report=report,
            rests=rests if twice else None, one=partial(simulate, version=__version__) if part == "machines" else None,
        )

    def first(result: SimResult) -> None:
        histories[result.seed] = result.history
        progress.reported(len(histories))

    def second(result: SimResult) -> None:
        if histories.get(result.seed) != result.history:
            unequal.append(f"seed {result.seed}: its second run has another history; it depends on more than the seed")

    progress = _Progress(app.output, count)
    summary = runs(first)
    if twice:
        again = runs(second).failures
        unequal += [f"in its second run only, {failure}" for failure in again if failure not in summary.failures]
        unequal += [f"in its first run only, {failure}" for failure in summary.failures if failure not in again]
    failures = [*summary.failures, *unequal]
    seconds = time.perf_counter() - begun
    if format == "json":
        document = {"ok": not failures, **msgspec.to_builtins(summary), "failures": failures}
        app.output.document(document | {"histories": {str(number): found for number, found in histories.items()}})
    else:
        _screen(app.output, summary, failures, histories, seconds)
    return Exit.NO if failures else Exit.DONE


class _Progress:
    """Says now and then, on stderr, how far it is."""

    def __init__(self, output: Output, count: int) -> None:
        self._output = output
        self._count = count
        self._last = time.monotonic()

    def reported(self, done: int) -> None:
        """So many seeds are done."""
        if time.monotonic() - self._last >= _PROGRESS_SECONDS and done < self._count:
            self._last = time.monotonic()
            self._output.note(f"{done} of {self._count} seeds")


def _screen(
    output: Output, summary: SimSummary, failures: list[str], histories: dict[int, str], seconds: float
) -> None:
    rate = f"{(summary.count + len(summary.failures)) / seconds:,.1f} seeds/s" if seconds else ""
    amount = f"{summary.count} of {summary.count + len(summary.failures)} seeds from {summary.first} on"
    verdict = Styled("✗ failed", "red") if failures else Styled("✓ held", "green")
    output.line(verdict, f": {amount}, in {spoken(seconds)} ({rate})")
    output.line(f"  events     {summary.events:,}, in {summary.steps:,} steps and {summary.starts:,} starts")
    output.line(f"  simulated  {spoken(summary.seconds)}")
    if len(histories) == 1:
        output.line(f"  history    {next(iter(histories.values()))}")
    if summary.struck:
        output.line(Styled("faults that struck, and what followed", "cyan"))
    for name, number in summary.struck.items():
        output.line(f"  {number:>10,}  {name}")
    for failure in failures:
        output.line(Styled("✗ ", "red"), failure)
