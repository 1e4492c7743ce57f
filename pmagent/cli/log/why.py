"""``pmagent log why``: why an event is there, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import click
import msgspec

from pmagent.clean import shorten, width
from pmagent.cli.frame import App, command
from pmagent.cli.log.lines import marker
from pmagent.cli.output import Output, Styled
from pmagent.events.event import StoredEvent
from pmagent.exitcodes import Exit
from pmagent.log.find import position_of
from pmagent.log.names import TaskNames
from pmagent.log.source import store_at
from pmagent.log.tracing import Tree, drawn, tree
from pmagent.when import seconds_between, spoken


@command("pmagent log why 4", reads=True)
@click.argument("event", metavar="POSITION|ID")
@click.option("--limit", type=click.IntRange(1, 100_000), default=200, show_default=True, help="Consequences at most.")
@click.option("--depth", type=click.IntRange(1, 1000), default=100, show_default=True, help="Levels of consequences.")
def why(app: App, event: str, limit: int, depth: int, format: str) -> int:
    """The causes of an event, from the first on, and the tree of its consequences, with times.

    Each line: position, time since the first cause, time since its own cause, summary."""
    store = store_at(app.workspace)
    with closing(store.reader()) as storage:
        found = tree(storage, position_of(storage, event), limit, depth)
        told = TaskNames(storage, store.blobs()).summary
        app.output.answer(format, _document(found), lambda: _draw(app.output, found, told))
    return Exit.DONE


def _draw(output: Output, found: Tree, told: Callable[[StoredEvent], str]) -> None:
    root, event = found.causes[0], found.causes[-1]
    times = {cause.position: cause.time for cause in found.causes}
    times |= {node.event.position: node.event.time for node in found.consequences}
    output.line(Styled(f"first cause {output.moment(root.time)}", "dim"), Styled(
        f"  correlation {event.correlation}" if event.correlation else "", "dim"))
    if found.cut:
        output.line(Styled(f"… the cause of {root.position} is {root.causation}; too many causes to show all", "dim"))
    for index, cause in enumerate(found.causes):
        lead = "" if index == 0 else "   " * (index - 1) + "└─ "
        _line(output, lead, cause, told(cause), root.time, times, here=cause is event)
    indent = "   " * (len(found.causes) - 1)
    for lead, later in drawn(found.consequences, event.position):
        _line(output, indent + lead, later, told(later), root.time, times, here=False)
    if found.more:
        output.line(Styled(f"{indent}… and {found.more} more; --limit shows them", "dim"))


def _line(
    output: Output, lead: str, event: StoredEvent, text: str, start: str, times: dict[int, str], *, here: bool
) -> None:
    since = "+" + spoken(seconds_between(start, event.time))
    cause = times.get(event.causation)
    took = spoken(seconds_between(cause, event.time)) if cause else ""
    lead = lead if width(lead) <= 60 else "… " + lead[-58:]
    head = f"{event.position:>8}  {since:>10}  {took:>9}  {lead}"
    name = f" {event.type}  {event.actor}  "
    rest = output.columns - width(head) - 1 - width(name)
    output.line(
        f"{head}", marker(event), Styled(name, "bold" if here else ""), Styled("◀ " if here else "", "yellow"),
        shorten(text, max(20, rest - 2)),
    )


def _document(found: Tree) -> dict[str, object]:
    return {
        "causes": [plain(event) for event in found.causes],
        "consequences": [{"depth": node.depth, **plain(node.event)} for node in found.consequences], "more": found.more,
        "cut": found.cut,
    }


def plain(event: StoredEvent) -> dict[str, object]:
    """The event as a document; data as it is stored."""
    return {name: getattr(event, name) for name in event.__struct_fields__ if name != "data"} | {
        "data": msgspec.Raw(event.data)
    }
