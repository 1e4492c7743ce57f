"""A writer is killed with SIGKILL at random moments: nothing acknowledged is lost, and the log opens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pmagent.events.disk import RealDisk
from pmagent.events.reader import event_at
from pmagent.events.segments import SegmentReader, segment_firsts
from pmagent.events.verify import verify_log
from tests.support.effort import rounds
from tests.support.logs import open_segments

ROUNDS = rounds(220, 40)

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_writer_killed_at_random_moments_loses_nothing_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / ".pmagent" / "log"
    command = [sys.executable, "-m", "tests.crash.kill_writer", str(folder)]
    acknowledged, with_acknowledgement = 0, 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for seed in range(ROUNDS):
            writer.stdin.write(f"{seed}\n")
            writer.stdin.flush()
            position, expected, ended = writer.stdout.readline().split()
            assert ended == "-9", f"round {seed}: the log did not open, or a write failed"
            if int(position):
                with_acknowledgement += 1
                acknowledged = int(position)
            if not (folder / "HEAD").exists():
                assert acknowledged == 0
                continue
            result = verify_log(str(folder))
            assert result.finding is None, f"round {seed}"
            assert result.tail.position >= acknowledged, f"round {seed}"
            if int(position):
                reader = SegmentReader(RealDisk(), str(folder))
                assert event_at(reader, acknowledged).sum == expected, f"round {seed}"
                reader.close()
        writer.stdin.close()
    assert with_acknowledgement > ROUNDS // 2
    assert len(segment_firsts(RealDisk(), str(folder))) > 5, "it was killed around rolls, too"
    storage = open_segments(RealDisk(), folder=str(folder))
    assert storage.tail().position >= acknowledged
    storage.close()
