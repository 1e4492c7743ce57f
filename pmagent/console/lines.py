"""Events as rows of a table: the same in the page and in what is added to it live (style report 3.3).

Made by hand and not by a template, for there are thousands a second. Each text passes ``clean_line`` and is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from markupsafe import Markup

from events.event import StoredEvent
from pmagent.clean import clean_line
from pmagent.log.summaries import summary
from pmagent.when import short

_BAD: Final = (
    "failed", "refused", "halted", "revoked", "timed_out", "interrupted", "cancelled", "escalated", "recovered",
)
_GOOD: Final = ("granted", "booted", "taken", "resumed", "created", "started")


def sign(event: StoredEvent) -> tuple[str, str]:
    """A sign and the word for it, the signs that ``pmagent log tail`` marks lines with."""
    last = event.type.rsplit(".", 1)[-1]
    if last.endswith(_BAD):
        return "✗", "bad"
    if last.endswith(_GOOD):
        return "✓", "good"
    return ("▸", "decision") if event.kind == "decision" else ("•", "fact")


def rows(events: Iterable[StoredEvent]) -> Markup:
    """One ``<tr id="e<position>">`` an event."""
    return Markup("".join(map(_row, events)))  # noqa: S704 - each text in it is escaped by _text


def _row(event: StoredEvent) -> str:
    mark, word = sign(event)
    at, time = event.position, _text(event.time)
    return (
        f'<tr id="e{at}" class="row {word}"><td class="position"><a href="/log/{at}">{at}</a></td>'
        f'<td class="time"><time datetime="{time}" title="{time}">{_text(short(event.time))}</time></td>'
        f'<td class="actor">{_text(event.actor)}</td><td class="type"><span class="sign" title="{word}">{mark}</span> '
        f'{_text(event.type)}</td><td class="correlation">{_text(event.correlation)}</td>'
        f'<td class="summary">{_text(summary(event))}</td></tr>'
    )


def _text(text: str) -> str:
    return escape(clean_line(text))
