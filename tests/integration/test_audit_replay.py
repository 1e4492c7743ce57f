"""An audit replays from its log alone: nothing is cloned, read, parsed out of a PDF, or asked."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pmagent.workspace.layout import Layout
from tests.support.audited import Sources
from tests.support.commands import pmagent
from tests.support.histories import FOLDER

ROOT = Path(__file__).resolve().parents[2]
REPLAY = """
import json, subprocess, sys

tripped = set()
WIRES = ("subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.system", "socket.connect", "socket.getaddrinfo",
         "socket.sendto", "tempfile.", "shutil.", "os.mkdir", "os.remove", "os.rename")

PACKAGES = ("pymupdf", "fitz", "langchain_openai", "langchain_anthropic")


def hook(name, arguments):
    if name.startswith(WIRES):
        tripped.add(name)
    if name == "import" and arguments[0].partition(".")[0] in PACKAGES:
        tripped.add(arguments[0])
    if name == "open" and str(arguments[0]).endswith((".pdf", ".git")):
        tripped.add(str(arguments[0]))


from pmagent.actors.registry import all_actors
from pmagent.replay.replayer import replay_log

actors = all_actors()
sys.addaudithook(hook)
result = replay_log(sys.argv[1], actors)
found = {"equal": result.equal, "decisions": result.decisions, "tripped": sorted(tripped)}
try:
    subprocess.run(["/nowhere/at/all"])
except FileNotFoundError:
    assert "subprocess.Popen" in tripped, "the wires are there"
print(json.dumps(found))
"""


ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PATH": "/nowhere", "PYTHONDONTWRITEBYTECODE": "1"}
"""Keeping compiled modules is the interpreter's matter, and renames files."""


def replayed(log: Path, folder: Path) -> dict[str, object]:
    """The result of a replay in a process of its own, and which of the wires it touched."""
    done = subprocess.run(
        [sys.executable, "-c", REPLAY, str(log)], cwd=folder, env=ENVIRONMENT,
        capture_output=True, check=True,
    )  # fmt: skip
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.fixture
def audited(workspace: Path, tmp_path: Path) -> Path:
    """The log of an audit, whose sources are gone."""
    sources = Sources(tmp_path / "sources")
    assert pmagent(workspace, *sources.quick).code == 0
    shutil.rmtree(tmp_path / "sources")
    return Layout(workspace).log


def test_a_replay_touches_nothing_but_the_log(audited: Path, tmp_path: Path) -> None:
    found = replayed(audited, tmp_path)
    assert found["tripped"] == []
    assert found["equal"]
    assert isinstance(found["decisions"], int)
    assert found["decisions"] > 10


def test_a_replay_of_judges_that_are_models_asks_none(tmp_path: Path) -> None:
    """Whether today's code decides as it was recorded is the histories' own test."""
    log = FOLDER / "audits" / "log"
    assert b'"langchain"' in b"".join(file.read_bytes() for file in log.glob("*.jsonl"))
    assert replayed(log, tmp_path)["tripped"] == []
