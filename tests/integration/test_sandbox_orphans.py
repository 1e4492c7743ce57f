"""Left over from a killed process: known by the folder that they hold, and ended; nobody else is."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pmagent.actors.sandbox import orphans
from pmagent.actors.sandbox.orphans import end_orphans

HOLDER = "import os, sys; os.open(sys.argv[1], os.O_PATH); print('held', flush=True); sys.stdin.read()"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Python under the name of bubblewrap: what counts is the program's file."""
    copy = tmp_path / "bwrap"
    shutil.copy(os.path.realpath(sys.executable), copy)
    return copy


def holder(program: Path | str, folder: Path) -> subprocess.Popen[str]:
    """A process that holds the folder opened."""
    environment = {"PYTHONHOME": sys.base_prefix, "LD_LIBRARY_PATH": f"{sys.base_prefix}/lib"}
    started = subprocess.Popen(
        [str(program), "-S", "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=environment,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "held\n"
    return started


def test_who_holds_something_in_the_folder_is_ended_and_nobody_else(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphans, "_OURS", b"none of whichever test runs beside this one")
    mine, other = tmp_path / "tasks" / "7", tmp_path / "tasks-of-another"
    mine.mkdir(parents=True)
    other.mkdir()
    with holder(program, mine) as held, holder(program, other) as spared, holder(sys.executable, mine) as named:
        mine.rmdir()  # it is held all the same
        assert end_orphans(str((tmp_path / "tasks").resolve())) == 1
        assert held.wait(120) == -signal.SIGKILL
        assert (spared.poll(), named.poll()) == (None, None)
        spared.kill()
        named.kill()
    assert end_orphans(str((tmp_path / "tasks").resolve())) == 0
