"""Session logs on disk, held against the workspace's log."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pmagent.events.errors import NotFound
from pmagent.events.event import Draft, LogCreated
from pmagent.pla.verifying import SessionLogUnreadable, session_log, verify_alone, verify_with_log, verify_workspace
from pmagent.projections.rebuild import rewrite_documents
from tests.support.logged import write_log
from tests.support.pla_sessions import SESSION, Tale, typing

LOG = f"sessions/{SESSION}.jsonl"


def written(workspace: Path, tale: Tale) -> Path:
    """The tale in the workspace's log, and its documents beside it; the session log."""
    drafts = [
        Draft(one.type, one.data, one.raw, one.id, one.actor, one.correlation, 0, one.kind)
        for one in tale.events
        if not isinstance(one.data, LogCreated)
    ]
    write_log(workspace, drafts)
    assert LOG in dict(rewrite_documents(workspace))
    return workspace / LOG


def test_what_the_log_says_is_good(tmp_path: Path) -> None:
    tale = typing()
    tale.violate(session_id="")
    path = written(tmp_path, tale)
    found = verify_with_log(tmp_path, path)
    assert (found.ok, found.entries, found.compared) == (True, 9, True)
    outside = next((tmp_path / "sessions").glob("outside-*.violations.jsonl"))
    assert verify_with_log(tmp_path, outside).ok


def test_an_end_that_was_cut_off_is_found_and_rebuilding_mends_it(tmp_path: Path) -> None:
    path = written(tmp_path, typing())
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    found = verify_with_log(tmp_path, path)
    assert (found.ok, found.code, found.missing) == (False, "cut", 1)
    assert "pmagent rebuild" in found.mend
    assert dict(rewrite_documents(tmp_path))[LOG]
    assert verify_with_log(tmp_path, path).ok


def test_a_log_that_is_no_sessions_is_not_good(tmp_path: Path) -> None:
    path = written(tmp_path, typing())
    other = path.with_name("pla-ffffffffffffffffffffffffffffffff.jsonl")
    other.write_bytes(path.read_bytes())
    found = verify_with_log(tmp_path, other)
    assert (found.ok, found.code, found.compared) == (False, "log", True)


def test_a_session_that_has_left_the_state_is_found_all_the_same(tmp_path: Path) -> None:
    tale = typing()
    for number in range(40):
        name = f"pla-{number + 100:032x}"
        tale.begin(name)
        tale.end(session_id=name)
    path = written(tmp_path, tale)
    content = session_log(tmp_path, LOG)
    assert content is not None
    assert b"".join(content.pieces()) == path.read_bytes()
    assert verify_with_log(tmp_path, path).ok


def test_without_a_file_or_a_log_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SessionLogUnreadable):
        verify_with_log(tmp_path, tmp_path / LOG)
    path = tmp_path / "x.jsonl"
    path.touch()
    with pytest.raises(NotFound):
        verify_with_log(tmp_path, path)


def test_a_whole_workspace_is_checked_in_one_go(tmp_path: Path) -> None:
    tale = typing()
    tale.violate(session_id="")
    for number in range(40):
        name = f"pla-{number + 100:032x}"
        tale.begin(name)
        tale.end(session_id=name)
    written(tmp_path, tale)
    found = dict(verify_workspace(tmp_path))
    assert set(found) == set((tmp_path / "sessions").iterdir())
    assert len(found) == 43
    assert all(verdict.ok and verdict.compared for verdict in found.values())


def test_a_session_log_that_was_removed_or_put_there_is_found(tmp_path: Path) -> None:
    path = written(tmp_path, typing())
    other = path.with_name("pla-ffffffffffffffffffffffffffffffff.jsonl")
    path.rename(other)
    found = dict(verify_workspace(tmp_path))
    assert {name: (one.ok, one.code) for name, one in found.items()} == {
        path: (False, "missing"),
        other: (False, "log"),
    }


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    path = written(tmp_path, typing())
    path.unlink()
    os.mkfifo(path)
    for look in (verify_workspace, verify_alone):
        ((where, verdict),) = look(tmp_path)
        assert (where, verdict.ok, verdict.code, verdict.line) == (path, False, "unreadable", 0)
        assert "no regular file" in verdict.reason
        assert "take it away" in verdict.mend
    with pytest.raises(SessionLogUnreadable, match="no regular file"):
        verify_with_log(tmp_path, path)


def test_what_cannot_be_read_keeps_nothing_else_from_being_judged(tmp_path: Path) -> None:
    path = written(tmp_path, typing())
    folder, nowhere = path.with_name("a.jsonl"), path.with_name("z.jsonl")
    folder.mkdir()
    nowhere.symlink_to("gone")
    for look in (verify_workspace, verify_alone):
        found = {where: (verdict.ok, verdict.code) for where, verdict in look(tmp_path)}
        assert found == {path: (True, ""), folder: (False, "unreadable"), nowhere: (False, "unreadable")}


def test_each_log_can_be_checked_by_itself_without_the_log(tmp_path: Path) -> None:
    path = written(tmp_path, typing())
    shutil.rmtree(tmp_path / ".pmagent")
    assert [(where, verdict.ok, verdict.compared) for where, verdict in verify_alone(tmp_path)] == [(path, True, False)]
