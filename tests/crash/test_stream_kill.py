"""A performer that streams is killed with SIGKILL: no half blob stands under a name, and the next start clears up."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from random import randint

import anyio
import pytest

from pmagent.events.redact import Redactor
from pmagent.service.host import open_host
from pmagent.workspace.layout import Layout
from tests.crash.kill_stream import content
from tests.support.effort import NIGHT, rounds
from tests.support.forked import KILLED, forks
from tests.support.secrets import KNOWN

ROUNDS = rounds(25, 8)
STRIDE = rounds(1, 3)
"""One in so many of the system calls is struck."""


def stored(workspace: Path) -> tuple[dict[str, bytes], list[str]]:
    """The blobs by name, each found whole and without a secret; and the names of all that is unfinished."""
    blobs, unfinished = {}, []
    for path in Layout(workspace).blobs.rglob("*"):
        if path.name.endswith(".tmp"):
            unfinished.append(path.name)
        elif path.is_file():
            blobs[path.name] = path.read_bytes()
            assert sha256(blobs[path.name]).hexdigest() == path.name
            assert KNOWN.encode() not in blobs[path.name]
    return blobs, unfinished


def start(workspace: Path) -> None:
    """Start and stop as the daemon does."""

    async def run() -> None:
        async with open_host(workspace, "test"):
            pass

    anyio.run(run)


@pytest.mark.slow
def test_killed_ahead_of_any_system_call_it_leaves_all_of_the_blob_or_nothing(workspace: Path) -> None:
    expected = Redactor([KNOWN]).content(content(0))
    name = sha256(expected).hexdigest()
    unfinished_seen = 0
    start(workspace)
    before, _ = stored(workspace)
    assert name not in before
    with forks("kill_stream", workspace) as run:
        for number in range(randint(1, STRIDE), 200, STRIDE):
            last, code = run("step", number)
            blobs, unfinished = stored(workspace)
            assert set(blobs) <= {*before, name}
            unfinished_seen += len(unfinished)
            if code == "0":
                break
            assert (last, int(code)) == ("-", KILLED)
            start(workspace)
            blobs, unfinished = stored(workspace)
            assert unfinished == []
            if name in blobs:
                (Layout(workspace).blobs / name[:2] / name).unlink()
    assert code == "0", "its calls have been struck to the last"
    assert last == name
    assert blobs[name] == expected
    assert unfinished_seen > 3 // STRIDE


@pytest.mark.slow
def test_killed_at_any_moment_it_leaves_whole_blobs_that_it_told_of_and_a_start_clears_others(workspace: Path) -> None:
    told, unfinished_seen = set(), 0
    with forks("kill_stream", workspace) as run:
        for number in range(ROUNDS):
            last, code = run("live", number * 1000)
            assert int(code) == KILLED
            blobs, unfinished = stored(workspace)
            unfinished_seen += len(unfinished)
            assert last in {"-", *blobs}
            told.add(last)
    start(workspace)
    blobs, unfinished = stored(workspace)
    assert unfinished == []
    assert told - {"-"} <= set(blobs)
    assert len(told) > ROUNDS // 3
    assert unfinished_seen or not NIGHT, "some of them were struck in the middle"
