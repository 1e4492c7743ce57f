"""The commits of the audited branch, read by git log, and what their times tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Final, Protocol

import msgspec

from pmagent.contracts.audit_facts import COMMITS_SHOWN, Changes, Commit, History

MESSAGE_CHARS: Final = 300
BURST_SECONDS: Final = 30 * 60
COUNTED_MAX: Final = 5_000
"""Of so many commits the lines are counted."""
_HOUR: Final = 3_600
_GROWING: Final = 0.05
_CODE: Final = frozenset((
    "py", "pyi", "ipynb", "js", "jsx", "ts", "tsx", "mjs", "vue", "svelte", "go", "rs", "java", "kt", "scala", "rb",
    "php", "c", "h", "cc", "cpp", "hpp", "cs", "swift", "sh", "sql", "ex", "exs", "clj", "lua", "r", "jl", "html",
    "css",
))  # fmt: skip
"""Endings of code: locks, data and prose can be large without any work in them."""

_LOG_BYTES: Final = 256 * 2**20
_SHOWN_BYTES: Final = 16 * 2**20
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_RAW: Final = re.compile(r"(-?\d{1,18}) ([+-])(\d{2})(\d{2})")


class Asks(Protocol):
    """git, asked of a repository; see ``Clone.ask``."""

    def __call__(self, *arguments: str, output_bytes: int = ..., stdin: bytes = ...) -> bytes:
        """Standard output. Raises SourceFailed."""


class Moment(msgspec.Struct, frozen=True):
    """A commit and its committer's time: seconds since 1970, and seconds east of Greenwich."""

    commit: str
    at: int
    east: int


def history(ask: Asks, ref: str) -> History:
    """The history of ``ref``. Raises SourceFailed."""
    moments = _moments(ask, ref)
    shown = (
        moments if len(moments) <= COMMITS_SHOWN else [*moments[: COMMITS_SHOWN // 2], *moments[-COMMITS_SHOWN // 2 :]]
    )
    times = sorted(moment.at for moment in moments)
    return History(
        total=len(moments),
        shown=_told(ask, shown),
        span_s=times[-1] - times[0] if times else 0,
        burst=burst(times),
        cut=ask("rev-parse", "--is-shallow-repository").strip() == b"true",
        changes=_changes(ask, ref, times[0]) if 0 < len(moments) <= COUNTED_MAX else None,
    )


def every_commit(ask: Asks, ref: str) -> list[Commit]:
    """All commits of ``ref``, oldest first. Raises SourceFailed."""
    return _told(ask, _moments(ask, ref))


def burst(times: Sequence[int]) -> float:
    """The largest share of the (ascending) ``times`` that lie within half an hour; 0 where there are none."""
    most = first = 0
    for last, time in enumerate(times):
        while time - times[first] > BURST_SECONDS:
            first += 1
        most = max(most, last - first + 1)
    return round(most / len(times), 4) if times else 0.0


def stamp(at: int, east: int) -> str:
    """A time as RFC 3339 with its offset; "" for one that no calendar has."""
    try:
        return datetime.fromtimestamp(at, timezone(timedelta(seconds=east))).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def _moments(ask: Asks, ref: str) -> list[Moment]:
    """The commits of ``ref``, oldest first: each after its parents, and otherwise by time."""
    told = ask("log", "--date-order", "--reverse", "--date=raw", "--format=%H %cd", ref, "--", output_bytes=_LOG_BYTES)
    return [_moment(line) for line in told.decode("ascii", "replace").splitlines()]


def _moment(line: str) -> Moment:
    commit, _, raw = line.partition(" ")
    found = _RAW.fullmatch(raw.strip())
    if found is None:  # git gives 0 for what it cannot read, and nothing for less
        return Moment(commit, 0, 0)
    seconds, sign, hours, minutes = found.groups()
    east = int(hours) * 3600 + int(minutes) * 60
    return Moment(commit, int(seconds), (-east if sign == "-" else east) if east < 86_400 else 0)


def _changes(ask: Asks, ref: str, first: int) -> Changes:
    told = ask(
        "log", "--no-merges", "--no-ext-diff", "--no-textconv", "--numstat", "-M", "-w", "--ignore-blank-lines",
        "--date=raw", "--format=%x00%cd", ref, "--",
        output_bytes=_LOG_BYTES,
    )  # fmt: skip
    code: list[tuple[int, int]] = []
    empty = 0
    for record in told.decode("utf-8", "replace").split("\0")[1:]:
        when, *rows = record.strip().split("\n")
        at = _moment(f"- {when}").at
        counted = [_row(row) for row in rows if row]
        empty += not any(lines for lines, _is_code in counted)
        code.append((at, sum(lines for lines, is_code in counted if is_code and lines > 0)))
    added = sum(lines for _, lines in code)
    early = sum(lines for at, lines in code if at - first <= _HOUR)
    return Changes(
        added=added,
        largest=_share(max((lines for _, lines in code), default=0), added),
        first_hour=_share(early, added),
        empty=empty,
        growing=sum(lines >= _GROWING * added and lines > 0 for _, lines in code),
    )


def _row(row: str) -> tuple[int, bool]:
    """The lines that a commit added to a file (-1: it only removed some, or the file is no text), and whether it is
    code."""
    added, _, rest = row.partition("\t")
    removed, _, path = rest.partition("\t")
    ending = path.rstrip("}\"").rpartition(".")[2].lower()
    lines = int(added) if added.isdigit() else -1
    return (lines or (-1 if removed not in ("", "0") else 0)), ending in _CODE


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _told(ask: Asks, moments: Sequence[Moment]) -> list[Commit]:
    """The commits with the first lines of their messages."""
    if not moments:
        return []
    wanted = "".join(f"{moment.commit}\n" for moment in moments).encode()
    told = ask(
        "log", "--no-walk=unsorted", "--stdin", "--format=%H %s", "-z",
        stdin=wanted, output_bytes=max(_SHOWN_BYTES, len(moments) * 1024),
    )  # fmt: skip
    subjects: dict[str, str] = {}
    for record in told.decode("utf-8", "replace").split("\0"):
        commit, _, subject = record.partition(" ")
        subjects[commit] = _CONTROL.sub(" ", subject).strip()[:MESSAGE_CHARS]
    return [
        Commit(commit=moment.commit, message=subjects.get(moment.commit, ""), timestamp=stamp(moment.at, moment.east))
        for moment in moments
    ]
