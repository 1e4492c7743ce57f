"""``pmagent diff``: where two logs part, and what each has that the other has not."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pmagent.cli.frame import App, command
from pmagent.cli.output import Output, Styled
from pmagent.exitcodes import Exit
from pmagent.log.source import store_at

if TYPE_CHECKING:
    from pmagent.replay.diff import LogDiff

_LOG = click.Path(exists=True, file_okay=False, path_type=Path)


@command("pmagent diff . .pmagent", "pmagent diff . . --exact --format json")
@click.argument("a", type=_LOG)
@click.argument("b", type=_LOG)
@click.option("--exact", is_flag=True, help="Times, ids, correlations and causes count, too.")
@click.option("--limit", type=click.IntRange(1, 1000), default=1, show_default=True, help="Differences shown at most.")
def diff(app: App, a: Path, b: Path, exact: bool, limit: int, format: str) -> int:
    """Align the logs A and B (workspaces or log folders), show the first difference, and count all.

    Events are equal when kind, actor, type and data are. Exit 0: no difference. Exit 1: a difference."""
    from pmagent.replay.diff import diff_logs

    with closing(store_at(a).reader()) as log_a, closing(store_at(b).reader()) as log_b:
        result = diff_logs(log_a, log_b, exact=exact)
    app.output.answer(format, _document(result, limit), lambda: _screen(app.output, result, limit))
    return Exit.DONE if result.equal else Exit.NO


def _document(result: LogDiff, limit: int) -> dict[str, Any]:
    return {
        "equal": result.equal, "a_events": result.a_events, "b_events": result.b_events, "agreeing": result.agreeing,
        "prefix": result.prefix,
        "differences": [
            {
                "kind": found.kind, "actor": found.shown.actor, "type": found.shown.type,
                "a": found.a.position if found.a else None, "b": found.b.position if found.b else None,
                "diff": found.lines()[1:],
            }
            for found in result.differences[:limit]
        ],
        "counts": result.counts,
    }


def _screen(output: Output, result: LogDiff, limit: int) -> None:
    amount = f"{result.a_events:,} events and {result.b_events:,}; {result.agreeing:,} stand in both"
    if result.equal:
        output.line(Styled("✓ equal", "green"), f": {amount}")
        return
    output.line(Styled("✗ different", "red"), f": {amount}, the first {result.prefix:,} agree")
    for found in result.differences[:limit]:
        output.difference(found.lines())
    output.line("")
    output.line(Styled("differences", "bold"))
    for count in result.counts:
        output.line(f"  {count.count:>8,}  {count.kind:<10} {count.actor:<12} {count.type}")
