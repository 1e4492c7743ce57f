"""The threat model names tests that exist, and defaults that are so."""

from __future__ import annotations

import re
from pathlib import Path

from pmagent.actors.orchestra.running.sandbox_spec import OUTPUT_BYTES
from pmagent.actors.sandbox.artifacts import Bounds
from pmagent.actors.sandbox.spec import Limits
from tests.support.cases import each

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TEXT.splitlines() if line.startswith("| ")]

LIMITS = Limits()
BOUNDS = Bounds()
MIB, GIB = 2**20, 2**30
KEPT = f"{BOUNDS.files} files of {BOUNDS.file_bytes // MIB} MiB at most, {BOUNDS.total_bytes // MIB} MiB together"


def test_every_test_that_is_named_exists() -> None:
    files = [path for folder in ("unit/sandbox", "integration") for path in (ROOT / "tests" / folder).glob("*.py")]
    defined = {name for path in files for name in re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))}
    named = set(re.findall(r"`(test_\w+)`", TEXT))
    assert len(named) > 50
    assert named - defined == set()

KEPT_OUTPUT = f"{LIMITS.output_bytes // MIB} MiB is kept; of a task's the first and the last {OUTPUT_BYTES // MIB} MiB"


@each("what, said", [
    ("time of the run; from TERM to KILL", f"{LIMITS.seconds:.0f} s; {LIMITS.grace_seconds:.0f} s"),
    ("private memory of a process", f"{LIMITS.memory_bytes // GIB} GiB"),
    ("address space of a process", f"{LIMITS.address_bytes // GIB} GiB"),
    ("memory of all processes", f"{LIMITS.total_memory_bytes // GIB} GiB"),
    ("processes and threads", f"{LIMITS.processes}"),
    ("processor time of a process", f"{LIMITS.cpu_seconds} s"),
    ("a file; open files of a process", f"{LIMITS.file_bytes // MIB} MiB; {LIMITS.open_files}"),
    ("`/tmp` and `/dev/shm` each; `/run`", f"{LIMITS.tmp_bytes // MIB} MiB; 1 MiB"),
    ("files and folders in these", f"{LIMITS.tmp_entries:,}"),
    (
        "artifacts while it runs",
        f"{LIMITS.artifact_bytes // MIB} MiB on the disk, {LIMITS.artifact_entries:,} files and folders, 64 deep",
    ),
    ("artifacts that are kept", f"{KEPT}, {BOUNDS.depth} deep"),
    ("room on each disk that it writes", f"{LIMITS.free_bytes // MIB} MiB and 1,000 files must stay free"),
    ("stdout, stderr each", KEPT_OUTPUT),
])
def test_the_limits_are_those_of_the_code(what: str, said: str) -> None:
    assert [row[1] for row in ROWS if row[0] == what] == [said]
