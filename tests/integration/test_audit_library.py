"""The audit for other programs: by itself, without a workspace and a log."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pmagent.audit
from events.errors import PmagentError
from pmagent.audit import AuditFailed, AuditReport, run_audit
from projections.audits.report import report_markdown
from tests.support.audited import Sources


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """A repository and its report; audits only read them."""
    return Sources(tmp_path_factory.mktemp("sources"))


def test_an_audit_by_itself_leaves_its_report_where_it_is_wanted(
    sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sources.repository.parent)
    made = run_audit("depcheck", "depcheck.pdf", str(sources.rubric), str(tmp_path / "out"))
    assert [one.dimension_id for one in made.criteria] == ["state", "accuracy"]
    assert (made.engine, made.rubric_name) == ("rules", "Two criteria")
    assert (tmp_path / "out" / "report_depcheck.md").read_text() == report_markdown(made)
    document = json.loads((tmp_path / "out" / "report_depcheck.json").read_bytes())
    assert AuditReport.model_validate(document["report"]) == made
    assert document["provenance"] is None, "there is no log that it came from"


@pytest.mark.parametrize(
    ("repository", "pdf", "rubric", "output", "code"),
    [
        ("nowhere", "depcheck.pdf", "rubric.json", None, 2),
        ("depcheck", "depcheck.pdf", "none.json", None, 2),
        ("depcheck", "depcheck.pdf", "rubric.json", "rubric.json", 2),
        ("depcheck", "none.pdf", "rubric.json", None, 1),
    ],
)
def test_an_audit_that_cannot_be_says_why_and_writes_nothing(
    sources: Sources, repository: str, pdf: str, rubric: str, output: str | None, code: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(sources.repository.parent)
    before = sorted(Path.cwd().iterdir())
    with pytest.raises(PmagentError) as caught:
        run_audit(repository, pdf, rubric, output)
    assert caught.value.exit_code == code
    assert caught.value.hint
    assert not isinstance(caught.value, AuditFailed) or caught.value.code == "pdf_missing"
    assert sorted(Path.cwd().iterdir()) == before


def test_everything_that_is_named_is_there_and_only_what_is_asked_for_is_imported(tmp_path: Path) -> None:
    assert set(pmagent.audit.__all__) <= set(dir(pmagent.audit))
    for name in pmagent.audit.__all__:
        assert getattr(pmagent.audit, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = pmagent.audit.nothing_of_the_kind
    program = "import pmagent.audit, sys; print(*({'pydantic', 'langgraph', 'langchain_core'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-I", "-c", program], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.strip() == b""
