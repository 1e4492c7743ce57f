"""A writer of CONTEXT.json is killed with SIGKILL: the file is the old one or the new one, and everybody is told."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import randint

import pytest

from pmagent.actors.oa.context import PATH
from pmagent.actors.registry import all_actors
from pmagent.contracts.payload import typed
from pmagent.contracts.reasoning_events import OaContextAnswered
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.reader import events
from pmagent.events.segments import SegmentReader
from pmagent.events.verify import verify_log
from pmagent.oa.context import look, write_context
from pmagent.replay.replayer import replay_log
from pmagent.service.operations import call
from pmagent.workspace.layout import Layout
from tests.crash.kill_context import CONTEXT, numbered
from tests.support.effort import rounds
from tests.support.forked import KILLED, forks

ROUNDS = rounds(40, 8)
STRIDE = rounds(1, 3)
"""One in so many of the system calls is struck."""


@pytest.mark.slow
@pytest.mark.parametrize("exists", [True, False], ids=["over a file", "where there is none"])
def test_a_write_killed_ahead_of_any_system_call_leaves_the_old_file_or_the_new(exists: bool, workspace: Path) -> None:
    path = workspace / PATH
    old = path.read_bytes()
    seen: Counter[str] = Counter()
    with forks("kill_context", workspace) as run:
        for number in range(randint(1, STRIDE), 100, STRIDE):
            path.unlink(missing_ok=True)
            if exists:
                path.write_bytes(old)
            else:
                for left in path.parent.iterdir():
                    left.unlink()
                path.parent.rmdir()
            before = path.read_bytes() if exists else None
            code = int(run("step", number)[1])
            now = path.read_bytes() if path.exists() else None
            seen["old" if now == before else "new"] += 1
            assert now == before or json.loads(now or b"") == {"version": 1, "context": CONTEXT}, number
            if code == 0:
                break
            assert code == KILLED, number
            assert run("step", 1000)[1] == "0", "the same write, performed again"
            assert look(workspace).context == CONTEXT, number
    assert code == 0, "its calls have been struck to the last"
    assert seen["old"] > 5 // STRIDE
    assert seen["new"] > 2 // STRIDE, "one of them is the write that nothing struck"


@pytest.mark.slow
def test_writers_killed_at_random_moments_lose_nothing_and_leave_nobody_without_an_answer(workspace: Path) -> None:
    write_context(numbered(0), workspace)
    told_in_all = 0
    with forks("kill_context", workspace) as run:
        for number in range(1, ROUNDS + 1):
            last, code = map(int, run("live", number))
            assert code == KILLED, f"round {number}: it failed"
            told_in_all += last >= 0
            context = json.loads((workspace / PATH).read_text())["context"]
            held = int(context["active_goal"].removeprefix("goal "))
            assert context == numbered(held), f"round {number}: half of it"
            assert last < 0 or last <= held <= last + 1, f"round {number}: what was told to be written is not there"
    assert told_in_all > ROUNDS // 4
    settle(workspace)
    write_context({"active_goal": "the end"}, workspace)
    assert look(workspace).context == {"active_goal": "the end"}
    check_log(workspace)


def settle(workspace: Path) -> None:
    """Let what killed writers asked for be decided, done and answered: until then the file is not what a new write is
    made on. A reader alone does not see all of it: a crash can leave whole events behind HEAD, which the next opening
    keeps, and a request without the decision that it leads to, which is no open effect yet."""
    while True:
        call(workspace, "oa.snapshot")
        asked, answered = asked_and_answered(workspace)
        if len(answered) == len(asked):
            return


def check_log(workspace: Path) -> None:
    """The log is whole and replays, and each request in it was answered once."""
    layout = Layout(workspace)
    assert verify_log(str(layout.log), decode=True).ok
    result = replay_log(str(layout.log), all_actors())
    assert (result.stopped, result.counts) == ("", [])
    asked, answered = asked_and_answered(workspace)
    assert sorted(one.request for one in answered) == asked
    last = [one.sha256 for one in answered if one.sha256][-1]
    assert last == look(workspace).sha256, "what was answered last is what the file holds"


def asked_and_answered(workspace: Path) -> tuple[list[int], list[OaContextAnswered]]:
    """The positions of the requests in the log, and the answers, each in the order of the log."""
    layout = Layout(workspace)
    log, blobs = SegmentReader(RealDisk(), str(layout.log)), BlobStore(RealDisk(), str(layout.blobs))
    asked, answered = [], []
    for stored in events(log):
        if stored.type == "oa.context_requested":
            asked.append(stored.position)
        elif stored.type == "oa.context_answered":
            answered.append(typed(stored, blobs).data)
    log.close()
    return asked, answered
