"""``pmagent replay`` and ``rebuild``: whether today's code says what the log and the documents say."""

from __future__ import annotations

import shlex
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pmagent.cli.frame import App, command
from pmagent.cli.log.lines import blob_lines
from pmagent.cli.output import Output, Styled, warned
from pmagent.exitcodes import Exit
from pmagent.log.source import store_at
from pmagent.when import spoken

if TYPE_CHECKING:
    from pmagent.replay.divergence import Divergence, ReplayResult

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@command("pmagent replay", "pmagent replay --until 4 --actor kernel", "pmagent replay --what-if .")
@click.argument("log", type=_FOLDER, required=False)
@click.option("--until", type=click.IntRange(min=1), metavar="POSITION", help="Up to here [default: all].")
@click.option("--actor", metavar="NAME", help="Compare only this actor's decisions.")
@click.option("--what-if", is_flag=True, help="Go on after differences; show the decisions that would differ.")
def replay(app: App, log: Path | None, until: int | None, actor: str | None, what_if: bool, format: str) -> int:
    """Give the recorded facts of LOG (a workspace or a log folder; default: this workspace) to today's actors.

    Exit 0: every decision is made again as recorded; differences that a later release lists as deliberate are counted.
    Exit 3: the first other difference is shown. Exit 2: an area that decided something in the log is not installed."""
    from pmagent.actors.areas import AREAS
    from pmagent.actors.core.integrity import ENGINE
    from pmagent.actors.core.ledger import GATE
    from pmagent.actors.registry import all_actors
    from pmagent.otherwise import shipped
    from pmagent.replay.replayer import replay_log

    actors = all_actors(area for area in AREAS if not area.lacks)
    names = [GATE, *(name for area in AREAS for name in area.actors), ENGINE]
    absent = {name: area for area in AREAS if area.lacks for name in area.actors}
    if actor is not None and actor not in names:
        raise click.BadParameter(f"no actor {actor!r}; there are {', '.join(names)}", param_hint="--actor")
    store = store_at(log or app.workspace)
    begun = time.perf_counter()
    with closing(store.reader()) as reader:
        result = replay_log(
            reader, actors, until=until, actor=actor, what_if=what_if, blobs=store.blobs(), absent=absent,
            otherwise=shipped(),
        )
    seconds = time.perf_counter() - begun
    undecided = list(dict.fromkeys(absent[name].name for name in result.undecided))
    if format == "json":
        app.output.document(_result_document(store.place, result, undecided))
    else:
        _result_screen(app.output, result, seconds, undecided, what_if=what_if)
        for area in (area for area in AREAS if area.name in undecided):
            app.output.note(Styled("hint:", "cyan"), f" pip install {' '.join(map(shlex.quote, area.lacks))}")
    if result.divergences or result.stopped:
        return Exit.DIVERGED
    return Exit.USAGE if undecided else Exit.DONE


def _result_document(place: str, result: ReplayResult, undecided: list[str]) -> dict[str, Any]:
    from pmagent.actors.registry import libraries

    return {
        "path": place, "equal": result.equal, "events": result.events, "decisions": result.decisions,
        "position": result.position, "unfinished": result.unfinished, "stopped": result.stopped, "undecided": undecided,
        "libraries": libraries(), "otherwise": result.otherwise,
        "divergences": [_divergence_document(found) for found in result.divergences], "counts": result.counts,
    }


def _divergence_document(found: Divergence) -> dict[str, Any]:
    from pmagent.replay.divergence import pretty

    return {
        "position": found.position, "kind": found.kind, "actor": found.shown.actor, "about": found.about,
        "type": found.shown.type, "diff": found.lines()[1:],
        "expected": "\n".join(pretty(found.expected)) or None, "recorded": "\n".join(pretty(found.recorded)) or None,
    }


def _result_screen(
    output: Output, result: ReplayResult, seconds: float, undecided: list[str], *, what_if: bool
) -> None:
    from pmagent.actors.registry import libraries

    rate = f"{result.events / seconds:,.0f} events/s" if seconds else ""
    amount = f"{result.events:,} events, {result.decisions:,} decisions compared, in {spoken(seconds)} ({rate})"
    if result.equal:
        output.line(Styled("✓ equal", "green"), f"{', but as listed' if result.otherwise else ''}: {amount}")
    elif undecided and not result.divergences and not result.stopped:
        output.line(Styled("✗ not decided", "red"), f": {amount}")
    else:
        output.line(Styled("✗ diverged", "red"), f": {amount}")
    for area in undecided:
        output.line(f"  not decided: area {area} is not installed")
    output.line("  with ", ", ".join(f"{name} {version or '(none)'}" for name, version in libraries().items()))
    for listed in result.otherwise:
        output.line(f"  {listed.line()}")
    if result.unfinished:
        output.line(f"  the log ends inside a reaction: {result.unfinished} decision(s) are still to be recorded")
    for found in result.divergences[: 10 if what_if else 1]:
        output.difference(found.lines())
    if what_if and result.counts:
        output.line("")
        output.line(Styled("decided otherwise", "bold"))
        for count in result.counts:
            output.line(f"  {count.count:>8,}  {count.kind:<8} {count.actor:<12} {count.type}")
    if result.stopped:
        output.line(Styled("stopped: ", "yellow"), result.stopped)


@command("pmagent rebuild --check", "pmagent rebuild", reads=True)
@click.option(
    "--check", is_flag=True,
    help="Write nothing; name each document that differs from the log (exit 1; 70 when a projection is halted).",
)
def rebuild(app: App, check: bool, format: str) -> int:
    """Compute every document from the log again, and write those that differ.

    With --check, every blob that the log names is checked, too: exit 4 when one has changed. Differences that a later
    release lists as deliberate are counted."""
    if check:
        return _rebuild_check(app, format)
    from pmagent.service.operations import call

    answer = warned(app.output, call(app.workspace, "rebuild", {}))
    if format == "json":
        app.output.document(answer.document)
        return answer.exit_code
    for path in answer.document["written"]:
        app.output.line(Styled("✓ written", "green"), f"  {path}")
    if same := len(answer.document["documents"]) - len(answer.document["written"]):
        app.output.line(f"- as it was  {same} of {len(answer.document['documents'])} documents")
    if not answer.document["documents"]:
        app.output.line("the log gives rise to no document yet")
    return answer.exit_code


def _rebuild_check(app: App, format: str) -> int:
    from pmagent.service.comparing import compare_documents

    compared = compare_documents(app.workspace)
    differences, blobs, listed = compared.differences, compared.blobs.result, compared.listed
    halted = [found for found in differences if found.state == "halted"]  # a bug of ours: its documents are unknown
    code = Exit.CORRUPT if blobs.bad else Exit.BUG if halted else Exit.NO if differences else Exit.DONE
    if format == "json":
        app.output.document(
            {"ok": code == Exit.DONE, "differences": differences, "blobs": blobs, "otherwise": listed}
        )
        return code
    if not differences:
        but = ", or differs from it as listed" if listed else ""
        app.output.line(Styled("✓ equal", "green"), f": every document on disk is what the log says{but}")
    for one in listed:
        app.output.line(f"  {one.line()}; pmagent rebuild writes them anew")
    blob_lines(app.output, blobs)
    for found in differences:
        app.output.line(Styled(f"✗ {found.state}", "red"), f": {found.path}")
        if found.state == "halted":
            app.output.line(f"    this projection raised {found.found}; its documents are not known since position "
                            f"{found.offset}")
        elif found.state == "differs":
            app.output.line(f"    first at byte {found.offset}")
            app.output.line(f"    the log says  {found.expected}")
            app.output.line(f"    on disk       {found.found}")
        elif found.found:
            app.output.line(f"    {found.found}")
    if halted:
        app.output.note(Styled("hint:", "cyan"), " the log is unharmed; report it; start a version that does not fail")
    elif differences:
        app.output.note(Styled("hint:", "cyan"), " pmagent rebuild writes them anew")
    return code
