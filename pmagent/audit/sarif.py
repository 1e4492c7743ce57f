"""Findings as SARIF 2.1.0 (OASIS), for code hosts and editors that show them at their lines; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from pmagent import __version__

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
