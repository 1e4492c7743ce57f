"""An audit that is asked for on another machine: its report goes along, and nothing of either machine is named."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from pmagent.audit import carrying
from pmagent.audit.carrying import carried, dropped, received
from pmagent.audit.source import BadAudit
from pmagent.workspace.layout import Layout

URL = "https://github.com/team/depcheck"


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, Any]:
    """The arguments of a request, whose report is there."""
    (tmp_path / "report.pdf").write_bytes(b"%PDF-1.7\0")
    return {"repo_url": URL, "pdf_path": str(tmp_path / "report.pdf"), "output": "audit/r"}


def test_the_report_arrives_as_it_was_and_lies_in_the_holders_data(workspace: Path, asked: dict[str, Any]) -> None:
    layout = Layout(workspace)
    layout.prepare()
    sent = carried(asked)
    assert set(sent) == {"repo_url", "pdf", "output"}
    found, new = received(layout, sent)
    assert set(found) == set(asked)
    assert new
    path = Path(found["pdf_path"])
    assert path.is_relative_to(layout.home)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"%PDF-1.7\0", 0o600)
    assert received(layout, sent) == (found, False), "asked once more it is the same request"


def test_only_a_report_that_came_with_a_refused_request_is_removed(workspace: Path, asked: dict[str, Any]) -> None:
    layout = Layout(workspace)
    layout.prepare()
    first, again = (received(layout, carried(asked)) for _ in range(2))
    path = Path(first.arguments["pdf_path"])
    dropped(layout, again)
    assert path.exists()
    dropped(layout, first)
    assert not path.exists()


@pytest.mark.parametrize("there", ["link", "file"])
def test_a_report_is_written_nowhere_else(workspace: Path, asked: dict[str, Any], tmp_path: Path, there: str) -> None:
    layout, elsewhere = Layout(workspace), tmp_path / "elsewhere"
    layout.prepare()
    elsewhere.mkdir()
    if there == "link":
        (layout.home / carrying.FOLDER).symlink_to(elsewhere)
    else:
        (layout.home / carrying.FOLDER).write_text("kept")
    path = Path(received(layout, carried(asked)).arguments["pdf_path"])
    assert path.read_bytes() == b"%PDF-1.7\0"
    assert not path.parent.is_symlink()
    assert list(elsewhere.iterdir()) == []


def test_a_report_that_is_too_long_or_gone_is_not_sent(
    asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carrying, "PDF_BYTES_MAX", 8)
    with pytest.raises(BadAudit, match="is longer than"):
        carried(asked)
    (tmp_path / "report.pdf").unlink()
    with pytest.raises(BadAudit, match="cannot be read"):
        carried(asked)


def test_the_report_of_an_earlier_audit_is_not_looked_for_here(asked: dict[str, Any]) -> None:
    with pytest.raises(BadAudit, match="lies on another machine"):
        carried({**asked, "resumes": "2df04d9c-0719-49e6-ba3d-98be65a912e3"})


@pytest.mark.parametrize("repo_url", ["/srv/secret", "file:///srv/secret", "."])
def test_no_repository_of_a_machine_is_named(workspace: Path, asked: dict[str, Any], repo_url: str) -> None:
    for turn in (carried, lambda given: received(Layout(workspace), {**given, "pdf": "eA=="})):
        with pytest.raises(BadAudit, match="by a path of this machine"):
            turn({**asked, "repo_url": repo_url})


@pytest.mark.parametrize("pdf", ["", "no base64!", "ä", None, 7, b64encode(b"x" * 9).decode()])
def test_a_request_that_brings_no_report_is_refused(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, pdf: object
) -> None:
    monkeypatch.setattr(carrying, "PDF_BYTES_MAX", 8)
    with pytest.raises(BadAudit, match="was not sent"):
        received(Layout(workspace), {"repo_url": URL, "pdf": pdf})
