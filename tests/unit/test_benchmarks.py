"""Each benchmark runs, in tiny sizes; how fast is not asserted here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.effort import some

ROOT = Path(__file__).resolve().parents[2]
RUN = (ROOT / "benchmarks" / "run.py").read_text()
BENCHMARKS = re.findall(r'"(\w+)"', RUN[RUN.index("BENCHMARKS = (") : RUN.index(")", RUN.index("BENCHMARKS = ("))])


@pytest.mark.slow
def test_benchmarks_run_and_say_what_was_measured(tmp_path: Path) -> None:
    names = some(BENCHMARKS, 2)
    command = [sys.executable, "-m", "benchmarks.run", "--quick", *(f"--only={name}" for name in names)]
    command += ["--json", str(tmp_path / "rows"), "--folder", str(tmp_path / "b")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stderr
    measured = json.loads((tmp_path / "rows").read_text())["rows"]
    assert measured.keys() == set(names)
    assert all(measured.values())
    for row in (row for rows in measured.values() for row in rows):
        assert row["figure"]["low"] <= row["figure"]["median"] <= row["figure"]["high"]
        assert row["what"] in done.stdout
        assert (row["reached"] is None) == (not row["target"])
    assert not (tmp_path / "b").exists(), "its files are removed"


def test_every_benchmark_is_run() -> None:
    paths = (ROOT / "benchmarks").glob("*.py")
    assert {path.stem for path in paths if "\ndef run(bench: Bench)" in path.read_text()} == set(BENCHMARKS)
