"""Turning documents into pages: escaped, and with nothing in them that hides, reorders or pretends
(docs/design.md §18.4).

Every value that a template shows passes ``shown``: what ``pmagent.clean`` forbids on a terminal is as unwelcome here.
"""

from __future__ import annotations

import itertools
import re
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
from pmagent.actors.pla.switch import SAID, said
from pmagent.clean import clean_block, clean_line
from pmagent.contracts.pla import LEASE_SECONDS
from pmagent.edges import OPERATIONS, SECTIONS
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.event import parse_time
from pmagent.events.log import LogClock
from pmagent.pla.risk import deeds
from pmagent.when import sized, spoken
from pmagent.workspace.layout import Layout

TEMPLATES: Final = Path(__file__).parents[1] / "templates"
STATIC: Final = Path(__file__).parents[1] / "static"
GLOSSARY: Final = Path(__file__).parents[2] / "data" / "glossary.md"
"""docs/glossary.md: a row a word."""

TIME_CHARS: Final = 27
"""The length of a log time."""
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
CLIMBING_MAX: Final = 4
"""So many combining marks upon each other are shown as such."""

_KEYS: Final = str.maketrans("␊␉", "⏎⇥")
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
        "one_line": one_line, "said": said,
    }
    made.globals |= {"annotated": annotated, "deeds": deeds, "glossary": _glossary()}
    made.globals |= {"switch_words": SAID, "lease_seconds": LEASE_SECONDS}
    made.globals |= {"version": __version__, "navigation": SECTIONS, "workspace_name": workspace.name or str(workspace)}
    made.globals["there"] = {name: one.there for name, one in OPERATIONS.items()}
    made.globals["alerting"] = ",".join(sorted(ALERTING))
    made.globals["now"] = LogClock(_stood(workspace)).now  # what expires does so by the log's time
    return made


def _glossary() -> dict[str, str]:
    """The words of docs/glossary.md in lower case, and what each means."""
    rows = re.findall(r"^\| \*\*(.+?)\*\* \| (.+?) \|$", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    return {word.lower(): meaning.replace("`", "") for word, meaning in rows}


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
    """``text`` on one line; its line breaks and tabs are seen, by the marks that exact bytes have."""
    return clean_line(str(text)).translate(_KEYS)


def visible(text: str) -> Markup:
    """Exactly ``text``: blanks, tabs, line breaks, every control character and marks that climb over other lines as
    marks with a name, nothing left out. For what is going to be typed, and for what is going to be started."""
    parts: list[str] = []
    climbing = 0
    for char in text:
        climbing = climbing + 1 if char > "\u02ff" and unicodedata.category(char) in ("Mn", "Me") else 0
        parts.append(_seen(char) if climbing <= CLIMBING_MAX else _mark(f"U+{ord(char):04X}", "combining"))
    return Markup("".join(parts))  # noqa: S704 - escaped character by character


def annotated(text: str, deeds: Sequence[tuple[int, int, str]], typed: int) -> Markup:
    """``visible``, with the words marked that suggest what it does (begin, end, what), and the first ``typed``
    characters as typed already."""
    cuts = sorted({0, typed, len(text), *(at for begin, end, _ in deeds for at in (begin, end))})
    parts = Markup("")
    for begin, end in itertools.pairwise(cuts):
        piece = visible(text[begin:end])
        deed = next((what for first, last, what in deeds if first <= begin < last), "")
        if deed:
            piece = Markup('<mark class="deed" title="{}">{}</mark>').format(deed, piece)
        parts += Markup('<span class="sent">{}</span>').format(piece) if end <= typed else piece
    return parts


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
    """A log time, to the second, in UTC, which it names; the whole of it in the element's attributes. The page's script
    shows it by the reader's clock, and how long ago it was."""
    if not time:
        return Markup("")
    whole = clean_line(time)
    return Markup('<time datetime="{0}" title="{1}">{2}</time>').format(whole, in_utc(whole), _spelled(whole))


def in_utc(time: str) -> str:
    """A log time, whole, as people read it."""
    return f"{time[:10]} {time[11:-1]} UTC" if len(time) == TIME_CHARS else time


def _spelled(time: str) -> str:
    """The day with the month's name, and the year where it is not this one: 11-10 is another day elsewhere."""
    if len(time) != TIME_CHARS:
        return time[:TIME_CHARS]
    try:
        then = parse_time(time)
    except ValueError:
        return time
    year = "" if then.year == datetime.now(UTC).year else f" {then.year}"
    return f"{then.day} {MONTHS[then.month - 1]}{year} {then:%H:%M:%S} UTC"


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
