"""A lone surrogate, of a name that is not UTF-8, is answered as an escape; a workspace has no such name."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from pmagent.clean import json_bytes
from pmagent.edge import Operation
from pmagent.edges import OPERATIONS
from pmagent.service import daemon
from pmagent.service.answer import Answer
from pmagent.service.wire import Failure, Reply, Request
from pmagent.workspace.layout import Layout
from pmagent.workspace.presence import BadPath
from tests.support.cases import each
from tests.support.commands import pmagent

LONE = os.fsdecode(b"caf\xe9")


@each(
    "document",
    [LONE, [LONE], {"a": {LONE: [1, LONE, None, 1.5, True]}}, Reply(document={"path": LONE}, warnings=[LONE]),
     Reply(failure=Failure("NotFound", LONE, LONE, 1))],
)
def test_it_is_escaped_wherever_it_stands(document: Any) -> None:
    raw = json_bytes(document)
    assert b"caf\\\\udce9" in raw
    msgspec.json.decode(raw)


def test_what_is_text_is_as_it_was() -> None:
    document = {"a": ["caf\u00e9", "\U0001f600", 1]}
    assert json_bytes(document) == msgspec.json.encode(document)


@each("way", ["document", "warning", "error", "bug"])
async def test_the_daemon_answers_it_and_goes_on(way: str) -> None:
    async def says(_host: Any, _arguments: dict[str, Any]) -> Answer:
        if way == "error":
            raise BadPath(f"the path {LONE} is not UTF-8")
        if way == "bug":
            raise OSError(2, "No such file", LONE)
        return Answer(document={"path": LONE if way == "document" else ""}, warnings=[LONE])

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(OPERATIONS, "says", Operation(perform=says))
        host: Any = SimpleNamespace(layout=Layout(Path("/")))
        sent = json_bytes(await daemon.reply_to(host, Request("says", {})))
    reply = msgspec.json.decode(sent, type=Reply)
    assert (reply.failure is not None) == (way in ("error", "bug"))


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """A folder whose name is not UTF-8."""
    folder = tmp_path / LONE
    folder.mkdir()
    return folder


def test_init_refuses_such_a_folder_in_one_line(strange: Path) -> None:
    done = pmagent(strange, "init")
    assert done.code == 2
    assert len(done.errors.splitlines()) == 2, "error and hint"
    assert list(strange.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [("oa", "snapshot"), ("boot", "oa"), ("pause", "--operator", "ada"), ("status",), ("doctor",), ("oa", "guard"),
     ("log", "tail"), ("log", "stat"), ("rebuild", "--check"), ("kernel", "refresh"), ("pla", "status"), ("runs",),
     ("run", "do it", "--plan-only")],
    ids=" ".join,
)
@pytest.mark.parametrize("format", [(), ("--format", "json")], ids=["text", "json"])
def test_no_command_in_it_is_a_bug_of_ours(
    strange: Path, workspace: Path, command: tuple[str, ...], format: tuple[str, ...]
) -> None:
    workspace.rename(strange / "w")
    (strange / "w" / ".pmagent").mkdir(exist_ok=True)
    done = pmagent(strange / "w", *command, *format)
    assert done.code in (0, 1, 2), done.errors
    assert b"\xe9" not in done.out + done.err
    if format and done.out:
        assert msgspec.json.decode(done.out) is not None
