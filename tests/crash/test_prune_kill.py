"""``pmagent prune`` is killed with SIGKILL: nothing is given up, or the next start finishes it."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from random import randint

import pytest

from pmagent.actors.known import blob_check
from pmagent.projections.rebuild import check_documents
from pmagent.service.operations import call
from pmagent.workspace.layout import Layout
from tests.support.commands import owned
from tests.support.effort import rounds
from tests.support.forked import KILLED, forks
from tests.support.logged import proven_history
from tests.support.prunable import blobs_in, real_runs, run_id, runs_left
from tests.support.sandboxes import needs_sandbox

STRIDE = rounds(3, 80)
"""One in so many of the system calls is struck."""
CALLS_MAX = 2_000


@needs_sandbox
@pytest.mark.slow
def test_a_pruning_killed_ahead_of_any_system_call_is_done_by_the_next_start(workspace: Path, tmp_path: Path) -> None:
    real_runs(workspace, 1, 2, 3)
    seen: Counter[str] = Counter()
    with forks("kill_prune") as run:
        for number in range(randint(1, STRIDE), CALLS_MAX, STRIDE):
            mine = owned(shutil.copytree(workspace, tmp_path / f"killed-{number}"))
            before = blobs_in(mine)
            code = int(run(mine, number)[0])
            assert code in (0, KILLED), number
            call(mine, "oa.snapshot")
            events = [event.type for event in proven_history(mine, "control.")]
            left = runs_left(mine)
            if events:
                assert events == ["control.pruned", "control.prune_ended"], number
                assert left == {run_id(3)}, number
                assert len(blobs_in(mine)) < len(before), number
            else:
                assert left == {run_id(1), run_id(2), run_id(3)}, number
                assert blobs_in(mine) == before, number
            store = Layout(mine).store
            checked = store.verify(blobs=blob_check(store.blobs()))
            assert checked.ok, (number, checked.finding)
            assert check_documents(mine) == [], number
            seen["pruned" if events else "untouched"] += code == KILLED
            shutil.rmtree(mine)
            if code == 0:
                break
    assert code == 0, "its calls have been struck to the last"
    assert min(seen.values(), default=0) > 0, f"kills before the event and behind it: {seen}"
