"""``pmagent log stat``: what the log consists of, counted in one pass."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Final

import click
import msgspec

from pmagent.cli.frame import App, command
from pmagent.cli.output import Output, Styled
from pmagent.events.event import StoredEvent
from pmagent.events.storage import StorageReader
from pmagent.events.store import LogStore
from pmagent.exitcodes import Exit
from pmagent.log.source import line_runs, store_at
from pmagent.when import seconds_between, sized, spoken

NAMES_MAX: Final = 1000
"""So many names are counted by themselves; a log with more has the rest under OTHERS."""

OTHERS: Final = "(others)"


class Counts(msgspec.Struct):
    """The counts of a pass. ``batches``: how many batches had 1, 2 to 3, 4 to 7, … events, by the lower bound."""

    events: int = 0
    bytes: int = 0
    first: str = ""
    last: str = ""
    types: Counter[str] = msgspec.field(default_factory=Counter)
    actors: Counter[str] = msgspec.field(default_factory=Counter)
    kinds: Counter[str] = msgspec.field(default_factory=Counter)
    batches: Counter[int] = msgspec.field(default_factory=Counter)
    batch_count: int = 0
    largest: int = 0
    largest_position: int = 0


@command("pmagent log stat", reads=True)
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False)
def stat(app: App, path: Path | None, format: str) -> int:
    """Events by type, actor and kind; segments, bytes, time span, rates, batch sizes; the chain's state."""
    store = store_at(path or app.workspace)
    with closing(store.reader()) as storage:
        counts = _counted(storage)
        tail = storage.tail()
        log_id = storage.log_id()
    document = _document(store, counts, log_id)
    document["chain"] = {"ok": True, "position": tail.position, "sum": tail.sum}
    app.output.answer(format, document, lambda: _screen(app.output, counts, document))
    return Exit.DONE


def _counted(storage: StorageReader) -> Counts:
    counts = Counts()
    batch, in_batch = 0, 0
    for run, tap in line_runs(storage):
        counts.first = counts.first or run[0].time
        counts.last = run[-1].time
        counts.events += len(run)
        for event, line in zip(run, tap.lines(len(run)), strict=True):
            size = len(line) + 1
            counts.bytes += size
            if size > counts.largest:
                counts.largest, counts.largest_position = size, event.position
            _count(counts, event)
            if event.batch != batch:
                _close_batch(counts, in_batch)
                batch, in_batch = event.batch, 0
            in_batch += 1
    _close_batch(counts, in_batch)
    return counts


def _count(counts: Counts, event: StoredEvent) -> None:
    counts.kinds[event.kind] += 1
    for counter, name in ((counts.types, event.type), (counts.actors, event.actor)):
        counter[name if name in counter or len(counter) < NAMES_MAX else OTHERS] += 1


def _close_batch(counts: Counts, size: int) -> None:
    if size:
        counts.batch_count += 1
        counts.batches[1 << (size.bit_length() - 1)] += 1


def _document(store: LogStore, counts: Counts, log_id: str) -> dict[str, object]:
    seconds, standing = seconds_between(counts.first, counts.last), store.stat()
    return {
        "path": store.place,
        "log_id": log_id,
        "events": counts.events,
        "bytes": counts.bytes,
        "segments": standing.older + len(standing.parts),
        "first": counts.first or None,
        "last": counts.last or None,
        "seconds": seconds,
        "events_per_second": round(counts.events / seconds, 3) if seconds else None,
        "largest_line": {"bytes": counts.largest, "position": counts.largest_position},
        "kinds": dict(counts.kinds.most_common()),
        "types": dict(counts.types.most_common()),
        "actors": dict(counts.actors.most_common()),
        "batches": {
            "count": counts.batch_count,
            "mean_events": round(counts.events / counts.batch_count, 3) if counts.batch_count else None,
            "by_size": {str(size): counts.batches[size] for size in sorted(counts.batches)},
        },
    }


def _screen(output: Output, counts: Counts, document: dict[str, object]) -> None:
    amount = f" in {document['segments']} segment(s), {sized(counts.bytes)}"
    output.line(Styled(f"{counts.events:,} events", "bold"), amount)
    output.line(f"  log       {document['log_id']}, in {document['path']}")
    rate = document["events_per_second"]
    span = spoken(seconds_between(counts.first, counts.last))
    output.line(f"  time      {counts.first} to {counts.last}: {span}" + (f", {rate:,.1f} events/s" if rate else ""))
    output.line(f"  largest   {sized(counts.largest)}, position {counts.largest_position}")
    output.line("  chain     ", Styled("✓ intact", "green"), f" up to the durable end; {counts.batch_count:,} batches")
    for title, counter in (("kind", counts.kinds), ("actor", counts.actors), ("type", counts.types)):
        output.line(Styled(title, "cyan"))
        for name, number in counter.most_common(40):
            _bar(output, name, number, counts.events)
    output.line(Styled("events a batch", "cyan"))
    for size in sorted(counts.batches):
        label = str(size) if size == 1 else f"{size} to {2 * size - 1}"
        _bar(output, label, counts.batches[size], counts.batch_count)


def _bar(output: Output, name: str, number: int, whole: int) -> None:
    from pmagent.clean import pad

    share = number / whole if whole else 0.0
    output.line(f"  {pad(name, 30)} {number:>10,} {share:>6.1%}  ", Styled("▇" * round(share * 30), "dim"))
