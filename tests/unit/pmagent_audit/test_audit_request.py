"""From flags and files to the request for an audit: what is wrong is said before anything is recorded."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.audit import request as module
from pmagent.audit.output import Output, output_of
from pmagent.audit.request import AuditOptions, PreparedAudit, as_request, check_masked, checked
from pmagent.audit.rubrics import default_rubric
from pmagent.audit.sarif import reported_by
from pmagent.audit.source import SLUG_CHARS_MAX, BadAudit, origin_of, slug, source_of
from pmagent.contracts.audit_events import AuditRequested
from pmagent.events.errors import PmagentError
from pmagent.events.redact import MASK
from pmagent.jobs.kinds import Source
from pmagent.service.secrets import known_secrets
from pmagent.workspace.settings import AuditSettings
from pmagent.workspace.settings_programs import ConfigError
from tests.support import pdfs
from tests.support.cases import each

AUDIT = "5b0c7a52-3f7e-4c1d-9a55-000000000001"
SECRET = "hunter2-hunter2"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace with a repository and a report; the current folder is beside it."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "report.pdf").write_bytes(b"%PDF-1.7")
    return tmp_path


@pytest.fixture
def occupied(place: Path) -> Path:
    """The same, with files and folders of others."""
    workspace = place / "workspace"
    (workspace / "README.md").write_text("# Mine\n")
    (workspace / "data.json").write_text("{}")
    (workspace / "folder.md").mkdir()
    (workspace / "link").symlink_to(place)
    (place / "notes.txt").write_text("mine")
    (place / "notes.md").write_text("mine")
    return place


def asked(place: Path, settings: AuditSettings | None = None, **fields: Any) -> PreparedAudit:
    """The request that these options lead to."""
    options = AuditOptions(**{"repo_url": "repo", "pdf_path": "report.pdf", **fields})
    return as_request(options, settings or AuditSettings(), place / "workspace", place, AUDIT)


def test_paths_are_relative_to_the_current_folder_and_recorded_whole(place: Path) -> None:
    request, copy, _ = asked(place)
    assert (request.repo_url, request.pdf_path) == (str(place / "repo"), str(place / "report.pdf"))
    assert (request.output, copy) == ("audit/report_repo", None)
    assert (request.engine, request.model, request.vision_model) == ("rules", "", "")
    assert request.rubric == default_rubric().document
    assert checked(request, place / "workspace") == request


@each(
    "url, name",
    [
        ("https://github.com/owner/name", "owner_name"),
        ("https://github.com/owner/name.git", "owner_name"),
        ("https://github.com/owner/my%20name.git/", "owner_my_name"),
        ("ssh://git@host.example:2222/deep/owner/na-me.git", "owner_na_me"),
        ("git@github.com:owner/name.git", "owner_name"),
        ("host.example:name", "name"),
        ("/home/me/some.project", "some_project"),
        ("/home/me/project/.git", "project"),
        ("file:///home/me/project.git", "project"),
        ("/", "repository"),
        ("/home/me/проект", "repository"),
        ("/home/me/" + "x" * 80, "x" * 50),
    ],
)
def test_a_report_is_named_after_its_repository(url: str, name: str) -> None:
    assert slug(url) == name


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1).map(lambda t: f"/{t}"))
def test_whatever_a_folder_is_called_its_report_has_a_plain_name(path: str) -> None:
    try:
        made = slug(path)
    except BadAudit:
        return
    assert 0 < len(made) <= SLUG_CHARS_MAX
    assert made.isascii()
    assert made.replace("_", "a").isalnum()


@each(
    "url",
    [
        "https://github.com/o/n",
        "ssh://git@host/o/n",
        "git@github.com:o/n.git",
        "file:///srv/repo",
        "http://localhost:8000/repo.git",
    ],
)
def test_urls_stand_as_they_were_given(url: str, tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir(exist_ok=True)
    given_url = url.replace("/srv/repo", f"{tmp_path}/repo")
    assert source_of(given_url, tmp_path) == given_url


@each(
    "url",
    [
        "",
        " ",
        "--upload-pack=x",
        "ext::sh -c id",
        "http://example.org/x",
        "ftp://x/y",
        "nowhere",
        "https:///x",
        f"https://me:{SECRET}@github.com/o/n",
        f"https://{SECRET}@github.com/o/n",
        "file://elsewhere/x",
        "a\x07b",
        f"https://github.com/o/n?token={SECRET}",
        f"ssh://me:{SECRET}@host/x",
    ],
)
def test_what_is_no_repository_is_refused_without_showing_a_secret(url: str, place: Path) -> None:
    with pytest.raises(BadAudit) as caught:
        asked(place, repo_url=url)
    assert caught.value.exit_code == 2
    assert SECRET not in caught.value.message + caught.value.hint
    assert caught.value.hint


@each("what", ["missing.pdf", ".", "", "nul\0"])
def test_a_pdf_that_is_not_there_is_named(place: Path, what: str) -> None:
    with pytest.raises(BadAudit, match=r"PDF|no file"):
        asked(place, pdf_path=what)


@each("content, word", [(b"", "empty"), (b"<html>no PDF</html>", "not a PDF")])
def test_a_file_of_another_kind_is_refused(place: Path, content: bytes, word: str) -> None:
    (place / "report.pdf").write_bytes(content)
    with pytest.raises(BadAudit, match=word) as caught:
        asked(place)
    assert caught.value.exit_code == 2


def test_an_encrypted_pdf_is_refused_and_a_damaged_one_is_for_the_audit_to_tell(place: Path) -> None:
    damaged = b"%PDF-1.7 /Encrypt"
    (place / "report.pdf").write_bytes(damaged)
    assert asked(place)
    made = pdfs.Report()
    made.page("<p>Words.</p>")
    made.saved(place / "report.pdf", encryption=pdfs.mupdf.PDF_ENCRYPT_AES_256, owner_pw="o", user_pw="u")
    with pytest.raises(BadAudit, match="encrypted"):
        asked(place)
    made.saved(place / "report.pdf", encryption=pdfs.mupdf.PDF_ENCRYPT_AES_256, owner_pw="o", user_pw="")
    assert asked(place), "it opens without a password"


@each("inside, word", [("repo/docs", "a folder in the repository"), ("other", "no git repository"),
                       ("report.pdf", "is no folder")])
def test_a_path_that_is_no_repository_is_refused(place: Path, inside: str, word: str) -> None:
    for folder in ("repo/docs", "other"):
        (place / folder).mkdir(exist_ok=True)
    with pytest.raises(BadAudit, match=word) as caught:
        asked(place, repo_url=inside)
    assert caught.value.exit_code == 2
    with pytest.raises(BadAudit, match=word):
        asked(place, repo_url=f"file://{place}/{inside}")


def test_a_pipe_is_no_pdf(place: Path) -> None:
    os.mkfifo(place / "pipe.pdf")
    with pytest.raises(BadAudit, match="is no file"):
        asked(place, pdf_path="pipe.pdf")


def test_a_wrong_rubric_is_refused_with_file_pointer_and_rule(place: Path) -> None:
    with pytest.raises(PmagentError) as caught:
        asked(place, rubric=Source("mine.json", b'{"rubric_metadata": {}, "dimensions": []}'))
    assert caught.value.exit_code == 2
    assert "mine.json" in caught.value.message
    assert "/dimensions" in caught.value.message + caught.value.hint or "synthesis_rules" in caught.value.message


@each(
    "wanted, output",
    [
        (None, "audit/report_repo"),
        ("workspace/mine.md", "mine"),
        ("workspace/audit/report_onself_generated/", "audit/report_onself_generated/report_repo"),
        ("workspace/new", "new/report_repo"),
        ("workspace/a/../b.md", "b"),
        ("workspace", "report_repo"),
        ("workspace/v1.2", "v1.2/report_repo"),
    ],
)
def test_an_output_in_the_workspace_is_where_the_documents_lie(place: Path, wanted: str | None, output: str) -> None:
    assert output_of(wanted, str(place / "repo"), place / "workspace", place, AUDIT) == Output(output, None)


@each("wanted, copy", [("out", "out/report_repo"), ("else/mine.md", "else/mine")])
def test_an_output_elsewhere_gets_copies(place: Path, wanted: str, copy: str) -> None:
    found = output_of(wanted, str(place / "repo"), place / "workspace", place, AUDIT)
    assert found == Output("audit/report_repo", place / copy)


@each("name", ["out.html", "workspace/out.sarif", "out.junit.xml", "out.json"])
def test_a_file_of_one_format_lies_beside_the_documents(place: Path, name: str) -> None:
    found = output_of(name, str(place / "repo"), place / "workspace", place, AUDIT)
    assert found == Output("audit/report_repo", None, place / name)


@each(
    "wanted, reason",
    [
        ("workspace/.pmagent/x.md", "nothing may be left"),
        ("workspace/share/x.md", "nothing may be left"),
        ("workspace/runs", "nothing may be left"),
        ("workspace/jobs/x.md", "nothing may be left"),
        ("workspace/deep/.git/x.md", "nothing may be left"),
        ("workspace/README.md", "no report of an audit"),
        ("workspace/data.md", "no report of an audit"),
        ("workspace/folder.md", "which is a folder"),
        ("workspace/audit/.md", "a file without a name"),
        (".md", "a file without a name"),
        ("workspace/README.md/x", "is no folder"),
        ("workspace/old.md/x.md", "ends as a report does"),
        ("workspace/5b0c7a52-3f7e-4c1d-9a55-000000000002/x.md", "the id of a run"),
        ("notes.txt", "which is a file"),
        ("workspace/data.json", "no report of an audit"),
        ("workspace/share/x.html", "nothing may be left"),
        ("workspace/link/x.html", "leads out of the workspace"),
        (".sarif", "a file without a name"),
        ("notes.md", "no report of an audit"),
        ("workspace/link/x.md", "leads out of the workspace"),
        ("", "names no place"),
        ("x" * 300 + ".md", "too long"),
    ],
)
def test_an_output_that_would_do_harm_is_refused(occupied: Path, wanted: str, reason: str) -> None:
    with pytest.raises(PmagentError) as caught:
        asked(occupied, outputs=[wanted])
    assert caught.value.exit_code == 2
    assert reason in caught.value.message
    assert (occupied / "workspace" / "README.md").read_text() == "# Mine\n"


def test_a_report_of_an_audit_may_be_written_over(place: Path) -> None:
    (place / "workspace" / "mine.md").write_text("# Audit Report\n\nof yesterday\n")
    (place / "workspace" / "mine.json").write_text("{}")
    assert asked(place, outputs=["workspace/mine.md"]).request.output == "mine"


def test_a_model_judges_where_one_is_named_and_a_flag_wins_over_the_settings(place: Path) -> None:
    settings = AuditSettings(model="anthropic:one", vision_model="openai:eye")
    request = asked(place, settings).request
    assert (request.engine, request.model, request.vision_model) == ("langchain", "anthropic:one", "openai:eye")
    request = asked(place, settings, model="openai:two", vision_model="").request
    assert (request.engine, request.model, request.vision_model) == ("langchain", "openai:two", "")
    request = asked(place, settings, model="").request
    assert (request.engine, request.model) == ("rules", "")


def test_limits_and_prices_are_those_of_the_settings(place: Path) -> None:
    request = asked(place, AuditSettings(pdf_pages=7, calls=3, input_usd=1.0, output_usd=2.0)).request
    assert (request.limits.pdf_pages, request.model_limits.calls) == (7, 3)
    assert request.price is not None
    assert (request.price.input_usd, request.price.output_usd) == (1.0, 2.0)
    with pytest.raises(ConfigError, match=r"audit\.output_usd"):
        asked(place, AuditSettings(input_usd=1.0))


@each(
    "changes",
    [
        {"repo_url": "repo"},
        {"repo_url": f"https://{SECRET}@host/x"},
        {"pdf_path": "report.pdf"},
        {"pdf_path": "/nowhere/x.pdf"},
        {"output": "../x"},
        {"output": "share/x"},
        {"output": "/tmp/x"},
        {"output": "a//b"},
        {"rubric": {"dimensions": []}},
        {"model": "openai:x"},
        {"engine": "langchain"},
    ],
)
def test_whoever_sends_a_request_it_is_looked_at_again(place: Path, changes: dict[str, Any]) -> None:
    request: AuditRequested = msgspec.structs.replace(asked(place).request, **changes)
    with pytest.raises(PmagentError) as caught:
        checked(request, place / "workspace")
    assert caught.value.exit_code == 2
    assert SECRET not in caught.value.message


def test_a_rubric_that_masks_have_spoilt_is_refused(place: Path) -> None:
    request = asked(place).request
    check_masked(request, request)
    masked = [{**one, "target_artifact": MASK} for one in request.rubric["dimensions"]]
    spoilt = msgspec.structs.replace(request, rubric={**request.rubric, "dimensions": masked})
    with pytest.raises(BadAudit, match="the rubric is none any more"):
        check_masked(request, spoilt)


def test_the_audits_own_words_are_no_secrets() -> None:
    words = {"A_TOKEN": "github_repo", "B_TOKEN": "report.hallucinated", "C_TOKEN": "Prosecutor"}
    assert known_secrets({**words, "D_TOKEN": "hunter2-hunter2"}) == ["hunter2-hunter2"]


def test_what_the_machine_lacks_is_named_before_anything_is_recorded(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = asked(place).request
    with monkeypatch.context() as patch:
        patch.setattr(module, "which", lambda _: None)
        with pytest.raises(BadAudit, match="git"):
            checked(request, place / "workspace")
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(BadAudit, match="PyMuPDF"):
        checked(request, place / "workspace")


def test_findings_of_other_tools_are_read_but_for_those_that_were_suppressed(tmp_path: Path) -> None:
    rules = [{"id": "R1", "defaultConfiguration": {"level": "error"}}]
    uri = f"file://{tmp_path}/a%20b.py"
    place = [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 7}}}]
    results = [
        {"ruleIndex": 0, "message": {"text": "bad\nindeed"}, "locations": place},
        {"ruleId": "R2", "level": "note", "locations": place, "suppressions": [{"kind": "inSource"}]},
        {"ruleId": "R2", "level": "note", "locations": place, "suppressions": []},
        {"ruleId": "R3", "baselineState": "absent", "locations": place},
    ]
    log = {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "T", "rules": rules}}, "results": results}]}
    found = reported_by([Source("t.sarif", json.dumps(log).encode())], tmp_path)
    assert [(one.tool, one.rule, one.level, one.path, one.line, one.text) for one in found] == [
        ("T", "R1", "error", "a b.py", 7, "bad indeed"), ("T", "R2", "note", "a b.py", 7, ""),
    ]  # fmt: skip


@each(
    "remote, origin",
    [
        ("https://github.com/o/n.git", "https://github.com/o/n.git"),
        ("git@gitlab.com:g/n.git", "git@gitlab.com:g/n.git"),
        ("https://user:token@github.com/o/n", ""),
        ("https://example.org/o/n", ""),
        ("", ""),
    ],
)
def test_the_origin_of_a_local_repository_is_its_remote_where_lines_have_addresses(
    remote: str, origin: str, tmp_path: Path
) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    commands = [["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"]]
    for words in [*commands, *([["remote", "add", "origin", remote]] if remote else [])]:
        subprocess.run([*git, *words], check=True)
    assert origin_of(str(tmp_path)) == origin
