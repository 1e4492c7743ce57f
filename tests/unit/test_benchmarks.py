"""Each benchmark runs, in tiny sizes; how fast is not asserted here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN = (ROOT / "benchmarks" / "run.py").read_text()
BENCHMARKS = re.findall(r'"(\w+)"', RUN[RUN.index("BENCHMARKS = (") : RUN.index(")", RUN.index("BENCHMARKS = ("))])


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmark_runs_and_says_what_was_measured(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "--only", name]
    command += ["--json", str(tmp_path / "rows"), "--folder", str(tmp_path / "b")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "rows").read_text())["rows"][name]
    assert rows
    for row in rows:
        assert row["figure"]["low"] <= row["figure"]["median"] <= row["figure"]["high"]
        assert row["what"] in done.stdout
        assert (row["reached"] is None) == (not row["target"])
    assert not (tmp_path / "b").exists(), "its files are removed"


def test_every_benchmark_is_run() -> None:
    paths = (ROOT / "benchmarks").glob("*.py")
    assert {path.stem for path in paths if "\ndef run(bench: Bench)" in path.read_text()} == set(BENCHMARKS)
