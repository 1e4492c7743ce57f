"""JSON that a terminal shows holds nothing that the terminal would obey; what a pipe gets is what is stored."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.clean import escaped_json
from pmagent.events.unseen import UNSEEN
from pmagent.service.operations import call
from tests.support import warm
from tests.support.cases import each
from tests.support.commands import PMAGENT, SECONDS, clean_environment
from tests.support.logged import note, write_log
from tests.support.terminals import open_pty

HOSTILE = "X\x9b31m\x9d0;title\x9c\u202e\u2066\u200b\u00ad\x7f\U000e0041é"
OBEYED = re.compile(f"[{UNSEEN}]")
COMMANDS = [
    ("log", "tail", "--format", "json"), ("log", "export"), ("log", "show", "4", "--format", "json"),
    ("log", "why", "4", "--format", "json"), ("status", "--format", "json"),
]


def on_terminal(workspace: Path, command: tuple[str, ...]) -> str:
    """The bytes that a terminal gets."""
    master, slave = open_pty(120, 40)
    with warm.Popen(
        [*PMAGENT, *command], cwd=workspace, env=clean_environment(TERM="xterm"), stdin=subprocess.DEVNULL,
        stdout=slave, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        os.close(slave)
        got = b""
        try:
            while piece := os.read(master, 65_536):
                got += piece
        except OSError:  # nobody writes to it any more
            pass
        assert process.wait(SECONDS) == 0
    os.close(master)
    return got.decode().replace("\r\n", "\n")


def piped(workspace: Path, command: tuple[str, ...]) -> str:
    """The bytes that a pipe gets."""
    done = warm.run(
        [*PMAGENT, *command], cwd=workspace, env=clean_environment(), check=True, capture_output=True, timeout=SECONDS
    )
    return str(done.stdout, "utf-8")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_terminal_is_told_nothing_that_it_would_obey(workspace: Path, command: tuple[str, ...]) -> None:
    call(workspace, "control.pause", {"request": "control.pause-1", "operator": "ada", "reason": HOSTILE})
    write_log(workspace, [note(1, {"said": HOSTILE}, correlation=HOSTILE)])
    if "4" in command:
        end = str(call(workspace, "status").document["log"]["position"])
        command = tuple(end if part == "4" else part for part in command)
    shown, stored = on_terminal(workspace, command), piped(workspace, command)
    assert not OBEYED.search(shown)
    assert OBEYED.search(stored)
    if "json" in command and "tail" not in command:
        assert json.loads(shown) == json.loads(stored)
    else:
        assert [json.loads(line) for line in shown.splitlines()] == [json.loads(line) for line in stored.splitlines()]


VALUES: st.SearchStrategy[object] = st.recursive(
    st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(VALUES)
def test_what_is_escaped_is_the_same_json(value: object) -> None:
    written = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    escaped = escaped_json(written)
    assert json.loads(escaped) == value
    assert not OBEYED.search(escaped.decode())


@each("raw", [b'"\x9b"', b'"\xff\xfe"', b'"\x1b[31m"'])
def test_what_is_no_json_is_not_obeyed_either(raw: bytes) -> None:
    assert escaped_json(raw).isascii()
    assert b"\x1b" not in escaped_json(raw)
