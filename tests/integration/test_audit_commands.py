"""``pmagent audit``, ``audits`` and ``cancel`` as people and programs use them, with a daemon and without, into pipes;
on a real repository and a real PDF."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pmagent.contracts.audit import AuditReport
from pmagent.workspace.layout import Layout
from tests.conftest import ROOT
from tests.support import warm
from tests.support.audited import RUBRIC, Sources, assert_proven, sources
from tests.support.audits import dimension
from tests.support.cases import each
from tests.support.commands import clean_environment, pmagent, spawn
from tests.support.daemons import Daemon
from tests.support.started import daemon

__all__ = ["daemon", "sources"]

pytestmark = pytest.mark.slow

@pytest.fixture(scope="module", autouse=True)
def preloaded() -> None:
    """Commands and daemons find imported what takes a second each time."""
    warm.preload("pmagent.actors.audit.progress")


def listed(workspace: Path) -> list[dict[str, Any]]:
    """The list of ``pmagent audits``; empty where there is no log."""
    if not (Layout(workspace).log / "HEAD").exists():
        return []
    found: list[dict[str, Any]] = pmagent(workspace, "audits", "--format", "json").document["audits"]
    return found


def test_an_audit_tells_of_each_criterion_and_leaves_its_report(
    workspace: Path, sources: Sources, daemon: Daemon | None
) -> None:
    done = spawn(*sources.arguments, cwd=workspace)
    assert done.code == 0, done.errors
    said = done.errors
    assert said.index("repository  running") < said.index("repository  done") < said.index("history  evidence")
    assert said.index("history  evidence") < said.index("history  judged  Prosecutor:") < said.index("history  ruled")
    assert "concluded" in said.splitlines()[-1]
    assert done.lines[0].startswith("✓ concluded: ")
    assert "report  audit/report_depcheck.md" in done.text
    audit_id = done.lines[-1].split()[-1]
    report = (workspace / "audit" / "report_depcheck.md").read_text()
    for part in ("# Audit Report", "## Executive Summary", "## Criterion Breakdown", "## Remediation Plan"):
        assert f"{part}\n" in report
    assert json.loads((workspace / "jobs" / f"{audit_id}.json").read_text())["status"] == "complete"
    (entry,) = listed(workspace)
    assert (entry["audit_id"], entry["state"], entry["report"]) == (audit_id, "concluded", "audit/report_depcheck.md")
    assert pmagent(workspace, "audits", audit_id[:8]).lines[0] == done.lines[0]
    assert pmagent(workspace, "cancel", audit_id[:8]).code == 1
    if not daemon:
        assert_proven(workspace)


def test_one_file_of_a_format_is_made_besides_and_no_foreign_one_is_overwritten(
    workspace: Path, sources: Sources, tmp_path: Path
) -> None:
    done = pmagent(workspace, *sources.quick, "--output", str(tmp_path / "new" / "r.html"), "--format", "json")
    assert (done.code, done.document["copies"]) == (0, [str(tmp_path / "new" / "r.html")]), done.errors
    assert b"<h1>Audit Report" in (tmp_path / "new" / "r.html").read_bytes()
    done = pmagent(workspace, *sources.quick, "--output", str(workspace / "r.json"), "--format", "json")
    assert (workspace / "r.json").read_bytes() == (workspace / done.document["report_json"]).read_bytes()
    (tmp_path / "x.sarif").write_text("{}")
    for name in (tmp_path / "x.sarif", workspace / "share" / "r.html"):
        assert pmagent(workspace, *sources.quick, "--output", str(name)).code == 2
    assert_proven(workspace)


@each("least, code", [("1", 0), ("5", 1)])
def test_a_score_below_the_least_one_ends_with_exit_1(
    workspace: Path, sources: Sources, least: str, code: int
) -> None:
    done = pmagent(workspace, *sources.quick, "--fail-under", least, "--format", "json")
    assert (done.code, done.document["exit_code"], done.document["state"]) == (code, code, "concluded"), done.errors
    assert (done.document["overall_score"] < float(least)) == bool(code)
    assert ("--fail-under" in done.errors) == bool(code)


def test_what_the_report_says_is_held_against_the_repository(workspace: Path, sources: Sources) -> None:
    done = pmagent(workspace, *sources.quick, "--format", "json")
    assert done.code == 0, done.errors
    document = json.loads((workspace / "audit" / "report_depcheck.json").read_text())
    report = AuditReport.model_validate(document["report"])
    evidence = {one.goal.partition(":")[0]: one for one in report.evidence["accuracy"]}
    assert evidence["report.hallucinated"].found
    assert "depcheck/cache.py" in str(evidence["report.hallucinated"].content)
    assert "depcheck/graph.py" in str(evidence["report.verified"].content)
    assert "depcheck/graph.py" not in str(evidence["report.hallucinated"].content)
    assert report.commit == done.document["commit"]
    assert report.overall_score == done.document["overall_score"]
    assert {one.dimension_id: one.final_score for one in report.criteria} == {
        one["dimension_id"]: one["final_score"] for one in done.document["criteria"]
    }


def test_the_same_audit_twice_gives_the_same_report(workspace: Path, sources: Sources) -> None:
    reports = []
    for _ in range(2):
        assert pmagent(workspace, *sources.quick).code == 0
        document = json.loads((workspace / "audit" / "report_depcheck.json").read_text())["report"]
        reports.append({name: value for name, value in document.items() if name != "audit_id"})
    assert reports[0] == reports[1]
    first, second = (entry["audit_id"] for entry in listed(workspace))
    done = pmagent(workspace, "audit", "diff", first[:12], second, "--format", "json")
    assert (done.code, done.document["equal"], done.document["criteria"]) == (0, True, [])
    assert_proven(workspace)


def test_a_report_may_go_anywhere(workspace: Path, sources: Sources, tmp_path: Path) -> None:
    inside = pmagent(workspace, *sources.quick, "--output", str(workspace / "mine" / "look.md"), "--format", "json")
    assert (inside.code, inside.document["report"], inside.document["copies"]) == (0, "mine/look.md", [])
    away = tmp_path / "elsewhere"
    outside = pmagent(workspace, *sources.quick, "--output", str(away), "--format", "json")
    assert outside.code == 0, outside.errors
    assert outside.document["report"] == "audit/report_depcheck.md"
    assert outside.document["copies"] == [str(away / f"report_depcheck.{ending}") for ending in ("md", "json")]
    for path in outside.document["copies"]:
        assert Path(path).read_bytes() == (workspace / "audit" / Path(path).name).read_bytes()
    assert_proven(workspace)


@each(
    "words, said",
    [
        (("{repo}", "missing.pdf"), "missing.pdf"),
        (("{repo}", "{repo}"), "is no file"),
        (("nowhere", "{pdf}"), "there is no repository"),
        (("https://me:hunter2@example.org/x", "{pdf}"), "password"),
        (("https://github.com/x", "{pdf}"), "names an owner"),
        (("{repo}/depcheck", "{pdf}"), "is a folder in the repository"),
        (("/etc/passwd", "{pdf}"), "is no folder"),
        (("{repo}", "/etc/passwd"), "not a PDF"),
        (("{repo}", "{pdf}", "--fail-under", "6"), "--fail-under"),
        (("{repo}", "{pdf}", "--rubric", "{pdf}"), "depcheck.pdf"),
        (("{repo}", "{pdf}", "--rubric", "none.json"), "none.json"),
        (("{repo}", "{pdf}", "--output", "{ws}/share/x.md"), "share"),
        (("{repo}", "{pdf}", "--model", "openai:gpt-x"), "OPENAI_API_KEY"),
        (("{repo}", "{pdf}", "--vision-model", "anthropic:x"), "ANTHROPIC_API_KEY"),
        (("{repo}", "{pdf}", "--model", "nobody"), "names no model"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_recorded(
    workspace: Path, sources: Sources, words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(workspace)
    filled = [word.format(repo=sources.repository, pdf=sources.report, ws=workspace) for word in words]
    done = pmagent(workspace, "audit", *filled, "--format", "json")
    assert (done.code, done.document["error"]["kind"]) == (2, "usage"), done.errors
    assert said in done.document["error"]["message"]
    assert done.document["error"]["hint"]
    assert "hunter2" not in done.errors
    assert listed(workspace) == []


def test_a_source_that_cannot_be_read_fails_the_audit_and_is_named(workspace: Path, sources: Sources) -> None:
    bad = workspace / "bad.pdf"
    bad.write_bytes(b"%PDF-1.7 and no more")
    done = pmagent(workspace, "audit", str(sources.repository), str(bad), "--rubric", str(sources.rubric))
    assert done.code == 1
    assert done.lines[0].startswith("✗ failed")
    assert "damaged" in done.text
    (workspace / "empty" / ".git").mkdir(parents=True)
    done = pmagent(workspace, "audit", str(workspace / "empty"), str(sources.report), "--format", "json")
    assert (done.code, done.document["state"]) == (1, "failed")
    assert done.document["code"] in ("not_found", "git")
    assert done.document["reasons"]
    assert done.document["report"] is None
    assert not (workspace / "audit").exists()
    assert {entry["state"] for entry in listed(workspace)} == {"failed"}
    one, two = (entry["audit_id"] for entry in listed(workspace))
    assert pmagent(workspace, "audit", "diff", one, two).code == 2, "they have no report"
    assert_proven(workspace)


@each("secret, said", [("depcheck", "repo_url holds a secret"), ("gpt-four", "model holds")])
def test_what_would_be_masked_in_the_log_is_refused_where_the_audit_goes_by_it(
    workspace: Path, sources: Sources, secret: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-of-nobody")
    monkeypatch.setenv("SOME_API_KEY", secret)
    refused = pmagent(workspace, *sources.quick, "--model", "openai:gpt-four", "--format", "json")
    assert (refused.code, refused.document["error"]["kind"]) == (2, "usage"), refused.errors
    assert said in refused.document["error"]["message"]
    assert listed(workspace) == []
    monkeypatch.delenv("SOME_API_KEY")
    assert pmagent(workspace, "status", "--format", "json").document["halted"] == []


def test_a_secret_in_the_rubrics_words_is_masked_and_judged_all_the_same(
    workspace: Path, sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2-hunter2")
    mine = tmp_path / "mine.json"
    mine.write_text(sources.rubric.read_text().replace("Plain dicts.", "Plain dicts like hunter2-hunter2."))
    done = pmagent(workspace, *sources.arguments, "--rubric", str(mine))
    assert done.code == 0, done.errors
    assert "the request holds secrets, which are masked" in done.errors
    assert "hunter2" not in pmagent(workspace, "log", "tail", "-n", "all", "--format", "json").text
    assert_proven(workspace)


@each(
    "setting, value, code, exit_",
    [
        ("PMAGENT_AUDIT_PDF_PAGES", "1", "pdf_too_large", 1),
        ("PMAGENT_AUDIT_CLONE_BYTES", "1000", "too_large", 1),
        ("PMAGENT_AUDIT_CLONE_SECONDS", "0.001", "timed_out", 6),
    ],
)
def test_a_limit_that_is_reached_ends_the_audit_and_is_named(
    workspace: Path, sources: Sources, setting: str, value: str, code: str, exit_: int
) -> None:
    done = pmagent(workspace, *sources.quick, "--format", "json", environ={setting: value})
    assert (done.code, done.document["code"]) == (exit_, code), done.errors
    assert setting.removeprefix("PMAGENT_AUDIT_").lower() in done.document["mend"][0], "which limit it was"
    assert_proven(workspace)


def test_other_tools_are_evidence_and_appeals_are_shown_and_not_obeyed(
    workspace: Path, sources: Sources, tmp_path: Path
) -> None:
    rubric = tmp_path / "rubric.json"
    safety = dimension("safety", goals=["tools.no_unsafe_calls", "security.shell", "project.lint"])
    rubric.write_text(json.dumps({**RUBRIC, "dimensions": [safety]}))
    words = (*sources.arguments, "--rubric", str(rubric), "--format", "json")
    before = pmagent(workspace, *words).document
    path = next(path.name for path in Path(sources.repository).iterdir() if path.suffix == ".toml")
    results = [
        {"ruleId": "B602", "level": "error", "message": {"text": "shell"}, "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": name}, "region": {"startLine": 3}}}], **more}
        for name, more in ((path, {}), ("no/such.py", {}), (path, {"suppressions": [{"kind": "inSource"}]}))
    ]  # fmt: skip
    sarif = tmp_path / "bandit.sarif"
    sarif.write_text(json.dumps({"version": "2.1.0", "runs": [
        {"tool": {"driver": {"name": "Bandit"}}, "results": results},
    ]}))  # fmt: skip
    (tmp_path / "audit-appeals.yaml").write_text(
        "appeals:\n  - evidence: tools.reported\n    because: it is no code\n"
        "  - evidence: security.shell\n    at: gone.py\n    because: it is gone\n"
    )
    done = pmagent(workspace, *words, "--sarif", str(sarif), "--appeals")
    assert done.code == 0, done.errors
    report = json.loads((workspace / done.document["report_json"]).read_text())["report"]
    (item,) = [one for one in report["evidence"]["safety"] if one["goal"].startswith("tools.reported")]
    assert (item["location"], item["found"], item["confidence"]) == (f"{path}:3", True, 0.7)
    assert "1 more, about files" in item["rationale"]
    assert [len(one["keys"]) for one in report["appeals"]] == [1, 0]
    assert done.document["overall_score"] <= before["overall_score"]
    (tmp_path / "audit-appeals.yaml").write_text("appeals: [{evidence: x}]\n")
    for more in (("--appeals",), ("--sarif", str(rubric))):
        assert pmagent(workspace, *words, *more).code == 2
    assert_proven(workspace)


def test_the_workflow_for_pull_requests_leaves_a_summary_and_findings(sources: Sources, tmp_path: Path) -> None:
    workflow = yaml.safe_load((ROOT / "examples" / "audit-pull-request.yml").read_text())
    (job,) = workflow["jobs"].values()
    steps = {one["name"]: one["run"] for one in job["steps"] if "name" in one}
    repository = tmp_path / "checkout"
    shutil.copytree(sources.repository, repository)
    shutil.copy(sources.report, repository / "final.pdf")
    environ = clean_environment(
        PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}", RUNNER_TEMP=str(tmp_path), REPORT="final.pdf",
        FAIL_UNDER="5", GITHUB_STEP_SUMMARY=str(tmp_path / "shown.md"), XDG_STATE_HOME=str(tmp_path / "state"),
    )
    codes = [
        subprocess.run(["bash", "-e", "-c", run], cwd=repository, env=environ, check=False, timeout=300).returncode
        for run in steps.values()
    ]
    assert codes == [1, 0], "the score is below 5"
    shown = (tmp_path / "shown.md").read_text()
    assert (shown.startswith("# Audit Report"), len(shown.splitlines()) <= 40) == (True, True)
    assert json.loads((tmp_path / "audit.sarif").read_text())["version"] == "2.1.0"
    assert (tmp_path / "audit.html").exists()
