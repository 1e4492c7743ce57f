"""The simulation notices where documents are not what the log says, also those of runs that have left the state."""

from __future__ import annotations

from typing import Any

import pytest

from pmagent.projections.core.documents import Documents
from pmagent.projections.oa.state import OaState
from pmagent.projections.runs.folders import RunFolders
from pmagent.replay.simulation.machine import Machine
from pmagent.replay.simulation.runner import Load, run_seeds
from tests.support.planted import by_day, plant

RUNS = Load(0, 0, runs=12, checks=0, audits=0, changes=4)


def forgetful() -> Documents:
    """The real projections, of which one keeps a single run that has ended."""
    return Documents([OaState(), RunFolders(kept=1)])


def failure(count: int = 60) -> str:
    """The message of the first seed that fails; "" when none does."""
    return next(iter(run_seeds(1, count, documents=forgetful, failures_max=1, load=RUNS).failures), "")


PLANTED: dict[str, tuple[Any, str, str, str]] = {
    "what leaves the state is not given out": (Documents, "_without_old", "self._retired.update(gone)", "pass"),
    "runs that change are not written again": (RunFolders, "documents", "if before is not job:", "if before is None:"),
    "a log line is lost in a start from a snapshot": (Machine, "_restore", "self.documents.restore(states)", "pass"),
}


def test_documents_of_runs_that_left_the_state_are_on_the_disk_whatever_happens() -> None:
    assert failure(12) == ""


@pytest.mark.parametrize("fault", by_day(PLANTED))
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, *PLANTED[fault])
    assert "document" in failure()
