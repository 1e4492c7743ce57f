"""Events as rows of a table: the same in the page and in what is added to it live (docs/design.md §18.1).

Made by hand and not by a template, for there are thousands a second. Each text passes ``clean_line`` and is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from urllib.parse import quote

from markupsafe import Markup

from pmagent.console.pages.rendering import in_utc, one_line
from pmagent.events.event import StoredEvent
from pmagent.ids import short_id
from pmagent.log.summaries import sign, summary
from pmagent.when import short


def rows(events: Iterable[StoredEvent]) -> Markup:
    """One ``<tr id="e<position>">`` an event."""
    return Markup("".join(map(_row, events)))  # noqa: S704 - each text in it is escaped by _text


def _row(event: StoredEvent) -> str:
    mark, word = sign(event)
    at, time = event.position, _text(event.time)
    shown = _text(short(event.time))
    return (
        f'<tr id="e{at}" class="{word}"><th class="c-position" scope="row"><a href="/log/{at}">{at}</a></th>'
        f'<td class="c-time"><time datetime="{time}" title="{in_utc(time)}" data-exact>{shown}</time></td>'
        f'<td class="c-actor">{_text(event.actor)}</td>'
        f'<td class="c-type"><span class="sign" aria-hidden="true">{mark}</span>{_text(event.type)}</td>'
        f'<td class="c-run">{_belonging(event.correlation)}</td><td class="c-gist">{_text(summary(event))}</td></tr>'
    )


def _belonging(correlation: str) -> str:
    """A correlation in short, as a link to what belongs to it."""
    if not correlation:
        return ""
    address = quote(correlation.encode("utf-8", "replace"), safe="")
    return f'<a href="/log?correlation={address}" title="{_text(correlation)}">{_text(short_id(correlation))}</a>'


def _text(text: str) -> str:
    return escape(one_line(text))
