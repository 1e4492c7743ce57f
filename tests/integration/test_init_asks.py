"""``pmagent init`` on a terminal asks whether git is to ignore what pmagent computes."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.commands import PMAGENT, SECONDS, clean_environment
from tests.support.terminals import Terminal, open_pty


@pytest.mark.parametrize(("answer", "ignored"), [(b"yes\n", True), (b"no\n", False)])
def test_a_yes_lists_the_folders(answer: bytes, ignored: bool, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    screen = Terminal(120, 40)
    ours, theirs = open_pty(120, 40)
    process = subprocess.Popen(
        ["setsid", "--ctty", *PMAGENT, "init"], cwd=tmp_path, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs,
        env=clean_environment(TERM="xterm"),
    )
    os.close(theirs)
    deadline = time.monotonic() + SECONDS
    while "type yes" not in screen.text and time.monotonic() < deadline:
        screen.feed(os.read(ours, 65536))
    assert "/runs/" in screen.text
    os.write(ours, answer)
    process.communicate(timeout=SECONDS)
    os.close(ours)
    assert process.returncode == 0
    assert ("/runs/" in (tmp_path / ".git/info/exclude").read_text().split()) == ignored
