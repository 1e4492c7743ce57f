"""A standby's fold: it goes on from there only if the log does."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pmagent.service.standby import Follower
from pmagent.workspace.layout import Layout
from tests.support.logs import BatchWriter, draft
from tests.support.memory_log import MemoryLog


def begun(*numbers: int) -> MemoryLog:
    """A log with these notes."""
    log = MemoryLog()
    with log.lease("tests") as lease:
        storage = lease.open("ab" * 16)
        writer = BatchWriter(storage)
        writer.create(storage.log_id())
        for number in numbers:
            writer.write([draft(number)])
    return log


def test_what_is_folded_counts_only_where_the_log_goes_on_from_there(workspace: Path) -> None:
    layout, ready = Layout(workspace), list[str]()
    layout.prepare()
    mine, longer, other, shorter = begun(1, 2), begun(1, 2, 3), begun(1, 5, 6), begun(1)
    with closing(Follower(layout, mine, lambda: ready.append("follows"))) as follower:
        assert follower.follow() == 3
        assert follower.follow() == 3
        assert ready == ["follows"]
        folded = follower.folded(longer.open())
        assert folded is not None
        assert folded.engine.sequencer.position == 3
        folded.fold(longer.open(), 4)
        assert folded.engine.sequencer.position == 4
        assert follower.folded(other.open()) is None
        assert follower.folded(shorter.open()) is None
        follower.give_up()
        assert follower.follow() is None
