"""CONTEXT.json through Python: read as it is, written through the log or not at all."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from pmagent.events.errors import NotFound
from pmagent.oa.context import PATH, BadContext, ContextFile, look, write_context
from pmagent.oa.tools import OAToolError
from pmagent.workspace.layout import Layout

CONTEXT: dict[str, Any] = {"active_goal": "a lamp", "constraints": ["no_git_push"]}


def digest(workspace: Path) -> str:
    return hashlib.sha256((workspace / PATH).read_bytes()).hexdigest()


@pytest.mark.parametrize("content", [CONTEXT, {"context": CONTEXT}, {"version": 1, "context": CONTEXT, "note": 1}])
def test_a_context_is_read_wrapped_or_not(content: dict[str, Any], workspace: Path) -> None:
    (workspace / PATH).write_text(json.dumps(content))
    assert look(workspace).context == CONTEXT
    assert look(workspace) == ContextFile(path=PATH, sha256=digest(workspace), context=CONTEXT)


def test_where_there_is_no_file_the_context_is_empty(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / PATH).unlink()
    monkeypatch.setenv("PMAGENT_WORKSPACE", str(workspace))
    assert look().context == {}
    assert look().sha256 == ""


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"context": 1}', b"\xff", b"[" * 100_000])
def test_a_broken_file_is_an_error_for_readers_and_writers_and_stays(content: bytes, workspace: Path) -> None:
    (workspace / PATH).write_bytes(content)
    with pytest.raises(OAToolError, match=PATH) as caught:
        look(workspace)
    assert caught.value.hint
    with pytest.raises(OAToolError, match="broken"):
        write_context(CONTEXT, workspace)
    assert (workspace / PATH).read_bytes() == content


def test_what_is_written_is_what_is_read_and_its_digest_is_the_next_base(workspace: Path) -> None:
    first = write_context(CONTEXT, workspace)
    assert (look(workspace).context, first) == (CONTEXT, digest(workspace))
    second = write_context({"context": {"nested": True}}, workspace, base=first)
    assert look(workspace).context == {"context": {"nested": True}}
    with pytest.raises(OAToolError, match="changed by somebody else") as caught:
        write_context(CONTEXT, workspace, base=first)
    assert (caught.value.exit_code, digest(workspace)) == (1, second)


def test_it_is_written_where_there_was_none_only_on_that_word(workspace: Path) -> None:
    with pytest.raises(OAToolError, match="changed by somebody else"):
        write_context(CONTEXT, workspace, base="")
    (workspace / PATH).unlink()
    assert write_context(CONTEXT, workspace, base="") == digest(workspace)


def test_what_is_no_context_is_refused_before_anything_is_recorded(workspace: Path) -> None:
    before = (workspace / PATH).read_bytes()
    for context, base in (({"constraints": 1}, None), ({"a": float("nan")}, None), ({"a": "x" * 300_000}, None),
                          (CONTEXT, "elsewhere")):
        with pytest.raises(BadContext) as caught:
            write_context(context, workspace, base=base)
        assert caught.value.exit_code == 2
    assert (workspace / PATH).read_bytes() == before
    assert not Layout(workspace).folder.exists()


def test_in_a_folder_that_is_no_workspace_nothing_is_begun(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="is no workspace"):
        write_context(CONTEXT, tmp_path)
    assert list(tmp_path.iterdir()) == []
