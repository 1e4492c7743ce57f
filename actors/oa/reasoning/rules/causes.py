"""The causes that a guard's report names, whatever its shape; pure.

Guards share little more than ``ok``: one lists mismatches, another issues, a third a map of checks. Each of these
names causes; a cause has a depth, for what lies deeper explains what lies above it (a missing surface fails every
comparison).
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from pmagent.actors.oa.reasoning.rules.facts import listing, mapping
from pmagent.actors.oa.reasoning.rules.text import listed, quoted
from pmagent.actors.oa.reasoning.rules.vocabulary import denied, stems, table, texts

LOG, MISSING, INVALID, UNREACHABLE, INCOHERENT, FAILED, FOLLOWS = range(7)
"""Depths of causes: what is smaller lies deeper. ``FOLLOWS``: it is what a failed check leads to."""

KINDS = (
    "the log is damaged", "a surface is missing", "a surface is not valid", "a service or an output cannot be read",
    "surfaces contradict each other", "a check failed", "reality is not green",
)

FAILED_CHECK = "failed check: "
"""How a cause begins that tells of one; the check's name follows."""

_DERIVED = "share/orchestrator_assistant/STATE.json"
"""A document that is made of the surfaces: it can be missing because they are, never the other way round."""

CAUSES_MAX = 100
ENTRIES_MAX = 50

_V = table("causes")

_CATEGORIES = texts("causes.categories")
_LISTS = texts("causes.lists")
_DEPTHS = {"missing": MISSING, "invalid": INVALID, "incoherent": INCOHERENT, "failed": FAILED, "told": None}
"""Depths as the vocabulary names them; None: what an entry says tells its depth."""

_MODES = {
    "db_off": "the database is not reachable (mode db_off)",
    "partial": "the database answers in part (mode partial)",
}


class Cause(msgspec.Struct, frozen=True):
    """One cause: how deep it lies, what it says, what would mend it ("" unknown), and whether it may pass by itself."""

    depth: int
    text: str
    mend: str = ""
    passing: bool = False


def causes(report: dict[str, Any]) -> list[Cause]:
    """The causes that a report names, the deepest first, equal ones in the order of the report.

    A diagnostic that only warns is a cause when nothing worse is there. A cause that lists and diagnostics both name is
    one.
    """
    explained = [entry for entry in listing(report.get("diagnostics"))[:ENTRIES_MAX] if isinstance(entry, dict)]
    found: list[Cause] = []
    for part in (report, mapping(report.get("details"))):
        found += _lists(part, explained)
        found += _checks(part.get("checks"))
    for entry in listing(report.get("diagnostics"))[:ENTRIES_MAX]:
        if not _is_mismatch_of(entry, report):
            found += _diagnostic(entry)
    mode = report.get("mode")
    if isinstance(mode, str) and mode in _MODES:
        found.append(Cause(UNREACHABLE, _MODES[mode], "start the database, or mend its address", passing=True))
    alignment = report.get("dms_share_alignment")
    if alignment in ("BROKEN", "ERROR", "UNKNOWN"):
        found.append(Cause(INCOHERENT, f"dms_share_alignment is {alignment}"))
    for key in ("stderr", "output"):
        if isinstance(report.get(key), str) and report[key].strip() and not found:
            inner = spoken(report[key])
            depth = min(inner.depth, UNREACHABLE)
            found.append(Cause(depth, f"its {key} says: {inner.text}", inner.mend, inner.passing))
    if not found:
        found = [cause for entry in explained if _warns(entry) for cause in _diagnostic(entry, warnings=True)]
    return ranked(found)


def _warns(entry: dict[str, Any]) -> bool:
    return entry.get("severity") == "warn"


def _is_mismatch_of(entry: Any, report: dict[str, Any]) -> bool:
    """Whether the diagnostic repeats one of the report's mismatches."""
    checks = [mismatch.get("check") for mismatch in listing(report.get("mismatches")) if isinstance(mismatch, dict)]
    check = _detail(entry, "check")
    return check is not None and check in checks


def _detail(entry: Any, key: str) -> Any:
    return mapping(entry.get("details")).get(key) if isinstance(entry, dict) else None


def ranked(found: list[Cause]) -> list[Cause]:
    """The causes by depth, each text once; what a failed check leads to stands behind it."""
    each: dict[str, Cause] = {}
    for cause in found:
        known = each.setdefault(cause.text, cause)
        if cause.mend and not known.mend:
            each[cause.text] = msgspec.structs.replace(known, mend=cause.mend)
    failed = [name for cause in found if (name := failed_check(cause.text))]
    settled = [_settled(cause, failed) for cause in each.values()]
    return sorted(settled, key=lambda cause: (cause.depth, cause.text.startswith(_DERIVED)))[:CAUSES_MAX]


def failed_check(text: str) -> str:
    """The name of the check whose failure ``text`` tells; "" when it tells of something else."""
    return text.removeprefix(FAILED_CHECK).partition(": ")[0] if text.startswith(FAILED_CHECK) else ""


def _settled(cause: Cause, failed: list[str]) -> Cause:
    """The cause, behind the failed checks where it only tells of them: that reality is therefore not green, or that
    another surface has not heard of it yet."""
    subject = cause.text.partition(": ")[0]
    late = cause.depth == INCOHERENT and bool(failed) and (subject in _REALITY or subject in failed)
    return msgspec.structs.replace(cause, depth=FOLLOWS) if late or _NOT_GREEN.search(cause.text) else cause


_REALITY = ("reality", "reality_green")
_NOT_GREEN = re.compile(r"(?:^|: )reality_green is false$")


def spoken(text: str, default: int = FAILED) -> Cause:
    """A cause in words: its depth is that of the deepest thing that they name. The name of a path says nothing of its
    state."""
    if text.startswith("check failed: "):
        return Cause(FAILED, FAILED_CHECK + quoted(text.removeprefix("check failed: ")))
    words = stems(_PATH.sub(" ", text[:2_000]))
    passing = bool(words & _V.passing)
    depth = default
    if words & _V.damage and words & _V.log:
        depth = LOG
    elif words & _V.absent or "no such file" in text[:2_000].lower() or ("not" in words and "found" in words):
        depth = MISSING
    elif words & _V.service or words & _V.unparsed:
        depth = UNREACHABLE
    elif words & _V.invalid or {"not", "valid"} <= words or {"cannot", "read"} <= words:
        depth = INVALID
    elif words & _V.incoherent or text[:2_000].count(" says ") > 1:
        depth = INCOHERENT
    return Cause(depth, quoted(text), passing=passing)


_PATH = re.compile(r"(?<!\S)\S*[\w-]/[\w./-]+|(?<![\w-])[\w-]+\.(?:json|jsonl|md|py|yaml|toml)\b")
"""Looked for only where a word begins, so that a long one is gone through once."""


def _diagnostic(entry: Any, *, warnings: bool = False) -> list[Cause]:
    """An OADiagnostic, or what looks like one: those that only inform are no causes, and ``warnings`` only if asked."""
    if isinstance(entry, str):
        return [] if denied(entry) else [spoken(entry)]
    if not isinstance(entry, dict) or entry.get("severity") == "info" or (_warns(entry) and not warnings):
        return []
    message = entry.get("message")
    if not isinstance(message, str) or not message.strip():
        return []
    cause = spoken(message)
    category = entry.get("category")
    named = _DEPTHS[_CATEGORIES[category]] if isinstance(category, str) and category in _CATEGORIES else None
    depth = cause.depth if named is None else named
    if cause.depth == LOG:
        depth = LOG
    return [Cause(depth, cause.text, _mend(entry), cause.passing)]


def _lists(part: dict[str, Any], explained: list[dict[str, Any]]) -> list[Cause]:
    """The causes that a part of the report lists. A missing surface that a diagnostic names is left to that one."""
    named = {path for entry in explained if isinstance(path := _detail(entry, "path"), str)}
    found = []
    for key, name in _LISTS.items():
        depth, value = _DEPTHS[name], part.get(key)
        single = isinstance(mapping(value).get("message"), str) or (isinstance(value, str) and not denied(value))
        entries = [value] if single else listing(value)[:ENTRIES_MAX]
        for entry in entries:
            if entry in (None, "", [], {}) or (depth == MISSING and isinstance(entry, str) and entry in named):
                continue
            found.append(_entry(key, entry, depth, explained))
    return found


def _entry(key: str, entry: Any, depth: int | None, explained: list[dict[str, Any]]) -> Cause:
    if isinstance(entry, dict):
        check = entry.get("check")
        if check is not None and ("expected" in entry or "actual" in entry):
            mends = [_mend(one) for one in explained if _detail(one, "check") == check]
            return Cause(INCOHERENT, _mismatch(entry), next(iter(mends), ""))
        texts = [entry[name] for name in ("message", "text", "name", "error") if isinstance(entry.get(name), str)]
        cause = spoken(texts[0]) if texts else Cause(FAILED, f"{key}: {quoted(entry)}")
        return Cause(cause.depth if depth is None else depth, cause.text, _mend(entry), cause.passing)
    if depth is not None:
        return Cause(depth, _PHRASES.get(key, f"{key}: {{}}").format(quoted(entry)))
    return spoken(entry) if isinstance(entry, str) else Cause(FAILED, f"{key}: {quoted(entry)}")


_PHRASES = {
    "missing_surfaces": "{} is missing",
    "failed_checks": FAILED_CHECK + "{}",
    "failing_checks": FAILED_CHECK + "{}",
}


def _mend(entry: dict[str, Any]) -> str:
    mend = entry.get("remediation")
    return quoted(mend) if isinstance(mend, str) else ""


def _mismatch(entry: dict[str, Any]) -> str:
    """A mismatch in words: what each surface says."""
    surfaces = [quoted(surface) for surface in listing(entry.get("surfaces"))]
    one, other = (surfaces[0], surfaces[-1]) if len(surfaces) > 1 else ("one surface", "another")
    text = f"{quoted(entry.get('check'))}: {one} says {quoted(entry.get('expected'))}"
    return f"{text}, {other} says {quoted(entry.get('actual'))}"


def _checks(checks: Any) -> list[Cause]:
    """The failed ones of checks: a map of names to true or false, or a list of objects."""
    named: list[tuple[Any, Any, Any]] = []
    if isinstance(checks, dict):
        named = [(name, verdict, None) for name, verdict in checks.items()]
    for check in listing(checks):
        if isinstance(check, dict):
            verdict = check.get("passed", check.get("ok", check.get("status")))
            named.append((check.get("name", "(without a name)"), verdict, check.get("message")))
    failed = [(name, message) for name, verdict, message in named if _failed(verdict)][:ENTRIES_MAX]
    return [_check(name, message) for name, message in failed]


def _failed(verdict: Any) -> bool:
    return verdict is False or (isinstance(verdict, str) and verdict.strip().lower() in _V.failed)


def _check(name: Any, message: Any) -> Cause:
    text = f": {quoted(message)}" if isinstance(message, str) and message.strip() else ""
    passing = isinstance(message, str) and spoken(message).passing
    return Cause(FAILED, f"{FAILED_CHECK}{quoted(name)}{text}", passing=passing)


def summary(found: list[Cause]) -> str:
    """The causes in one text, the deepest first."""
    return listed(cause.text for cause in found)
