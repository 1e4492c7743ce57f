"""The log page's filters as they stand in its address: read, written again, and as the command that shows the same.

``type``, ``exclude``, ``actor``, ``correlation``, ``field`` may stand several times; ``grep``, ``since``, ``until``,
``after``, ``before``, ``n`` and ``newest`` once. ``after`` reads on from there, the oldest first found; without it the
last ``n`` are shown. ``text``, as Runs and Audits have it, is ``grep``. Empty values count for nothing; an error is
shown at its field.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final
from urllib.parse import urlencode

import msgspec
from starlette.datastructures import QueryParams

from pmagent.events.errors import PmagentError
from pmagent.log.query import Query, compiled
from pmagent.log.ranges import POSITION_MAX, Range, position_in
from pmagent.when import moment

SEVERAL: Final = {
    "type": "types", "exclude": "excluded", "actor": "actors", "correlation": "correlations", "field": "fields",
}  # fmt: skip
"""Parameters that may stand several times -> where they are in a Query."""
ONCE: Final = ("grep", "since", "until", "after", "before", "n", "newest")
VALUES_MAX: Final = 32
"""So many values a filter may have."""
COUNT: Final = 100
COUNT_MAX: Final = 1000

PATH: Final = "/log"


class LogPageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query of the log page. ``after`` None: the last ``count`` events; ``before``: only those before this position
    (0: all). ``newest``: whether the newest stands first or last on the page. ``since`` and ``until``: as people write
    them, None for none."""

    query: Query = Query()
    since: str | None = None
    until: str | None = None
    after: int | None = None
    before: int = 0
    count: int = COUNT
    newest: str = "first"

    def address(self, path: str = PATH) -> str:
        """Where this page stands; the same for the same filters."""
        pairs = list(self.filters())
        numbers = {"after": self.after, "before": self.before or None, "n": self.count if self.count != COUNT else None}
        pairs += [(name, str(number)) for name, number in numbers.items() if number is not None]
        if self.newest != "first":
            pairs.append(("newest", self.newest))
        return f"{path}?{urlencode(pairs)}" if pairs else path

    def filters(self) -> Iterable[tuple[str, str]]:
        """The filters, as pairs of an address, without the position."""
        for name, place in SEVERAL.items():
            yield from ((name, value) for value in getattr(self.query, place))
        for name, text in (("grep", self.query.grep), ("since", self.since), ("until", self.until)):
            if text:
                yield name, text

    def command(self, span: Range | None = None, last: int | None = None) -> list[str]:
        """``pmagent log tail`` with the same result. ``span``: what the bounds mean in this log, needed with
        ``before``; ``last``: the position with which a page ends that reads on."""
        argv = ["pmagent", "log", "tail"]
        if self.after is None:
            argv += ["-n", str(self.count)]
        until = self.until
        if self.before:
            stop = span.stop if span is not None else None
            until = f"pos:{self.before - 1 if stop is None else stop}"
        if self.after is not None and last is not None:
            until = f"pos:{last}"
        named = {"type": self.query.types, "exclude": self.query.excluded, "actor": self.query.actors}
        named |= {"correlation": self.query.correlations, "grep": [self.query.grep] if self.query.grep else []}
        named |= {"since": [self.since] if self.since is not None else [], "until": [until] if until else []}
        named |= {"after": [] if self.after is None else [str(self.after)]}
        argv += [word for name, values in named.items() for value in values for word in _option(name, value)]
        return [*argv, *self.query.fields]

    def moved(self, *, after: int | None = None, before: int = 0) -> LogPageQuery:
        """The same filters at another place of the log."""
        return msgspec.structs.replace(self, after=after, before=before)


def _option(name: str, value: str) -> list[str]:
    return [f"--{name}={value}"] if value.startswith("-") else [f"--{name}", value]


def read(parameters: QueryParams, now: datetime | None = None) -> tuple[LogPageQuery, dict[str, str]]:
    """The address's query, and its errors: parameter -> why. A parameter with an error is as if it were not there."""
    now = now or datetime.now(UTC)
    parameters = QueryParams([("grep" if name == "text" else name, value) for name, value in parameters.multi_items()])
    wrong: dict[str, str] = {}
    for name in parameters:
        if name not in SEVERAL and name not in ONCE:
            near = get_close_matches(name, [*SEVERAL, *ONCE], 1)
            wrong[name] = f"there is no filter {name[:40]!r}" + (f"; did you mean {near[0]}?" if near else "")
    lists = {name: _values(parameters, name, wrong) for name in SEVERAL}
    single = {name: _once(parameters, name, wrong) for name in ONCE}
    lists["field"] = tuple(one for one in lists["field"] if _holds("field", Query(fields=[one]), wrong))
    grep = single["grep"] if _holds("grep", Query(grep=single["grep"]), wrong) else ""
    times = {name: _time(name, single[name], now, wrong) for name in ("since", "until")}
    newest = single["newest"] or "first"
    if newest not in ("first", "last"):
        wrong["newest"], newest = "first or last", "first"
    after = _number("after", single["after"], 0, POSITION_MAX, wrong)
    before = _number("before", single["before"], 2, POSITION_MAX, wrong) or 0
    count = _number("n", single["n"], 1, COUNT_MAX, wrong) or COUNT
    query = Query(
        types=lists["type"], excluded=lists["exclude"], actors=lists["actor"], correlations=lists["correlation"],
        fields=lists["field"], grep=grep,
    )
    return LogPageQuery(
        query=query, since=times["since"], until=times["until"], after=after, before=before, count=count, newest=newest
    ), wrong


def _values(parameters: QueryParams, name: str, wrong: dict[str, str]) -> Sequence[str]:
    """Each value once, in the order given."""
    values = tuple(dict.fromkeys(value for value in parameters.getlist(name) if value))
    if len(values) > VALUES_MAX:
        wrong[name] = f"at most {VALUES_MAX} of them"
        return ()
    return values


def _once(parameters: QueryParams, name: str, wrong: dict[str, str]) -> str:
    values = [value for value in parameters.getlist(name) if value]
    if len(values) > 1:
        wrong[name] = "it may stand there once"
        return ""
    return values[0] if values else ""


def _holds(name: str, query: Query, wrong: dict[str, str]) -> bool:
    try:
        compiled(query)
    except PmagentError as error:
        wrong[name] = f"{error.message.removeprefix('--grep ')} ({error.hint})"
        return False
    return True


def _time(name: str, text: str, now: datetime, wrong: dict[str, str]) -> str | None:
    if not text:
        return None
    try:
        if position_in(text) is None:
            moment(text, now)
    except PmagentError as error:
        wrong[name] = f"{error.message} ({error.hint})"
        return None
    return text


def _number(name: str, text: str, least: int, most: int, wrong: dict[str, str]) -> int | None:
    if not text:
        return None
    if text.isascii() and text.isdigit() and least <= int(text[:18]) <= most:
        return int(text[:18])
    wrong[name] = f"a whole number, {least} to {most}"
    return None
