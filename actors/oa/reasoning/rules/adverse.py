"""What the results of checks say against an operation; pure, and by the words of their keys alone.

A caller's checks have any shape. What every shape has in common is that failure is named: ``ok: false``,
``unexpected_files: ["x"]``, ``recent_failures: 3``, ``status: "broken"``. A key whose words say failure counts when its
value holds something; one whose words say unsteadiness, or that not all was looked at, counts less: green now, not
relied upon.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from pmagent.actors.oa.reasoning.rules.freshness import stale_key
from pmagent.actors.oa.reasoning.rules.text import listed, quoted
from pmagent.actors.oa.reasoning.rules.vocabulary import denied, stems, table

Weight = Literal["hard", "soft", "stale", "impact"]
"""hard: it failed. soft: it may fail again, or not all was looked at. stale: it is too old to count. impact: what is at
stake is large."""

FOUND_MAX = 50
DEPTH_MAX = 12
VISITED_MAX = 20_000

_V = table("adverse")
_WINDOW = re.compile(r"(?:^|[_\W])(?:last[_\W]?[0-9]+|[0-9]+(?:h|d|m|w|hours?|days?|weeks?))(?:$|[_\W])", re.IGNORECASE)
"""A key that counts over a stretch of time: "failures_24h", "failed_in_last_5"."""


class Adverse(msgspec.Struct, frozen=True):
    """One thing that a result says against: ``what`` names the input and what it holds."""

    weight: Weight
    what: str
    items: list[str] = []


def adverse(result: Any, where: str, now: str) -> list[Adverse]:
    """What ``result``, the input called ``where``, says against; in its own order. ``now``: the envelope's time."""
    found: list[Adverse] = []
    for key, value, path, weight in _entries(result, where):
        one = _judged(key, value, path, weight, now)
        if one is not None:
            found.append(one)
            if len(found) == FOUND_MAX:
                break
    return found


def _entries(result: Any, where: str) -> Iterator[tuple[str, Any, str, Weight | None]]:
    """Key, value, path and inherited weight of all that is nested in objects, depth first."""
    pending: list[tuple[str, Any, str, Weight | None, int]] = [("", result, where, None, 0)]
    for _ in range(VISITED_MAX):
        if not pending:
            return
        key, value, path, weight, depth = pending.pop()
        if depth:
            yield key, value, path, weight
            weight = weight or (_weight(key) if isinstance(value, dict) else None)
        if depth == DEPTH_MAX or _is_history(key, value):
            continue
        inner: list[tuple[str, Any]] = []
        if isinstance(value, dict):
            inner = [(name if isinstance(name, str) else str(name), held) for name, held in value.items()]
        elif isinstance(value, list) and weight is None and not _weight(key):
            inner = [(str(number), held) for number, held in enumerate(value) if isinstance(held, dict)]
        for name, held in reversed(inner):
            pending.append((name, held, f"{path}.{quoted(name, 60)}", weight, depth + 1))


def _is_history(key: str, value: Any) -> bool:
    """Whether the value tells of several runs, or of earlier ones, rather than of how things are."""
    said = stems(key)
    return bool((isinstance(value, list) and said & _V.history) or (isinstance(value, list | dict) and said & _V.past))


def _past(value: Any, path: str, now: str) -> Adverse | None:
    """A history speaks against when runs in it failed: as unsteadiness, or as failure when all did."""
    runs = value if isinstance(value, list) else [value]
    failed = [run for run in runs[:FOUND_MAX] if _failed(run, now)]
    if not failed:
        return None
    lasting = isinstance(value, list) and len(failed) == len(runs)
    return Adverse("hard" if lasting else "soft", f"{path} tells of {len(failed)} failed of {len(runs)} runs")


def _failed(run: Any, now: str) -> bool:
    if isinstance(run, dict):
        return any(one.weight == "hard" for one in adverse(run, "run", now))
    return run is False or (isinstance(run, str) and bool(stems(run) & (_V.refuting | _V.bad)))


def _weight(key: str) -> Weight | None:
    """What a key's words announce. An undone failure ("no_errors", "fixed_issues") announces none."""
    said = stems(key)
    if said & _V.undone:
        return None
    if said & _V.old:
        return "stale"
    if said & (_V.unsteady | _V.partial) or (said & _V.bad and (said & _V.past or _WINDOW.search(key))):
        return "soft"
    return "hard" if said & _V.bad else None


def _judged(key: str, value: Any, path: str, inherited: Weight | None, now: str) -> Adverse | None:
    said = stems(key)
    if said & _V.good and not said & _V.undone and _refuted(value):
        return Adverse("soft" if value is None or said & _V.past else "hard", f"{path} is {quoted(value)}")
    if value is False and said & _V.whole:
        return Adverse("soft", f"{path} is false")
    if value is False and said & _V.undone and said & _V.bad:
        return Adverse("hard", f"{path} is false")
    if _is_history(key, value):
        return _past(value, path, now)
    weight = _weight(key) or inherited
    if weight is not None:
        return _holds(weight, value, path)
    if said & _V.impact and isinstance(value, str) and stems(value) & _V.large:
        return Adverse("impact", f"{path} is {quoted(value)}")
    if said & _V.verdicts and isinstance(value, str):
        stated = _weight(value)
        return Adverse("soft" if said & _V.past else stated, f"{path} is {quoted(value)}") if stated else None
    old = stale_key(key, value, now, path)
    return Adverse("stale", old) if old else None


def _refuted(value: Any) -> bool:
    """Whether a key that says success does not hold it; no verdict at all (null) is no success either."""
    if isinstance(value, str):
        return bool(stems(value) & _V.refuting)
    return value is None or (isinstance(value, bool | int | float) and not value)


def _holds(weight: Weight, value: Any, path: str) -> Adverse | None:
    """The finding of a key that announces something, if its value holds anything at all."""
    match value:
        case True:
            return Adverse(weight, f"{path} is true")
        case list():
            items = [quoted(_named(item)) for item in value if item not in (None, "", [], {})]
            return Adverse(weight, f"{path} holds {listed(items[:5], ', ')}", items) if items else None
        case int() | float() if not isinstance(value, bool):
            return Adverse(weight, f"{path} is {quoted(value)}") if value > 0 else None
        case str():
            return None if denied(value) else Adverse(weight, f"{path} is {quoted(value)}", [quoted(value)])
    return None


def _named(item: Any) -> Any:
    """What an entry of a list is called, if it is an object that says so."""
    if isinstance(item, dict):
        for key in ("name", "check", "message", "text", "path", "id"):
            if isinstance(item.get(key), str):
                return item[key]
    return item
