"""The entries of the reality summary for the configured checks; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pmagent.actors.checks.results import details, not_run
from pmagent.contracts.checks import CheckResult
from pmagent.workspace.documents import CONFIGURED, Content

REFRESH: Final = "pmagent kernel refresh"


def contents(configured: Iterable[str], results: Iterable[CheckResult]) -> list[Content]:
    """An entry for each check that is ``configured`` by now. One without a result has not been run, and not passed."""
    known = {result.name: result for result in results}
    return [_content(known.get(name) or not_run(name, "nobody has run it yet", REFRESH)) for name in configured]


def _content(result: CheckResult) -> Content:
    payload = {"source": CONFIGURED, **details(result)}
    return {"name": result.name, "passed": result.passed, "message": result.message, "details": payload}
