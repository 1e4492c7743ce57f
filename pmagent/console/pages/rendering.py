"""Turning documents into pages: escaped, and with nothing in them that hides, reorders or pretends
(docs/design.md §18.4).

Every value that a template shows passes ``shown``: what ``pmagent.clean`` forbids on a terminal is as unwelcome here.
"""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jinja2 import DictLoader, Environment, StrictUndefined, Undefined
from markupsafe import Markup, escape

from pmagent import __version__
from pmagent.actors.alerts.actor import ALERTING
from pmagent.clean import clean_block, clean_line
from pmagent.edges import SECTIONS
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.event import parse_time
from pmagent.events.log import LogClock
from pmagent.when import short, sized, spoken
from pmagent.workspace.layout import Layout

TEMPLATES: Final = Path(__file__).parents[1] / "templates"
STATIC: Final = Path(__file__).parents[1] / "static"

CLIMBING_MAX: Final = 4
"""So many combining marks upon each other are shown as such."""

_MARKS: Final = {" ": ("·", "blank"), "\t": ("⇥", "tab"), "\n": ("⏎", "newline")}


def environment(workspace: Path) -> Environment:
    """The templates of one workspace's console, as they are now: another version that is installed while this one runs
    makes no page of old code and new words."""
    sources = {path.name: path.read_text("utf-8") for path in TEMPLATES.glob("*.html")}
    made = Environment(
        loader=DictLoader(sources), autoescape=True, undefined=StrictUndefined, finalize=shown,
        trim_blocks=True, lstrip_blocks=True,
    )
    made.filters |= {
        "visible": visible, "when": when, "ago": ago, "sized": sized, "spoken": spoken, "command": command,
        "one_line": one_line,
    }
    made.globals |= {"version": __version__, "navigation": SECTIONS, "workspace_name": workspace.name or str(workspace)}
    made.globals["alerting"] = ",".join(sorted(ALERTING))
    made.globals["now"] = LogClock(_stood(workspace)).now  # what expires does so by the log's time
    return made


def _stood(workspace: Path) -> str:
    """The last time in the log; "" where there is none to be read."""
    try:
        with closing(Layout(workspace).store.reader()) as storage:
            return storage.tail().time
    except (NotFound, CorruptLog, OSError):
        return ""


def shown(value: Any) -> Any:
    """``value`` as a template shows it: nothing of None, and text only cleaned. Markup has been through here."""
    if value is None:
        return ""
    if isinstance(value, (Markup, Undefined)):
        return value
    return clean_block(str(value))


def one_line(text: Any) -> str:
    """``text`` on one line; its line breaks are seen."""
    return clean_line(str(text))


def visible(text: str) -> Markup:
    """Exactly ``text``: blanks, tabs, line breaks, every control character and marks that climb over other lines as
    marks with a name, nothing left out. For what is going to be typed, and for what is going to be started."""
    parts: list[str] = []
    climbing = 0
    for char in text:
        climbing = climbing + 1 if char > "\u02ff" and unicodedata.category(char) in ("Mn", "Me") else 0
        parts.append(_seen(char) if climbing <= CLIMBING_MAX else _mark(f"U+{ord(char):04X}", "combining"))
    return Markup("".join(parts))  # noqa: S704 - escaped character by character


@lru_cache(maxsize=8192)
def _seen(char: str) -> str:
    """A character, escaped; as a mark where it could not be seen."""
    mark, name = _MARKS.get(char, ("", ""))
    if not mark and (clean_line(char) != char or not char.isprintable()):
        mark, name = f"U+{ord(char):04X}", "control"
    if not mark:
        return str(escape(char))
    return _mark(mark, name) + ("\n" if char == "\n" else "")


def _mark(mark: str, name: str) -> str:
    return str(Markup('<span class="mark" title="{}">{}</span>').format(name, mark))


def when(time: str | None) -> Markup:
    """A log time, short and in UTC; the whole of it in the element's attributes."""
    if not time:
        return Markup("")
    whole = clean_line(time)
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(whole, short(whole))


def ago(time: str | None) -> str:
    """How long ago a log time was, in words; "" without one."""
    if not time:
        return ""
    seconds = (datetime.now(UTC) - parse_time(time)).total_seconds()
    return f"{spoken(max(0.0, seconds))} ago"


def command(argv: Sequence[str]) -> str:
    """A command line as one would type it; "" where what is copied of it would be another one, since something in it is
    shown as a mark."""
    return shlex.join(argv) if all(clean_line(word) == word for word in argv) else ""
