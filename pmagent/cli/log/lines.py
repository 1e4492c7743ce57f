"""One clear line an event: position, time, actor, type, correlation, summary. Meaning is in words, not colour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pmagent.clean import pad, shorten
from pmagent.cli.output import Output, Piece, Styled
from pmagent.events.event import StoredEvent
from pmagent.events.named_blobs import BlobsChecked
from pmagent.log.summaries import sign
from pmagent.when import short, sized

_SIGN_STYLES: Final = {"bad": "red", "good": "green", "decision": "bold", "fact": ""}
_ACTOR_STYLES: Final = ("cyan", "blue", "magenta", "green", "yellow")


def marker(event: StoredEvent) -> Piece:
    """The event's sign in its colour."""
    mark, word = sign(event)
    return Styled(mark, _SIGN_STYLES[word])


def event_line(event: StoredEvent, columns: int, summary: Callable[[StoredEvent], str]) -> list[Piece]:
    """The pieces of the line, together at most ``columns`` wide; ``summary`` comes last."""
    wide = columns >= 120
    type_width = 26 if wide else 22
    correlation_width = 16 if wide else 8
    position = f"{event.position:>8}"
    taken = len(position) + 2 + 18 + 2 + 10 + 2 + 2 + type_width + 2 + correlation_width + 2
    style = _ACTOR_STYLES[sum(event.actor.encode("utf-8", "replace")) % len(_ACTOR_STYLES)]
    return [
        Styled(position, "bold"), "  ", Styled(pad(short(event.time), 18), "dim"), "  ",
        Styled(pad(event.actor, 10), style), "  ", marker(event), " ", pad(event.type, type_width), "  ",
        Styled(pad(_end(event.correlation, correlation_width), correlation_width), "dim"), "  ",
        shorten(summary(event), max(20, columns - taken)),
    ]


def _end(text: str, columns: int) -> str:
    """Ids differ at their end."""
    return text if len(text) <= columns else "…" + text[-(columns - 1) :]


def blob_lines(output: Output, blobs: BlobsChecked) -> None:
    """How many blobs were checked, and each bad one that is named."""
    amount = f"{blobs.checked:,} checked, {sized(blobs.bytes)}"
    output.line(f"  blobs     {amount}" + (f", {blobs.bad:,} bad" if blobs.bad else ""))
    for bad in blobs.findings:
        output.line(Styled("  ✗ blob", "red"), f"    {bad.file}, named at position {bad.position}: {bad.reason}")
    if blobs.bad > len(blobs.findings):
        output.line(f"            … and {blobs.bad - len(blobs.findings):,} more")
