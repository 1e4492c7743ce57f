"""Findings as SARIF 2.1.0 (OASIS): ours, for code hosts and editors that show them at their lines, and those of other
tools, for audits; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import msgspec

from pmagent import __version__
from pmagent.audit.source import BadAudit
from pmagent.contracts.audit_events import PATH_CHARS_MAX, REPORTED_MAX, Reported
from pmagent.jobs.kinds import Source

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"


class SarifRule(NamedTuple):
    """``level``: error, warning or note; ``help``: the consequence, and what to change."""

    level: str
    title: str
    help: str


class SarifResult(NamedTuple):
    """``path`` relative to the repository, ``line`` from 1 (0: the file as a whole), ``link``: where a browser shows it
    ("": nowhere)."""

    rule: str
    level: str
    text: str
    path: str
    line: int
    link: str = ""


def sarif(
    rules: Mapping[str, SarifRule], results: Iterable[SarifResult], repository: str = "", commit: str = ""
) -> dict[str, Any]:
    """The document: one run, the rules that its results name, and the results in their order. ``repository``: the URI
    of what was examined, at ``commit`` ("": not known)."""
    found = list(results)
    named = [name for name in rules if any(one.rule == name for one in found)]
    driver = {
        "name": "pmagent",
        "version": __version__,
        "rules": [
            {
                "id": name,
                "shortDescription": {"text": rules[name].title},
                "help": {"text": rules[name].help},
                "defaultConfiguration": {"level": rules[name].level},
            }
            for name in named
        ],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, named.index(one.rule)) for one in found],
    }
    if repository and commit:
        run["versionControlProvenance"] = [{"repositoryUri": repository, "revisionId": commit}]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(one: SarifResult, number: int) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(one.path), "uriBaseId": "%SRCROOT%"}}
    if one.line:
        place["region"] = {"startLine": one.line}
    link = {"hostedViewerUri": one.link} if one.link else {}
    return {
        "ruleId": one.rule,
        "ruleIndex": number,
        "level": one.level,
        "message": {"text": one.text},
        "locations": [{"physicalLocation": place}],
        **link,
    }


# --- of other tools ------------------------------------------------------------------------------------------------

SARIF_BYTES_MAX: Final = 32 * 2**20
_LEVELS: Final[tuple[Literal["error", "warning", "note"], ...]] = ("error", "warning", "note")
_FORM: Final = "give a file of SARIF 2.1.0, e.g. of ruff check --output-format sarif, bandit -f sarif, semgrep --sarif"


def reported_by(sources: Sequence[Source], root: Path | None) -> list[Reported]:
    """The findings in SARIF files, the worst first, at most ``REPORTED_MAX``; those that were suppressed, are gone or
    have no file in the repository are left out. ``root``: the repository, where it lies on this machine. Raises
    BadAudit."""
    found = [one for source in sources for run in _runs(source) for one in _of_run(run, root)]
    return sorted(found, key=lambda one: _LEVELS.index(one.level))[:REPORTED_MAX]


def _runs(source: Source) -> list[Any]:
    try:
        log = msgspec.json.decode(source.content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAudit(f"{source.where} is no JSON: {error}", _FORM) from error
    runs = _at(log, "runs")
    if _at(log, "version") != "2.1.0" or not isinstance(runs, list):
        raise BadAudit(f"{source.where} is no SARIF 2.1.0: version or runs is missing, or another", _FORM)
    return runs


def _at(value: Any, *path: str | int) -> Any:
    """The part of a JSON value at this place; None: there is none."""
    for name in path:
        try:
            value = value[name]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _of_run(run: Any, root: Path | None) -> Iterator[Reported]:
    rules = {str(_at(one, "id")): one for one in _items(_at(run, "tool", "driver", "rules"))}
    for one in _items(_at(run, "results")):
        rule = str(_at(one, "ruleId") or _at(run, "tool", "driver", "rules", _at(one, "ruleIndex"), "id") or "")
        level = _at(one, "level") or _at(rules.get(rule), "defaultConfiguration", "level") or "warning"
        place = _at(one, "locations", 0, "physicalLocation")
        path, line = _path(_at(place, "artifactLocation", "uri"), root), _at(place, "region", "startLine")
        is_gone = _at(one, "kind") not in (None, "fail") or _at(one, "baselineState") == "absent"
        if level in _LEVELS and path and not is_gone and not _at(one, "suppressions"):
            yield Reported(
                tool=_short(_at(run, "tool", "driver", "name"), 100) or "a tool", rule=_short(rule, 200), level=level,
                path=path, line=max(line, 0) if isinstance(line, int) else 0,
                text=_short(_at(one, "message", "text"), 500),
            )  # fmt: skip


def _path(uri: object, root: Path | None) -> str:
    """The path in the repository, "/" between names; "" for what lies elsewhere."""
    try:
        parts = urlsplit(str(uri or ""))
    except ValueError:  # no address
        return ""
    path = PurePosixPath(unquote(parts.path))
    if path.is_absolute() and root is not None and path.is_relative_to(root):
        path = path.relative_to(root)
    is_ours = parts.scheme in ("", "file") and path.parts and not path.is_absolute() and ".." not in path.parts
    return str(path) if is_ours and len(str(path)) <= PATH_CHARS_MAX else ""


def _short(text: object, size: int) -> str:
    return " ".join(str(text or "").split())[:size]
