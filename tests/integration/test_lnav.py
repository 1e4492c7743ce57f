"""The format file, with the real lnav: it is accepted, and the log is a table that SQL can ask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pmagent.service.operations import call
from pmagent.workspace.layout import Layout

LNAV = shutil.which("lnav")

pytestmark = pytest.mark.skipif(LNAV is None, reason="lnav is not installed: apt-get install lnav")


def test_lnav_reads_the_log_with_the_installed_format(workspace: Path, tmp_path: Path) -> None:
    assert call(workspace, "oa.snapshot").exit_code == 0
    home = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config"), "TERM": "dumb"}
    pmagent = [sys.executable, "-I", "-m", "pmagent"]
    subprocess.run([*pmagent, "lnav", "--install"], env=home, check=True, capture_output=True, timeout=60)
    (segment,) = Layout(workspace).log.glob("*.jsonl")

    checked = subprocess.run([str(LNAV), "-C"], env=home, capture_output=True, text=True, check=False, timeout=60)
    query = ";select position, actor, type from pmagent_log where kind = 'decision' order by position"
    asked = subprocess.run(
        [str(LNAV), "-n", "-c", query, str(segment)], env=home, capture_output=True, text=True, check=False, timeout=60
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr
    rows = [line.split() for line in asked.stdout.splitlines()[1:]]
    assert ["oa", "oa.snapshot_taken"] in [row[1:] for row in rows]
