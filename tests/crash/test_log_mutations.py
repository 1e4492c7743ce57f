"""Every alteration of the evidence is reported: a log of real runs with its blobs, altered in each of many ways."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from pmagent.events.disk import RealDisk
from pmagent.events.event import Tail
from pmagent.events.line import decode_line
from pmagent.events.segment_store import SegmentStorage
from pmagent.events.segments import segment_name
from pmagent.workspace.layout import Layout
from tests.support.blob_mutations import BLOB_MUTATIONS
from tests.support.cases import each
from tests.support.commands import Ran, pmagent
from tests.support.effort import rounds
from tests.support.log_mutations import LOG_MUTATIONS, Evidence
from tests.support.logs import LOG_ID, write_log
from tests.support.memory_disk import MemoryDisk

MUTATIONS = LOG_MUTATIONS | BLOB_MUTATIONS
ROUNDS = rounds(100, 3)
SEGMENT_BYTES = 12_000
PLAN = """
- task_id: numbers
  intent: Leave files and output
  tools: [sh]
  inputs:
    args: [-c, "for n in 1 2 3; do seq $n 400 > $ARTIFACTS/part-$n; done; seq 1 900; echo a warning >&2"]
- task_id: after
  intent: Read them
  tools: [cat]
  depends_on: [numbers]
  inputs: {args: [/inputs/numbers/part-1, /inputs/numbers/stdout]}
"""

pytestmark = pytest.mark.slow


class Workspace:
    """A workspace whose log and blobs can be altered and put back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        layout = Layout(folder)
        self.evidence = Evidence(layout.log, layout.blobs, _foreign_line())
        self._kept = {root: _files(root) for root in (layout.log, layout.blobs)}

    def verify(self) -> Ran:
        """``pmagent log verify``."""
        return pmagent(self.folder, "log", "verify", "--format", "json")

    def put_back(self) -> None:
        """Undo what a mutation did, in the same folders."""
        for root, files in self._kept.items():
            root.mkdir(mode=0o700, exist_ok=True)
            for path in sorted(root.rglob("*"), reverse=True):
                if path.is_symlink() or path.is_file():
                    path.unlink()
                elif path.relative_to(root) not in {parent for name in files for parent in name.parents}:
                    path.rmdir()
            for name, content in files.items():
                (root / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                (root / name).write_bytes(content)
                (root / name).chmod(0o600)


def _files(root: Path) -> dict[Path, bytes]:
    return {path.relative_to(root): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def _foreign_line() -> bytes:
    """A line of another log."""
    disk = MemoryDisk()
    write_log(disk, [3], log_id=LOG_ID[::-1], segment_bytes=10**6)
    return bytes(disk.read(f"/log/{segment_name(1)}")).splitlines(keepends=True)[2]


def _in_small_segments(layout: Layout) -> None:
    """Lay the same lines into segments of a few kilobytes: the batches stay as they were."""
    lines = b"".join(path.read_bytes() for path in sorted(layout.log.glob("*.jsonl"))).splitlines(keepends=True)
    batches: dict[int, list[bytes]] = {}
    for line in lines:
        batches.setdefault(decode_line(line).batch, []).append(line)
    for path in layout.log.iterdir():
        path.unlink()
    storage = SegmentStorage(RealDisk(), str(layout.log), _log_id(lines[0]), SEGMENT_BYTES)
    tail = Tail()
    for batch in batches.values():
        last = decode_line(batch[-1])
        after = Tail(last.position, last.batch, last.time, last.sum)
        storage.append_batch(tail, batch, after)
        tail = after
    storage.close()


def _log_id(first: bytes) -> str:
    return str(msgspec.json.decode(bytes(decode_line(first).data))["log_id"])


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A workspace with two runs, in segments of a few kilobytes."""
    folder = tmp_path_factory.mktemp("evidence") / "workspace"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    assert pmagent(folder, "init", environ=dict(os.environ)).code == 0
    (folder / "orchestra.config.yaml").write_text('version: "1.0"\nwhitelist_tools: [sh, cat]\n')
    (folder / "plan.yaml").write_text(PLAN)
    for intent in ("first", "second"):
        ran = pmagent(folder, "run", intent, "--plan", str(folder / "plan.yaml"), environ=dict(os.environ))
        assert ran.code == 0, ran.errors
    _in_small_segments(Layout(folder))
    made = Workspace(folder)
    assert len(made.evidence.segments()) > 3
    assert len(made.evidence.all_blobs()) > 5
    assert made.verify().code == 0
    yield made
    shutil.rmtree(folder)


@each("kind", MUTATIONS)
def test_an_alteration_is_reported(kind: str, workspace: Workspace) -> None:
    silent = []
    for seed in range(ROUNDS):
        try:
            MUTATIONS[kind](random.Random(f"{kind} {seed}"), workspace.evidence)
            ran = workspace.verify()
        finally:
            workspace.put_back()
        if ran.code != 4:
            silent.append((seed, ran.code))
    assert silent == []
    assert workspace.verify().code == 0
