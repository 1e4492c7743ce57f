"""The performer that writes CONTEXT.json: all of it or nothing, on what it was asked for, and inside the workspace."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pmagent.actors.oa.context import PATH
from pmagent.actors.oa.effects import PERFORMERS, write_context
from pmagent.contracts.kernel import SURFACE_BYTES_MAX
from pmagent.contracts.payload import decode, encode, type_of
from pmagent.contracts.reasoning import CONTEXT_BYTES_MAX
from pmagent.contracts.reasoning_events import (
    OaContextRequested,
    OaContextUnwritten,
    OaContextWriteRequested,
    OaContextWritten,
)
from pmagent.events.event import Event
from tests.support.live import NoIo

CONTEXT: dict[str, Any] = {"active_goal": "a lamp", "constraints": ["no_git_push"]}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def put(workspace: Path, content: object) -> str:
    """Make ``content`` (JSON, or bytes) the file's; its SHA-256."""
    path = workspace / PATH
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return digest(path)


def kept(workspace: Path, base: str, context: dict[str, Any] | None = None) -> OaContextUnwritten:
    """Ask for a write that must not happen: nothing at all may have changed by it."""
    before = tree(workspace)
    outcome = write_context(workspace, 7, context or CONTEXT, base)
    assert isinstance(outcome, OaContextUnwritten)
    assert tree(workspace) == before
    assert outcome.request == 7
    assert outcome.mend
    return outcome


def tree(workspace: Path) -> dict[str, str | bytes]:
    """Every path, and what it holds."""
    return {
        str(path): os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
        for path in workspace.rglob("*")
    }


def test_it_writes_the_context_wrapped_and_says_what_the_file_holds_now(workspace: Path) -> None:
    path = workspace / PATH
    outcome = write_context(workspace, 7, CONTEXT, digest(path))
    assert outcome == OaContextWritten(request=7, path=PATH, sha256=digest(path), size=path.stat().st_size)
    assert json.loads(path.read_text()) == {"version": 1, "context": CONTEXT}
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(path.parent) == ["CONTEXT.json"]


def test_where_there_is_no_file_and_no_folder_both_are_made(tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    assert isinstance(write_context(tmp_path, 7, {}, ""), OaContextWritten)
    assert json.loads((tmp_path / PATH).read_text()) == {"version": 1, "context": {}}


def test_what_stands_beside_the_context_stays(workspace: Path) -> None:
    base = put(workspace, {"version": 1, "context": {"old": True}, "owner": "mei", "big": 2**70, "small": 0.1})
    write_context(workspace, 7, CONTEXT, base)
    assert json.loads((workspace / PATH).read_text()) == {
        "version": 1, "context": CONTEXT, "owner": "mei", "big": 2**70, "small": 0.1,
    }


def test_a_file_that_is_a_bare_context_is_replaced_whole(workspace: Path) -> None:
    base = put(workspace, {"active_goal": "old", "constraints": []})
    write_context(workspace, 7, CONTEXT, base)
    assert json.loads((workspace / PATH).read_text()) == {"version": 1, "context": CONTEXT}


def test_a_file_that_was_changed_meanwhile_stays(workspace: Path) -> None:
    base = digest(workspace / PATH)
    put(workspace, {"context": {"mine": True}})
    assert "changed by somebody else" in kept(workspace, base).reason
    assert "changed by somebody else" in kept(workspace, "").reason
    (workspace / PATH).unlink()
    assert "changed by somebody else" in kept(workspace, base).reason


def test_a_changed_file_is_told_before_anything_is_written(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "fsync", full)
    assert "changed by somebody else" in kept(workspace, "").reason


def test_a_write_that_is_performed_again_finds_that_it_is_done(workspace: Path) -> None:
    base = put(workspace, {"context": {}, "owner": "mei"})
    first = write_context(workspace, 7, CONTEXT, base)
    before = (workspace / PATH).stat()
    assert write_context(workspace, 7, CONTEXT, base) == first
    assert (workspace / PATH).stat().st_ino == before.st_ino, "it is not even written again"


def test_a_change_while_it_writes_is_not_overwritten(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = digest(workspace / PATH)
    sync, synced = os.fsync, []

    def somebody_writes(descriptor: int) -> None:
        sync(descriptor)
        synced.append(put(workspace, {"context": {"theirs": True}}))

    monkeypatch.setattr(os, "fsync", somebody_writes)
    assert isinstance(write_context(workspace, 7, CONTEXT, base), OaContextUnwritten)
    assert digest(workspace / PATH) == synced[0]
    assert os.listdir((workspace / PATH).parent) == ["CONTEXT.json"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "empty"), (b"{", "not json"), (b"[]", "invalid"), (b'{"context": 5}', "invalid"),
        (b'{"a": 1, "a": 2}', "twice"), (b'"\xff"', "not utf8"), (b" " * (SURFACE_BYTES_MAX + 1), "more than"),
    ],
)
def test_a_broken_file_is_for_its_writer_to_mend(content: bytes, what: str, workspace: Path) -> None:
    assert what in kept(workspace, put(workspace, content)).reason


def test_what_would_not_fit_into_a_surface_is_not_written(workspace: Path) -> None:
    base = put(workspace, {"context": {}, "notes": "x" * (SURFACE_BYTES_MAX - 1000)})
    assert "would be larger" in kept(workspace, base, {"note": "x" * 2000}).reason


def test_every_context_that_may_be_asked_for_fits(workspace: Path) -> None:
    """Indented, a deep one would take many times its size."""
    row: Any = [1] * 8
    for _ in range(60):
        row = [row]
    context = {"rows": [row] * (CONTEXT_BYTES_MAX // 150)}
    outcome = write_context(workspace, 7, context, digest(workspace / PATH))
    assert isinstance(outcome, OaContextWritten)
    assert outcome.size <= SURFACE_BYTES_MAX
    assert json.loads((workspace / PATH).read_text())["context"] == context


# -- things in the way ----------------------------------------------------------------------------------------------


def test_a_link_in_place_of_the_file_is_not_followed(workspace: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.json"
    theirs.write_text("{}")
    path = workspace / PATH
    path.unlink()
    for target, what in ((theirs, "leads out"), (tmp_path / "nowhere", "symbolic link")):
        path.symlink_to(target)
        assert what in kept(workspace, "").reason
        assert what in kept(workspace, digest(theirs)).reason or what == "symbolic link"
        path.unlink()
    path.symlink_to("../HANDOFF_KERNEL.json")
    assert "symbolic link" in kept(workspace, digest(path)).reason
    assert theirs.read_text() == "{}"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("holds", ["the file", "no file", "nothing"])
@pytest.mark.parametrize("part", ["share", "share/oa"])
def test_a_folder_that_is_a_link_out_of_the_workspace_is_not_written_into(
    part: str, holds: str, workspace: Path, tmp_path: Path
) -> None:
    if holds != "the file":
        (workspace / PATH).unlink()
    if holds == "nothing":
        shutil.rmtree(workspace / part)
        (workspace / part).mkdir()
    (workspace / part).rename(tmp_path / "outside")
    (workspace / part).symlink_to(tmp_path / "outside")
    before = tree(tmp_path / "outside")
    assert "leads out of the workspace" in kept(workspace, "").reason
    assert tree(tmp_path / "outside") == before


def test_a_folder_that_is_a_link_within_the_workspace_is_as_good_as_the_folder(workspace: Path) -> None:
    (workspace / "share/oa").rename(workspace / "kept")
    (workspace / "share/oa").symlink_to("../kept")
    assert isinstance(write_context(workspace, 7, CONTEXT, digest(workspace / PATH)), OaContextWritten)
    assert json.loads((workspace / "kept/CONTEXT.json").read_text())["context"] == CONTEXT


def a_folder(path: Path) -> None:
    path.mkdir()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(("made", "what"), [(a_folder, "Is a directory"), (a_pipe, "not a regular file")])
def test_what_is_no_file_is_left_where_it_is(made: Callable[[Path], None], what: str, workspace: Path) -> None:
    (workspace / PATH).unlink()
    made(workspace / PATH)
    assert what in kept(workspace, "").reason


def test_a_file_in_place_of_the_folder_is_left_where_it_is(workspace: Path) -> None:
    (workspace / PATH).unlink()
    (workspace / PATH).parent.rmdir()
    (workspace / PATH).parent.write_text("no folder")
    assert "Not a directory" in kept(workspace, "").reason


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize("call", ["fsync", "replace", "fchmod"])
def test_a_disk_that_is_full_or_broken_leaves_the_old_file(
    call: str, number: int, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, fail)
    assert os.strerror(number) in kept(workspace, digest(workspace / PATH)).reason


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_into_is_told(workspace: Path) -> None:
    folder = (workspace / PATH).parent
    folder.chmod(0o555)
    try:
        assert "Permission denied" in kept(workspace, digest(workspace / PATH)).reason
    finally:
        folder.chmod(0o755)


# -- as a performer -------------------------------------------------------------------------------------------------


class Log(NoIo):
    """A workspace, and a log that holds one request."""

    def __init__(self, workspace: Path, request: OaContextRequested) -> None:
        self.workspace = workspace
        self._request = request

    async def event(self, position: int) -> Event:
        """See Io."""
        return event(position, self._request)


def event(position: int, payload: Any) -> Event:
    name, raw = type_of(payload), encode(payload)
    return Event(
        position, "2026-11-21T18:00:00.000000Z", f"e{position}", "fact", "t", name, "", 0, decode(name, raw), raw
    )


async def test_the_performer_takes_the_context_from_the_request_that_stands_in_the_log(workspace: Path) -> None:
    base = digest(workspace / PATH)
    io = Log(workspace, OaContextRequested(context=CONTEXT, base=base))
    outcome = await PERFORMERS[OaContextWriteRequested](event(9, OaContextWriteRequested(request=8, base=base)), io)
    assert outcome == OaContextWritten(
        request=9, path=PATH, sha256=digest(workspace / PATH), size=(workspace / PATH).stat().st_size
    )
