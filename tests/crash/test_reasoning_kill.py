"""A process that runs programs is killed with SIGKILL: an envelope has one result, whoever asks; the log is whole."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pmagent.actors.kernel import reader
from pmagent.replay.areas.invariants_models import check_models
from pmagent.replay.areas.invariants_reasoning import check_reasoning
from tests.crash.kill_reasoning import answered, digest, envelope
from tests.support.effort import rounds
from tests.support.forked import KILLED, forks
from tests.support.logged import history, proven_history

ROUNDS = rounds(25, 6)


@pytest.mark.slow
def test_runs_killed_at_random_moments_have_one_result_that_everybody_is_told(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "QUIET_S", 0.0)
    seen: Counter[str] = Counter()
    with forks("kill_reasoning", workspace) as killer:
        for number in range(ROUNDS):
            code, last, told, done, result = killer(number)
            assert int(code) == KILLED, f"round {number}: it failed"
            open_before = open_runs(workspace)
            seen["cut off"] += told == "-" and bool(open_before)
            again = answered(workspace, envelope(workspace, number, int(last)), int(last))
            assert told in ("-", digest(again)), f"round {number}: another result than the one that was told"
            assert digest(answered(workspace, envelope(workspace, number, int(last)), int(last))) == digest(again)
            if result != "-":
                seen["told"] += 1
                whole = answered(workspace, envelope(workspace, number, int(done)), int(done))
                assert digest(whole) == result, f"round {number}: what was told is not what is known"
            assert not open_runs(workspace), f"round {number}: the next command has left a run open"
    assert seen["cut off"] >= ROUNDS // 4, "runs were cut off in their middle"
    assert seen["told"] >= ROUNDS // 2
    recorded = proven_history(workspace)
    check_reasoning(recorded)
    check_models(recorded)
    engines = {event.data.engine for event in recorded if event.type == "reasoning.concluded"}
    assert engines >= {"rules", "langchain"}


def open_runs(workspace: Path) -> set[int]:
    """The requests for runs that have no answer in the log."""
    recorded = history(workspace)
    answered_ones = {
        event.data.request for event in recorded if event.type in ("reasoning.concluded", "reasoning.refused")
    }
    return {event.position for event in recorded if event.type == "reasoning.requested"} - answered_ones
