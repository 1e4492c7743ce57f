"""The figures of the first page: what the projection ``figures`` has summed up, as numbers and their course; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from markupsafe import Markup

from pmagent.console.pages.drawing.bars import Column, drawn
from pmagent.projections.figures import HOUR_CHARS, Hour
from pmagent.when import spoken

SPANS: Final = {"24h": (24, 1), "7d": (168, 6)}
"""The spans that may be shown: so many hours, so many of them a bar."""


NONE: Final = "none"
"""In place of a mean of nothing."""


class Figure(msgspec.Struct, frozen=True):
    """A number, what it is, the words beside it, where more of it stands, and its course."""

    name: str
    value: str
    note: str
    address: str
    picture: Markup


def figures(hours: Sequence[dict[str, Any]], span: str, now: str) -> list[Figure]:
    """The figures of the last hours before the log time ``now``."""
    count, width = SPANS[span]
    known = {hour.hour: hour for hour in msgspec.convert(hours, list[Hour])}
    names = _names(now, count)
    columns = [
        (names[at], _summed([known[name] for name in names[at : at + width] if name in known]))
        for at in range(0, count, width)
    ]
    whole = _summed([hour for _, hour in columns])
    each = _Course(columns, width)
    jobs, decided = max(whole.jobs, 1), max(whole.decided, 1)
    return [
        Figure(
            "Tasks ended", f"{whole.tasks:,}", f"in {whole.jobs:,} run{'' if whole.jobs == 1 else 's'} and audits",
            "/runs", each.drawn("Tasks that ended", lambda hour: hour.tasks, "{:g} tasks".format, "busy"),
        ),
        Figure(
            "Failure rate", f"{whole.failed / jobs:.0%}" if whole.jobs else NONE,
            f"{whole.failed:,} of {whole.jobs:,} failed", "/runs?state=failed",
            each.drawn("Runs and audits that failed", lambda hour: hour.failed, "{:g} failed".format, "bad"),
        ),
        Figure(
            "Mean duration", spoken(whole.job_s / jobs) if whole.jobs else NONE, "from request to end", "/runs",
            each.drawn("Mean duration", lambda hour: hour.job_s / max(hour.jobs, 1), spoken, "plain"),
        ),
        Figure(
            "Waiting for approval", spoken(whole.waited_s / decided) if whole.decided else NONE,
            f"mean of {whole.decided:,} decision{'' if whole.decided == 1 else 's'}", "/approvals",
            each.drawn("Mean wait for approval", lambda hour: hour.waited_s / max(hour.decided, 1), spoken, "warn"),
        ),
        Figure(
            "Cost of models", f"${whole.usd:,.2f}", f"{whole.tokens:,} tokens in {whole.calls:,} calls",
            "/log?type=model.replied", each.drawn("Tokens of models", lambda hour: hour.tokens, "{:,g} tokens".format,
            "good"),
        ),
    ]  # fmt: skip


class _Course:
    """Columns of the same hours, for one figure after the other."""

    def __init__(self, columns: Sequence[tuple[str, Hour]], width: int) -> None:
        self._columns = columns
        self._width = width

    def drawn(self, what: str, value: Callable[[Hour], float], said: Callable[[float], str], kind: str) -> Markup:
        found = [
            Column(value(hour), f"from {name[5:10]} {name[11:]}:00 UTC: {said(value(hour))}", kind)
            for name, hour in self._columns
        ]
        most = max(found, key=lambda column: column.value)
        label = f"{what}, in steps of {self._width} h; at most {most.about}" if most.value else f"{what}: nothing"
        return drawn(found, label)


def _names(now: str, count: int) -> list[str]:
    """The names of the last hours, oldest first; the last is that of ``now``."""
    last = datetime.fromisoformat(f"{now[:HOUR_CHARS]}:00:00")
    return [(last - timedelta(hours=back)).isoformat()[:HOUR_CHARS] for back in range(count - 1, -1, -1)]


def _summed(hours: Sequence[Hour]) -> Hour:
    fields = [name for name in Hour.__struct_fields__ if name != "hour"]
    return Hour(hour="", **{name: sum(getattr(hour, name) for hour in hours) for name in fields})
