"""Which events are wanted: the filters of ``log tail``."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from fnmatch import translate
from typing import Any, Final

import msgspec

from pmagent.actors.core.lines import at_path
from pmagent.clean import clean_line
from pmagent.events.errors import PmagentError
from pmagent.events.event import StoredEvent
from pmagent.ids import is_meant
from pmagent.log.summaries import summary

ENVELOPE: Final = ("position", "batch", "time", "id", "kind", "actor", "type", "correlation", "causation", "sum")
_GLOB: Final = frozenset("*?[")
GREP_CHARS: Final = 65_536
"""So much of an event's text is searched; an expression that takes for ever takes it on little text."""


class BadFilter(PmagentError, exit_code=2):
    """A filter that is not understood."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A filter for events. Empty means: any. ``until`` is a log time, exclusive; positions are checked elsewhere."""

    types: Sequence[str] = ()
    excluded: Sequence[str] = ()
    actors: Sequence[str] = ()
    correlations: Sequence[str] = ()
    fields: Sequence[str] = ()
    grep: str = ""
    until: str = ""


def globs(patterns: Sequence[str]) -> re.Pattern[str]:
    """One expression that matches whatever one of the shell-like ``patterns`` matches."""
    return re.compile("|".join(translate(pattern) for pattern in patterns) or r"(?!)")


def compiled(query: Query, told: Callable[[StoredEvent], str] = summary) -> Callable[[StoredEvent], bool]:
    """A predicate for ``query``: several filters must all hold; of one filter given several times, one must. ``told``
    gives the line of an event, which is searched too.

    Raises BadFilter.
    """
    wanted, unwanted = globs(query.types), globs(query.excluded)
    actors, correlations = frozenset(query.actors), [one.removesuffix("…") for one in query.correlations]
    tests = _field_tests(query.fields)
    grep = _expression(query.grep)

    def matches(event: StoredEvent) -> bool:
        if query.types and wanted.match(event.type) is None:
            return False
        if query.excluded and unwanted.match(event.type) is not None:
            return False
        if actors and event.actor not in actors:
            return False
        if correlations and not any(is_meant(one, event.correlation) for one in correlations):
            return False
        if tests and not _hold(tests, event):
            return False
        return grep is None or grep.search(text_of(event, told)) is not None

    return matches


def needles(query: Query) -> list[list[bytes]]:
    """Bytes that a line matching ``query`` holds: at least one of each list. Other lines may hold
    all of that, too."""
    found = [_types(query.types)]
    found += [_named("actor", query.actors), [_begun(one) for one in query.correlations]]
    return [group for group in found if group]


def _types(patterns: Sequence[str]) -> list[bytes]:
    """The needles for patterns that are a whole type or the beginning of one; none where another is among them."""
    whole = [pattern for pattern in patterns if not _GLOB & {*pattern}]
    beginnings = [pattern[:-1] for pattern in patterns if pattern.endswith("*") and not _GLOB & {*pattern[:-1]}]
    if len(whole) + len(beginnings) < len(patterns):
        return []
    return _named("type", whole) + [needle[:-1] for needle in _named("type", beginnings)]


def _named(name: str, values: Sequence[str]) -> list[bytes]:
    return [f'"{name}":'.encode() + msgspec.json.encode(_text_as_stored(value)) for value in values]


def _begun(correlation: str) -> bytes:
    """The bytes that a line of this correlation holds: its beginning, or that of its UUID."""
    return msgspec.json.encode(_text_as_stored(correlation.removesuffix("…")))[1:-1]


def _text_as_stored(value: str) -> str:
    return value.encode("utf-8", "replace").decode()


def _expression(text: str) -> re.Pattern[str] | None:
    if not text:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what may mean something else in a later Python
            return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise BadFilter(f"--grep {text[:200]!r}: {why}", "a regular expression, as Python's re has it") from None


def text_of(event: StoredEvent, told: Callable[[StoredEvent], str] = summary) -> str:
    """The text that ``grep`` searches: what a person could see of the event, and its data; clean, on one line."""
    data = bytes(memoryview(event.data)[:GREP_CHARS]).decode("utf-8", "replace")
    seen = f"{event.actor} {event.type} {event.correlation} {event.id} {told(event)} {data}"
    return clean_line(seen[:GREP_CHARS])


def _field_tests(fields: Sequence[str]) -> dict[str, set[str]]:
    tests: dict[str, set[str]] = {}
    for field in fields:
        name, equals, value = field.partition("=")
        if not equals:
            raise BadFilter(f"{field!r} is not FIELD=VALUE", "e.g. kind=decision, data.mode=BLOCKED")
        if name not in ENVELOPE and name != "data" and not name.startswith("data."):
            near = get_close_matches(name, ENVELOPE, 1)
            hint = f"did you mean {near[0]}?" if near else f"fields: {', '.join(ENVELOPE)}, data.NAME"
            raise BadFilter(f"events have no field {name!r}", hint)
        tests.setdefault(name, set()).add(value)
    return tests


def _hold(tests: dict[str, set[str]], event: StoredEvent) -> bool:
    data: Any = None
    decoded = False
    for name, values in tests.items():
        if name in ENVELOPE:
            found = getattr(event, name)
        else:
            if not decoded:
                data, decoded = _decode(event), True
            found = at_path({"data": data}, name)
        if _as_text(found) not in values:
            return False
    return True


def _decode(event: StoredEvent) -> Any:
    try:
        return msgspec.json.decode(event.data)
    except (msgspec.DecodeError, RecursionError):
        return None


def _as_text(value: Any) -> str:
    """A value as one would type it: text as it is, the rest as JSON has it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
