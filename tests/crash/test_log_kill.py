"""A writer is killed with SIGKILL at random moments: nothing acknowledged is lost, and the log opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from pmagent.events.disk import RealDisk
from pmagent.events.reader import event_at
from pmagent.events.segments import SegmentReader, segment_firsts
from pmagent.events.verify import verify_log
from tests.support.effort import rounds
from tests.support.forked import KILLED, forks
from tests.support.logs import open_segments

ROUNDS = rounds(220, 15)


@pytest.mark.slow
def test_a_writer_killed_at_random_moments_loses_nothing_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / ".pmagent" / "log"
    acknowledged, with_acknowledgement = 0, 0
    with forks("kill_writer", folder) as writer:
        for seed in range(ROUNDS):
            position, expected, ended = writer(seed)
            assert int(ended) == KILLED, f"round {seed}: the log did not open, or a write failed"
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
    assert with_acknowledgement > ROUNDS // 2
    assert len(segment_firsts(RealDisk(), str(folder))) > 5, "it was killed around rolls, too"
    storage = open_segments(RealDisk(), folder=str(folder))
    assert storage.tail().position >= acknowledged
    storage.close()
