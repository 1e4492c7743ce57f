"""The evidence of a run, weighed: the caller's checks, and the reality summary beyond its verdicts; pure.

A caller's checks have any shape. All shapes name failure: ``ok: false``, ``unexpected_files: ["x"]``,
``recent_failures: 3``, ``status: "broken"``. A key whose words say failure counts when its value holds something; one
whose words say unsteadiness, or that not all was looked at, counts less: green now, not relied upon.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from pmagent.actors.oa.reasoning.rules.answer import finding
from pmagent.actors.oa.reasoning.rules.facts import KERNEL_STATUS, REALITY_SUMMARY, Facts
from pmagent.actors.oa.reasoning.rules.freshness import stale_key
from pmagent.actors.oa.reasoning.rules.text import listed, quoted
from pmagent.actors.oa.reasoning.rules.vocabulary import denied, stems, table
from pmagent.contracts.oa_documents import OADiagnostic
from pmagent.contracts.reasoning import ReasoningEnvelope

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
    """The objections in ``result``, the input called ``where``, in its own order. ``now``: the envelope's time."""
    found: list[Adverse] = []
    for key, value, path, weight in _entries(result, where):
        if (one := _judged(key, value, path, weight, now)) is not None:
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
    words = stems(key)
    past = isinstance(value, list | dict) and words & _V.past
    return bool(past or (isinstance(value, list) and words & _V.history))


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
    """The weight that a key's words announce. An undone failure ("no_errors", "fixed_issues") announces none."""
    words = stems(key)
    if words & _V.undone:
        return None
    if words & _V.old:
        return "stale"
    if words & (_V.unsteady | _V.partial) or (words & _V.bad and (words & _V.past or _WINDOW.search(key))):
        return "soft"
    return "hard" if words & _V.bad else None


def _judged(key: str, value: Any, path: str, inherited: Weight | None, now: str) -> Adverse | None:
    words = stems(key)
    if words & _V.good and not words & _V.undone and _refuted(value):
        return Adverse("soft" if value is None or words & _V.past else "hard", f"{path} is {quoted(value)}")
    if value is False and words & _V.whole:
        return Adverse("soft", f"{path} is false")
    if value is False and words & _V.undone and words & _V.bad:
        return Adverse("hard", f"{path} is false")
    if _is_history(key, value):
        return _past(value, path, now)
    weight = _weight(key) or inherited
    if weight is not None:
        return _holds(weight, value, path)
    if words & _V.impact and isinstance(value, str) and stems(value) & _V.large:
        return Adverse("impact", f"{path} is {quoted(value)}")
    if words & _V.verdicts and isinstance(value, str):
        stated = _weight(value)
        return Adverse("soft" if words & _V.past else stated, f"{path} is {quoted(value)}") if stated else None
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
    """The name of a list's entry, if it is an object that has one; else the entry."""
    if isinstance(item, dict):
        for key in ("name", "check", "message", "text", "path", "id"):
            if isinstance(item.get(key), str):
                return item[key]
    return item


PIECES_MAX = 200
"""So many of the caller's checks are read; more are an input that nobody can answer for."""

_KNOWN = frozenset(("reality_green", "checks", "timestamp", "provisional", "passed_checks", "failed_checks", "mode"))


def weighed(envelope: ReasoningEnvelope, facts: Facts) -> tuple[list[Adverse], list[OADiagnostic]]:
    """The objections to the operation, and the flaws of the evidence itself.

    The caller's checks count whatever their shape; of the reality summary and the kernel's status only top-level values
    with names that the contract does not know, for a check that passed may well list things.
    """
    found: list[Adverse] = []
    problems: list[OADiagnostic] = []
    known: dict[str, Any] = {}
    for where, summary in _summaries(envelope, facts):
        scalars = {
            key: value
            for key, value in summary.items()
            if key not in _KNOWN and not isinstance(value, dict | list) and (key not in known or known[key] != value)
        }
        known |= scalars
        found += adverse(scalars, where, envelope.timestamp)
    given = envelope.oa_context.get("evidence")
    if given is not None and not isinstance(given, list):
        problems.append(finding("evidence", "warn", f"oa_context.evidence is {quoted(given)}, not a list"))
        given = None
    pieces: list[Any] = given or []
    found += _checks(pieces[:PIECES_MAX], envelope.timestamp, problems)
    if len(pieces) > PIECES_MAX:
        message = f"oa_context.evidence holds {len(pieces)} results, of which {PIECES_MAX} are read"
        found.append(Adverse("hard", message))
    return list({one.what: one for one in found}.values()), problems


def _checks(pieces: list[Any], now: str, problems: list[OADiagnostic]) -> list[Adverse]:
    """The objections of the caller's checks, in their order. A check that failed and, run again, passes is unsteady."""
    reports: list[tuple[str, list[Adverse]]] = []
    for number, piece in enumerate(pieces):
        where = f"oa_context.evidence[{number}]"
        if not isinstance(piece, dict):
            problems.append(finding("evidence", "warn", f"{where} is {quoted(piece)}, not an object"))
            continue
        source = piece.get("source")
        name = source.strip() if isinstance(source, str) else ""
        where += f" ({quoted(name, 80)})" if name else ""
        result = piece.get("result", {key: value for key, value in piece.items() if key != "source"})
        if result in (None, "", {}):
            problems.append(finding("evidence", "warn", f"{where} has no result: it proves nothing"))
            continue
        reports.append((name, adverse(result if isinstance(result, dict | list) else _scalar(result), where, now)))
    found: list[Adverse] = []
    for number, (name, against) in enumerate(reports):
        passes = any(name and name == later and not _fails(findings) for later, findings in reports[number + 1 :])
        found += [_unsteady(one) if passes and one.weight == "hard" else one for one in against]
    return found


def _scalar(result: Any) -> dict[str, Any]:
    """A result that is a bare verdict, under the name that it would have in an object."""
    return {"verdict": result} if isinstance(result, str) else {"ok": result}


def _fails(findings: list[Adverse]) -> bool:
    return any(one.weight == "hard" for one in findings)


def _unsteady(one: Adverse) -> Adverse:
    return Adverse("soft", f"{one.what}, though the same check passes later")


def _summaries(envelope: ReasoningEnvelope, facts: Facts) -> list[tuple[str, dict[str, Any]]]:
    live = [(tool, answer) for tool in (REALITY_SUMMARY, KERNEL_STATUS) for answer in facts.results.get(tool, [])]
    return [*live, ("reality_summary", envelope.kernel_state_ref.reality_summary)]
