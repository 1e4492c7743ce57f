"""Findings as SARIF 2.1.0 (OASIS): ours, for code hosts and editors that show them at their lines, and those of other
tools, for audits; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import msgspec

from pmagent import __version__
from pmagent.audit.source import BadAudit
from pmagent.contracts.audit_events import REPORTED_MAX, Reported
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
_LEVELS: Final = {"error": "error", "warning": "warning", "note": "note"}


class _Text(msgspec.Struct):
    text: str = ""


class _Setting(msgspec.Struct):
    level: str = "warning"


class _Rule(msgspec.Struct, rename="camel"):
    id: str = ""
    default_configuration: _Setting = msgspec.field(default_factory=_Setting)


class _Driver(msgspec.Struct):
    name: str
    rules: list[_Rule] = []


class _Tool(msgspec.Struct):
    driver: _Driver


class _Artifact(msgspec.Struct):
    uri: str = ""


class _Region(msgspec.Struct, rename="camel"):
    start_line: int = 0


class _Physical(msgspec.Struct, rename="camel"):
    artifact_location: _Artifact = msgspec.field(default_factory=_Artifact)
    region: _Region = msgspec.field(default_factory=_Region)


class _Location(msgspec.Struct, rename="camel"):
    physical_location: _Physical = msgspec.field(default_factory=_Physical)


class _Found(msgspec.Struct, rename="camel"):
    message: _Text = msgspec.field(default_factory=_Text)
    rule_id: str = ""
    rule_index: int = -1
    level: str = ""
    kind: str = "fail"
    baseline_state: str = ""
    locations: list[_Location] = []
    suppressions: list[Any] = []


class _Run(msgspec.Struct):
    tool: _Tool
    results: list[_Found] | None = None


class _Log(msgspec.Struct):
    version: str
    runs: list[_Run]


def reported_in(source: Source, root: Path | None) -> list[Reported]:
    """The findings in a SARIF file, the worst first, at most ``REPORTED_MAX``; those that were suppressed, are gone or
    have no file are left out. ``root``: the repository, where it lies on this machine. Raises BadAudit."""
    try:
        log = msgspec.json.decode(source.content, type=_Log)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAudit(f"{source.where} is no SARIF: {error}"[:500], _SARIF) from error
    if log.version != "2.1.0":
        raise BadAudit(f"{source.where} is SARIF {log.version[:20]!r}", _SARIF)
    found = [one for run in log.runs for one in _of_run(run, root)]
    return sorted(found, key=lambda one: list(_LEVELS).index(one.level))[:REPORTED_MAX]


_SARIF: Final = "give a file of SARIF 2.1.0, e.g. of ruff check --output-format sarif, bandit -f sarif, semgrep --sarif"


def _of_run(run: _Run, root: Path | None) -> Iterator[Reported]:
    rules = run.tool.driver.rules
    for one in run.results or ():
        rule = rules[one.rule_index] if 0 <= one.rule_index < len(rules) else None
        rule = rule or next((each for each in rules if each.id == one.rule_id), None)
        level = one.level or (rule.default_configuration.level if rule is not None else "warning")
        place = one.locations[0].physical_location if one.locations else _Physical()
        path = _path(place.artifact_location.uri, root)
        gone = one.kind != "fail" or one.baseline_state == "absent" or one.suppressions
        if level in _LEVELS and path and not gone:
            yield Reported(
                tool=_short(run.tool.driver.name, 100) or "a tool",
                rule=_short(one.rule_id or (rule.id if rule is not None else ""), 200),
                level=level,  # type: ignore[arg-type]
                path=path, line=max(place.region.start_line, 0), text=_short(one.message.text, 500),
            )  # fmt: skip


def _path(uri: str, root: Path | None) -> str:
    """The path in the repository, "/" between names; "" for what lies elsewhere."""
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        return ""
    path = PurePosixPath(unquote(parts.path))
    if path.is_absolute():
        if root is None or not path.is_relative_to(root):
            return ""
        path = path.relative_to(root)
    return "" if ".." in path.parts or not path.parts else str(path)


def _short(text: str, size: int) -> str:
    return " ".join(text.split())[:size]


def reported_by(sources: Sequence[Source], root: Path | None) -> list[Reported]:
    """The findings in all of these files."""
    return [one for source in sources for one in reported_in(source, root)][:REPORTED_MAX]
