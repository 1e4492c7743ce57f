"""One clear line an event: position, time, actor, type, correlation, summary. Meaning is in words, not colour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pmagent.clean import pad, shorten
from pmagent.cli.output import Output, Piece, Styled
from pmagent.events.event import StoredEvent
from pmagent.events.named_blobs import BlobsChecked
from pmagent.ids import SHORT, short_id
from pmagent.log.summaries import sign
from pmagent.when import sized

_SIGN_STYLES: Final = {"bad": "red", "good": "green", "decision": "bold", "fact": ""}
NARROW: Final = 110
WIDE: Final = 120
NARROW_TIME: Final = 17
NARROW_TYPE: Final = 22
_ACTOR_STYLES: Final = ("cyan", "blue", "magenta", "green", "yellow")


def marker(event: StoredEvent) -> Piece:
    """The event's sign in its colour."""
    mark, word = sign(event)
    return Styled(mark, _SIGN_STYLES[word])


def event_line(event: StoredEvent, output: Output, summary: Callable[[StoredEvent], str]) -> list[Piece]:
    """The pieces of the line, together at most as wide as the output; ``summary`` comes last. Where the output is
    narrow, the summary is worth more than actor and correlation, which are left out."""
    columns = output.columns
    if columns < NARROW:
        position = f"{event.position:>6}"
        time = pad(output.time(event.time, brief=True), NARROW_TIME)
        name = shorten(event.type, NARROW_TYPE)
        taken = len(position) + 1 + len(time) + 1 + 2 + len(name) + 2
        return [
            Styled(position, "bold"), " ", Styled(time, "dim"), " ", marker(event), " ", name, "  ",
            shorten(summary(event), max(20, columns - taken)),
        ]
    type_width = 26 if columns >= WIDE else 22
    position = f"{event.position:>8}"
    taken = len(position) + 2 + output.time_width + 2 + 10 + 2 + 2 + type_width + 2 + SHORT + 2
    style = _ACTOR_STYLES[sum(event.actor.encode("utf-8", "replace")) % len(_ACTOR_STYLES)]
    return [
        Styled(position, "bold"), "  ", Styled(pad(output.time(event.time), output.time_width), "dim"), "  ",
        Styled(pad(event.actor, 10), style), "  ", marker(event), " ", pad(event.type, type_width), "  ",
        Styled(pad(short_id(event.correlation), SHORT), "dim"), "  ",
        shorten(summary(event), max(20, columns - taken)),
    ]


def blob_lines(output: Output, blobs: BlobsChecked) -> None:
    """How many blobs were checked, and each bad one that is named."""
    amount = f"{blobs.checked:,} checked, {sized(blobs.bytes)}"
    counts = "".join(f", {count:,} {word}" for count, word in ((blobs.bad, "bad"), (blobs.pruned, "pruned")) if count)
    output.line(f"  blobs     {amount}{counts}")
    for bad in blobs.findings:
        output.line(Styled("  ✗ blob", "red"), f"    {bad.file}, named at position {bad.position}: {bad.reason}")
    if blobs.bad > len(blobs.findings):
        output.line(f"            … and {blobs.bad - len(blobs.findings):,} more")
