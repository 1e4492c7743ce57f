"""Times and durations as people write and read them (``pmagent help times``). The log's own times are UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from pmagent.events.errors import PmagentError
from pmagent.events.event import format_time, parse_time

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")
_SHORT: Final = re.compile(r"\d\d-\d\d(?: |$)")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")


class BadTime(PmagentError, exit_code=2):
    """A time or duration that is not understood."""


def duration(text: str) -> float:
    """Seconds in ``10m``, ``1h30m``, ``250ms``, ``90``. Raises BadTime."""
    text = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip():
        raise BadTime(f"{text!r} is not a duration", "e.g. 30s, 10m, 1h30m, 2d")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def moment(text: str, now: datetime) -> str:
    """The log time that ``text`` means: ``10m`` (ago), ``14:30``, ``today``, ``yesterday``, ``now``, or ISO 8601.

    A clock time is the last one that has passed. Without a zone, that of ``now`` is meant. A time as ``short`` shows it
    is understood, too. Raises BadTime.
    """
    text = text.strip()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    words = {"now": now, "today": midnight, "yesterday": midnight - timedelta(days=1)}
    if text in words:
        return format_time(words[text])
    try:
        if (clock := _CLOCK.fullmatch(text)) is not None:
            hour, minute, second = (int(part or 0) for part in clock.groups())
            then = midnight.replace(hour=hour, minute=minute, second=second)
            return format_time(then if then <= now else then - timedelta(days=1))
        if _PART.match(text):
            return format_time(now - timedelta(seconds=duration(text)))
        then = datetime.fromisoformat(f"{now.year:04}-{text}" if _SHORT.match(text) else text)
        if then.tzinfo is None:
            then = then.replace(tzinfo=UTC) if now.tzinfo is UTC else then.astimezone()
        return format_time(then)
    except (ValueError, OverflowError):
        raise BadTime(f"{text!r} is not a time", "e.g. 10m, 14:30, yesterday, 2026-11-21T14:30, pos:1200") from None


def seconds_between(earlier: str, later: str) -> float:
    """Seconds from one log time to another; 0 when one of them is malformed."""
    try:
        return (parse_time(later) - parse_time(earlier)).total_seconds()
    except ValueError:
        return 0.0


def spoken(seconds: float) -> str:
    """A duration for people: ``0.8ms``, ``1.20s``, ``1m 03s``, ``2h 05m``, ``3d 04h``."""
    if seconds < 0:
        return "-" + spoken(-seconds)
    if seconds < 1:
        return f"{seconds * 1000:.1f}ms" if seconds else "0s"
    if seconds < 59.995:
        return f"{seconds:.2f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600:02d}h"


def took(started: str, ended: str) -> str:
    """The time from one log time to a later one, for people; "" where the first is not there yet."""
    return spoken(max(seconds_between(started, ended), 0.0)) if started else ""


def short(time: str, year: int | None = None) -> str:
    """A log time in a column of ``SHORT`` characters: month, day, time to the millisecond, e.g. ``11-21 19:50:00.123``;
    of another ``year`` than this with it, e.g. ``2024-11-21 19:50:00``."""
    if len(time) != 27:
        return time[:18]
    is_this_year = time[:4] == f"{year or datetime.now(UTC).year:04}"
    return f"{time[5:10]} {time[11:23]}" if is_this_year else f"{time[:10]} {time[11:19]}"


SHORT: Final = 19
"""The width of a column of short times."""


def local(time: str) -> tuple[str, str]:
    """A log time as this machine's clock shows it, in the log's own form but for the Z, and the zone's name. Any other
    text stays as it is."""
    try:
        there = parse_time(time).astimezone()
    except (ValueError, OverflowError):
        return time, ""
    return f"{there.replace(tzinfo=None).isoformat(timespec='microseconds')} ", there.tzname() or ""


def sized(size: int) -> str:
    """Bytes for people: ``512 B``, ``4.2 KiB``, ``64.0 MiB``."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
