"""Which jobs a list shows: the same that the console's pages of runs and of audits offer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click
import msgspec

from pmagent.jobs.kinds import Kind

COUNT_MAX: Final = 10_000

F = TypeVar("F", bound=Callable[..., Any])


class Selected(msgspec.Struct, frozen=True):
    """``count`` jobs at most, in ``state``, about something with ``text`` in it, asked for before the position
    ``before``; None: any."""

    count: int
    state: str | None
    text: str | None
    before: int | None

    @property
    def filters(self) -> dict[str, Any]:
        """The arguments of ``jobs.catalogue.Catalogue.listed`` beside their number."""
        return {"state": self.state or "", "text": self.text or "", "before": self.before or 0}

    @property
    def narrows(self) -> bool:
        """Whether it leaves any job out but for their number."""
        return any(self.filters.values())

    def only_of_lists(self) -> None:
        """Raises UsageError: something of it was given though one job is named."""
        if self.narrows:
            raise click.UsageError("--state, --text and --before choose from the list: leave them out, or the id")


def selecting(kind: Kind) -> Callable[[F], F]:
    """The options of a list of these jobs: ``count``, ``state``, ``text``, ``before``."""
    options = [
        click.option("-n", "--lines", "count", type=click.IntRange(1, COUNT_MAX), default=20, show_default=True,
                     metavar="N", help="The last N."),
        click.option("--state", type=click.Choice(kind.states), help=f"Only {kind.word}s in this state."),
        click.option("--text", help="Only those about something with this text in it."),
        click.option("--before", type=click.IntRange(1), metavar="POSITION",
                     help="Only those asked for before this position."),
    ]  # fmt: skip

    def decorated(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated
