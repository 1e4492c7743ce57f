"""Documents on disk: compared with the log and written, but never through a link that leads elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from projections import rebuild
from projections.rebuild import LEADS_OUT, Difference, DocumentUnwritable, check_documents, write_documents

DOCUMENTS = {"share/a.json": b"[1]", "b/c/d.json": b"{}"}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace whose log gives ``DOCUMENTS``; they are written. A private file lies beside it."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "a.json").write_bytes(b"private")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.setattr(rebuild, "documents_of", lambda _workspace: DOCUMENTS)
    assert write_documents(workspace, DOCUMENTS) == list(DOCUMENTS)
    return workspace


def test_what_is_as_the_log_says_is_not_written_again(workspace: Path) -> None:
    assert check_documents(workspace) == []
    assert write_documents(workspace, DOCUMENTS) == []


def test_each_document_that_is_not_as_the_log_says_is_named_and_written(workspace: Path) -> None:
    (workspace / "share/a.json").write_bytes(b"[2]")
    (workspace / "b/c/d.json").unlink()
    assert check_documents(workspace) == [
        Difference("share/a.json", "differs", 1, "1]", "2]"), Difference("b/c/d.json", "missing")
    ]
    assert write_documents(workspace, DOCUMENTS) == list(DOCUMENTS)
    assert check_documents(workspace) == []


@pytest.mark.parametrize("link", ["share", "share/a.json"])
def test_a_link_out_of_the_workspace_is_neither_read_nor_written_through(workspace: Path, link: str) -> None:
    (workspace / "share/a.json").unlink()
    if link == "share":
        (workspace / "share").rmdir()
    (workspace / link).symlink_to(Path("..") / "private" if link == "share" else workspace.parent / "private/a.json")
    assert check_documents(workspace) == [Difference("share/a.json", "unreadable", found=LEADS_OUT)]
    with pytest.raises(DocumentUnwritable, match="share"):
        write_documents(workspace, DOCUMENTS)
    assert (workspace.parent / "private/a.json").read_bytes() == b"private"


def test_links_in_a_circle_are_said_not_a_failure(workspace: Path) -> None:
    (workspace / "b/c/d.json").unlink()
    (workspace / "b/c").rmdir()
    (workspace / "b/c").symlink_to("e")
    (workspace / "b/e").symlink_to("c")
    assert [found.path for found in check_documents(workspace)] == ["b/c/d.json"]
    with pytest.raises(DocumentUnwritable, match="b/c"):
        write_documents(workspace, DOCUMENTS)
