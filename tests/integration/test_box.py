"""The process of one attempt on a worker's host, as a real one, without a worker that renews its time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from pmagent.contracts.orchestra_events import TaskAssigned, TaskAttemptRequested
from pmagent.workers.box import Begin, framed
from pmagent.workers.settings import Sizes
from pmagent.workers.wish import Load, Wish, boottime
from tests.support.callers import TASK_ID
from tests.support.orchestra import RUN, config

MINUTE = 60 * 10**9
OVER = 75
"""The exit code of a box whose time is over."""


def begin(folder: Path, command: str, until: int) -> bytes:
    """The first word to a box: ``command`` for at most five seconds."""
    (folder / "workspace").mkdir()
    assigned = msgspec.convert({
        "run_id": RUN, "requested": 1, "permit": 2, "action": "feature_work", "name": "one", "worker": 1, "after": {},
        "simulated": False, "backoff_base_sec": 1.0,
        "assignment": {
            "task_id": TASK_ID, "tools": ["sh"], "inputs": {"args": ["-c", command]},
            "constraints": {"max_duration_sec": 5, "max_retries": 0, "sandbox": {}},
        },
    }, TaskAssigned)  # fmt: skip
    asked = TaskAttemptRequested(
        permit=2, run_id=RUN, task_id=TASK_ID, requested=1, assigned=3, attempt=1, action="feature_work", seconds=5.0,
        simulated=False,
    )
    nothing = Load("0" * 64, 0)
    wish = Wish(config(), assigned, asked, nothing, None)
    return framed(Begin(wish, str(folder), ["sh"], Sizes(), until))


def ended(word: bytes) -> tuple[int, bytes]:
    """How a box ends that hears this word and no other, and what it says. Its worker lives on, and stands still."""
    with subprocess.Popen(
        [sys.executable, "-I", "-m", "pmagent.workers.box"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as box:
        assert box.stdin is not None
        assert box.stdout is not None
        box.stdin.write(word)
        box.stdin.flush()
        said = box.stdout.read()
        return box.wait(), said


def test_a_box_ends_with_its_lease_though_its_worker_lives_and_its_task_goes_on(tmp_path: Path) -> None:
    code, said = ended(begin(tmp_path, "sleep 311", boottime()))
    assert (code, said) == (OVER, b"")


def test_within_its_lease_it_tells_how_its_task_ended(tmp_path: Path) -> None:
    code, said = ended(begin(tmp_path, "echo done; exit 3", boottime() + MINUTE))
    assert code == 0
    assert b"done\n" in said
