"""Real sources for audits: a repository and its report, made once a test run; rubrics that are quick to judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from examples.audited.make_report import make_report
from examples.audited.make_repository import make_repository
from tests.support.audits import RULES, dimension
from tests.support.commands import pmagent

RUBRIC: dict[str, Any] = {
    "rubric_metadata": {"rubric_name": "Two criteria", "grading_target": "agents", "version": "1.0"},
    "dimensions": [
        dimension("state"),
        dimension("accuracy", "pdf_report", goals=["report.verified", "report.hallucinated"]),
    ],
    "synthesis_rules": RULES,
}
"""A criterion of the code, and one of the report."""


class Sources:
    """``repository`` is a git repository, ``report`` its PDF, ``rubric`` the file of ``RUBRIC``."""

    def __init__(self, folder: Path) -> None:
        self.repository = folder / "depcheck"
        self.report = folder / "depcheck.pdf"
        self.rubric = folder / "rubric.json"
        make_repository(self.repository)
        make_report(self.report)
        self.rubric.write_text(json.dumps(RUBRIC))

    @property
    def arguments(self) -> tuple[str, str, str]:
        """The command's."""
        return "audit", str(self.repository), str(self.report)

    @property
    def quick(self) -> tuple[str, ...]:
        """The command's, with the rubric of two criteria."""
        return (*self.arguments, "--rubric", str(self.rubric))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """A repository and its report; audits only read them."""
    return Sources(tmp_path_factory.mktemp("sources"))


def assert_proven(workspace: Path) -> None:
    """The log is whole and replays, the documents are those of the log, and no clone is left."""
    for words in (("log", "verify"), ("replay",), ("rebuild", "--check")):
        done = pmagent(workspace, *words)
        assert done.code == 0, done.text + done.errors
    folder = workspace / ".pmagent" / "audits"
    assert not folder.exists() or not list(folder.iterdir())
