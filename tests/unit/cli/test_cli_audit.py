"""``pmagent audits`` and ``cancel`` where runs and audits stand side by side; what there is not is said."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from pmagent.jobs import catalogue
from tests.support.cases import each
from tests.support.commands import Ran, pmagent
from tests.support.sandboxes import needs_sandbox

RUN = UUID("0b0c7a52-3f7e-4c1d-9a55-000000000001")
AUDIT = UUID("0b0c7a52-3f7e-4c1d-9a55-000000000002")


@pytest.fixture
def place(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a repository that git does not know, and a damaged PDF; ids are known before."""
    (workspace / "nothing" / ".git").mkdir(parents=True)
    (workspace / "report.pdf").write_text("%PDF-")
    monkeypatch.setattr("pmagent.cli.audit.job_id", lambda _: str(AUDIT))
    return workspace


def audited(workspace: Path, *more: str) -> Ran:
    """An audit that fails at once."""
    return pmagent(workspace, "audit", str(workspace / "nothing"), str(workspace / "report.pdf"), *more)


def test_without_audits_it_says_how_to_ask_for_one(workspace: Path) -> None:
    assert pmagent(workspace, "audits").code == 1, "there is no log"
    assert pmagent(workspace, "oa", "snapshot").code == 0
    assert pmagent(workspace, "audits").text == "no audits yet: pmagent audit REPO_URL PDF\n"
    assert pmagent(workspace, "audits", "--format", "json").document == {"audits": []}


@each("prefix", ["", "xyz", "0" * 37])
def test_what_is_no_id_is_a_usage_error(workspace: Path, prefix: str) -> None:
    assert pmagent(workspace, "oa", "snapshot").code == 0
    for command in ("audits", "cancel"):
        assert pmagent(workspace, command, prefix).code == 2


def test_an_audit_is_no_run(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "WINDOW", 3)
    assert audited(place).code == 1
    prefix = str(AUDIT)[:8]
    assert pmagent(place, "audits", prefix.upper()).lines[0].startswith("✗ failed")
    refused = pmagent(place, "runs", prefix)
    assert (refused.code, repr(prefix) in refused.errors, "pmagent runs" in refused.errors) == (1, True, True)
    done = pmagent(place, "cancel", prefix, "--format", "json")
    assert (done.code, done.document) == (1, {
        "audit_id": str(AUDIT), "accepted": False, "text": "the audit is failed already",
    })  # fmt: skip
    unknown = pmagent(place, "cancel", "ffffffff")
    assert (unknown.code, "'ffffffff'" in unknown.errors) == (1, True)


@needs_sandbox
def test_a_beginning_that_a_run_and_an_audit_share_names_neither(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert audited(place).code == 1
    (place / "plan.yaml").write_text("- {task_id: a, intent: x, tools: [echo]}")
    monkeypatch.setattr("pmagent.cli.run.job_id", lambda _: str(RUN))
    planned = pmagent(place, "run", "x", "--plan", str(place / "plan.yaml"), "--plan-only")
    assert planned.code == 0, planned.errors
    refused = pmagent(place, "cancel", str(RUN)[:8])
    assert (refused.code, "2 runs or audits" in refused.errors) == (1, True)
    assert "the run is planned already" in pmagent(place, "cancel", str(RUN)).text
    assert [run["run_id"] for run in pmagent(place, "runs", "--format", "json").document["runs"]] == [str(RUN)]
    audits = pmagent(place, "audits", "--format", "json").document["audits"]
    assert [audit["audit_id"] for audit in audits] == [str(AUDIT)]


def test_a_rubric_is_named_by_the_end_of_its_path_however_long_that_is(place: Path) -> None:
    for name in ("a" * 40, "b" * 200):
        folder = place / name
        folder.mkdir()
        (folder / "mine.json").write_bytes(b"\xff")
        done = audited(place, "--rubric", str(folder / "mine.json"))
        assert done.code == 2
        assert "mine.json is not UTF-8 text" in done.errors
